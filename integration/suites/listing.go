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

// The table of suites is between these lines of a page.
const (
	pageBegin = "<!-- The table of suites, by make generate -->\n"
	pageEnd   = "<!-- The end of the table of suites -->\n"
)

// InPage returns a page of Markdown with the table of suites between its marks.
func InPage(page string, table []Suite) (string, error) {
	before, rest, found := strings.Cut(page, pageBegin)
	_, after, ended := strings.Cut(rest, pageEnd)
	if !found || !ended {
		return "", fmt.Errorf("the page has no place for the table of suites: add the lines %q and %q", pageBegin, pageEnd)
	}
	return before + pageBegin + "\n" + markdown(table) + "\n" + pageEnd + after, nil
}

// markdown returns the suites in two tables: what each one proves, and which skips are expected.
func markdown(table []Suite) string {
	var text strings.Builder
	text.WriteString("| suite | tier | usually | where | needs | proves |\n|---|---|---|---|---|---|\n")
	for _, s := range table {
		var needs []string
		for _, n := range s.AllNeeds() {
			needs = append(needs, string(n))
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s | %s |\n", s.Name, s.Tier, Seconds(s.Usual),
			s.Where(), strings.Join(needs, ", "), s.Proves)
	}
	text.WriteString("\nThese skips are expected, because no installation gives a kernel what it lacks:\n\n" +
		"| the test says | so it is no gap | in the suites |\n|---|---|---|\n")
	for _, row := range skipRows(table) {
		fmt.Fprintf(&text, "| %s | %s | %s |\n", row.skip.Text, row.skip.Why, strings.Join(row.suites, ", "))
	}
	return text.String()
}

// skipRow is a row of the second table: a skip with the suites that expect it.
type skipRow struct {
	skip   Skip
	suites []string
}

func skipRows(table []Suite) []skipRow {
	var rows []skipRow
	for _, s := range table {
		for _, k := range s.Skips {
			i := slices.IndexFunc(rows, func(r skipRow) bool { return r.skip == k })
			if i < 0 {
				i, rows = len(rows), append(rows, skipRow{skip: k})
			}
			rows[i].suites = append(rows[i].suites, s.Name)
		}
	}
	return rows
}
