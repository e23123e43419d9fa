package analyze

import (
	"io"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"
)

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
