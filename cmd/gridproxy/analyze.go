package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/analyze"
	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

// failNever is the value of --fail-on for which no finding sets the exit code.
const failNever = "never"

// analyzeFlags are those of analyze alone.
type analyzeFlags struct{ namespace, failOn string }

func newAnalyze(std command.Stdio) *cobra.Command {
	in := &inputs{warn: warnTo(std.Err), stderr: std.Err, adopt: &adoption{own: []string{"output", "namespace", "fail-on"}}}
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze (--manifests FILE|DIR|- ... | --kubeconfig FILE)",
		Short: "Find what is wrong with closed Services and the labels of Nodes",
		Long: `Find what is wrong with closed Services and with the labels of Nodes: malformed annotations, keys
that no Node carries, units without an endpoint, endpoints that no unit uses, and addresses that two
Services name. Each finding has a code, such as GP0101; docs/findings.md explains all of them.

All Nodes are read, and no node name is needed. There are at most ` + fmt.Sprint(analyze.MaxPerCode) + ` findings of each code in the
answer, and a line that says how many more there are. --namespace looks at the Services in one
namespace only. What a running daemon remembers is not known here: a Service whose annotation cannot
be parsed is shown as on a daemon that has just started.

In the container of a running daemon no flag is needed: without any flag but --output, --namespace
and --fail-on, the flags of the running "gridproxy run" are used, and "Flags: from process N" is
printed to standard error.

Exit codes: 0 no finding as serious as --fail-on; 1 such findings; 2 wrong command line, or something
failed.`,
		Example: `  gridproxy analyze --manifests deploy/samples/site
  gridproxy analyze --manifests ./site/ --fail-on warning -o sarif > findings.sarif
  kubectl get svc,endpointslices,nodes -A -o yaml | gridproxy analyze --manifests - -n default`,
		Args: command.NoArgs,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.check(); err != nil {
				return asTrouble(err)
			}
			return asTrouble(in.read(cmd, args))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := flags.run(cmd.Context(), in, std)
			if err == nil && flags.failOn != failNever && r.Fails(analyze.Severity(flags.failOn)) {
				return different{}
			}
			return asTrouble(err)
		},
	}
	in.declare(cmd, options.GroupSource)
	in.AddOutput(cmd.Flags(), "sarif")
	addNamespace(cmd.Flags(), &flags.namespace)
	cmd.Flags().Lookup("namespace").Usage = "`NAMESPACE` of the Services to look at; without it all"
	cmd.Flags().StringVar(&flags.failOn, "fail-on", string(analyze.Error), "least serious finding for which the exit code is 1: "+strings.Join(failures(), ", "))
	showAnswerFlags(cmd)
	return cmd
}

// failures are the values of --fail-on.
func failures() []string {
	var all []string
	for _, s := range analyze.Severities() {
		all = append(all, string(s))
	}
	return append(all, failNever)
}

func (f analyzeFlags) check() error {
	if slices.Contains(failures(), f.failOn) {
		return nil
	}
	return command.NewUsageError(fmt.Errorf("--fail-on %q: want %s", f.failOn, strings.Join(failures(), ", ")))
}

// run prints what is found.
func (f analyzeFlags) run(ctx context.Context, in *inputs, std command.Stdio) (analyze.Report, error) {
	in.NodeName = "" // so that all Nodes are read; allNodes would refuse manifests without any
	snapshot, err := in.snapshot(ctx, std.In)
	if err != nil {
		return analyze.Report{}, err
	}
	if _, err := explain.InNamespace(snapshot, f.namespace); err != nil {
		return analyze.Report{}, err
	}
	if len(snapshot.Nodes) == 0 {
		in.warn("the source has no Node: labels, units and endpoints are not checked; add the Nodes")
	}
	r := analyze.Analyze(snapshot, analyze.Config{Topology: in.Topology(), Rules: rulesConfig(in.Options), Namespace: f.namespace})
	return r, command.PrintAs(std.Out, in.Output, r, func(w io.Writer) error {
		if in.Output == "sarif" {
			return r.WriteSARIF(w, command.ThisBuild().Version)
		}
		return r.WriteText(w)
	})
}
