package analyze

import (
	"fmt"
	"io"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/table"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

// FormatSARIF is the format for code review tools, beside those of command.PrintAs.
const FormatSARIF = "sarif"

// Print writes a Report as JSON, YAML or SARIF if format is "json", "yaml" or FormatSARIF, and
// as text for any other format. It writes nothing unless the whole Report can be rendered.
func Print(w io.Writer, format string, r Report) error {
	return command.PrintAs(w, format, r, func(w io.Writer) error {
		if format == FormatSARIF {
			return r.WriteSARIF(w, command.ThisBuild().Version)
		}
		return r.WriteText(w)
	})
}

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
		lines = append(lines, count(r.ServicesLeftOut, "Service")+
			" left out of GP0301 and GP0302, because the keys have many values: --namespace looks at those of one namespace")
	}
	return lines
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// WriteSARIF writes the Report as a SARIF log with one run. An object is a logical location:
// manifests may come from an API server. What the Report leaves out is a notification of the run.
func (r Report) WriteSARIF(w io.Writer, version string) error {
	run := sarif.NewRun().WithTool(sarif.NewTool().WithDriver(sarif.NewToolComponent().WithName("gridproxy").WithVersion(version)))
	for _, c := range Codes() {
		run.AddRule(c.ID).WithDescription(c.Title).
			WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(string(c.Severity)))
	}
	for _, f := range r.Findings {
		object := sarif.NewLogicalLocation().WithKind("resource").WithName(f.Object.Name).WithFullyQualifiedName(f.Object.Kind + "/" + f.Object.path())
		run.CreateResultForRule(f.Code).WithLevel(string(f.Severity)).
			WithMessage(sarif.NewTextMessage(f.Problem + ". Remedy: " + f.Remedy)).
			AddLocation(sarif.NewLocation().WithLogicalLocations([]*sarif.LogicalLocation{object}))
	}
	invocation := sarif.NewInvocation().WithExecutionSuccessful(true)
	for _, line := range r.leftOut() {
		invocation.AddToolExecutionNotification(sarif.NewNotification().WithLevel(string(Note)).WithMessage(sarif.NewTextMessage(line)))
	}
	run.AddInvocation(invocation)
	if err := sarif.NewReport().AddRun(run).PrettyWrite(w); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}
