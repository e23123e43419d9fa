package analyze

import (
	"fmt"
	"io"
	"strings"

	"gridproxy/cmd/table"
)

// WriteText writes the Report for people: two lines for each finding.
func (r Report) WriteText(w io.Writer) error {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%-7s %s %s: %s\n", f.Severity, f.Code, table.Cell(f.Object.String()), f.Problem)
		fmt.Fprintf(&b, "%14s remedy: %s\n", "", f.Remedy)
	}
	for _, line := range r.leftOut() {
		fmt.Fprintln(&b, line)
	}
	grids := ""
	if r.Grids > 0 { // a cluster may have no definition of them
		grids = ", " + count(r.Grids, "Grid")
	}
	fmt.Fprintf(&b, "%s, %s, %s (%s, %s%s)\n", count(r.Errors, "error"), count(r.Warnings, "warning"), count(r.Notes, "note"),
		count(r.Services, "Service"), count(r.Nodes, "Node"), grids)
	_, err := io.WriteString(w, b.String())
	return err
}

// leftOut returns what the Report lacks, one line each.
func (r Report) leftOut() []string {
	var lines []string
	for _, left := range r.LeftOut {
		lines = append(lines, fmt.Sprintf("%d more findings %s are left out: --namespace shows those of one namespace", left.Count, left.Code))
	}
	if r.UnitsLeftOut > 0 {
		lines = append(lines, fmt.Sprintf("%d units are left out of GP0301 and GP0302 for some Services: their keys have too many values", r.UnitsLeftOut))
	}
	if r.ServicesLeftOut > 0 {
		lines = append(lines, fmt.Sprintf("%s left out of GP0301 and GP0302, because the keys have many values: --namespace looks at those of one namespace", count(r.ServicesLeftOut, "Service")))
	}
	return lines
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
