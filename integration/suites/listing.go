package suites

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
)

// LongestFirst sorts suites so that the last ones to end are short; those that run alone come last.
func LongestFirst(suites []Suite) []Suite {
	sorted := slices.Clone(suites)
	slices.SortStableFunc(sorted, func(a, b Suite) int {
		switch {
		case a.Alone && !b.Alone:
			return 1
		case b.Alone && !a.Alone:
			return -1
		}
		return int(b.Usual - a.Usual)
	})
	return sorted
}

// Listing returns the table of suites, for a terminal.
func Listing(table []Suite) string {
	var text strings.Builder
	rows := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(rows, "SUITE\tTIER\tUSUALLY\tWHERE\tPROVES")
	for _, s := range table {
		fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\n", s.Name, s.Tier, Seconds(s.Usual), s.Where(), s.Proves)
	}
	_ = rows.Flush() // into memory
	return text.String()
}
