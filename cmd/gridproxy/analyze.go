package main

import (
	"context"
	"fmt"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/analyze"

	"github.com/spf13/cobra"
)

// analyzeFlags are those of analyze alone.
type analyzeFlags struct {
	namespace string
	failOn    analyze.FailOn
}

func newAnalyze(std command.Stdio) *cobra.Command {
	in := &inputs{warn: warnTo(std.Err), stderr: std.Err, adopt: &adoption{own: []string{"output", "namespace", "fail-on"}}}
	var flags analyzeFlags
	cmd := &cobra.Command{
		Use:   "analyze (--manifests FILE|DIR|- ... | --kubeconfig FILE)",
		Short: "Find what is wrong with closed Services, the labels of Nodes and Grids",
		Long: `Find what is wrong with closed Services, with the labels of Nodes and with Grids: malformed
annotations, keys that no Node carries, units without an endpoint, endpoints that no unit uses,
addresses that two Services name, and Grids without a key or a template. Each finding has a code, such
as GP0101; docs/findings.md explains all of them.

All Nodes are read, and no node name is needed. There are at most ` + fmt.Sprint(analyze.MaxPerCode) + ` findings of each code in the
answer, and a line that says how many more there are. --namespace looks at the Services and Grids in
one namespace only. Grids of a cluster are looked at if you may list them. What a running daemon
remembers is not known here: a Service whose annotation cannot be parsed is shown as on a daemon
that has just started.

In the container of a running daemon no flag is needed: without any flag but --output, --namespace
and --fail-on, the flags of the running "gridproxy run" are used, and "Flags: from process N" is
printed to standard error.

A finding as serious as --fail-on is exit code 1.`,
		Example: `  gridproxy analyze --manifests deploy/samples/site
  gridproxy analyze --manifests ./site/ --fail-on warning -o sarif > findings.sarif
  kubectl get svc,endpointslices,nodes -A -o yaml | gridproxy analyze --manifests - -n default`,
		Args: command.NoArgs,
		PreRunE: func(cmd *cobra.Command, args []string) error {
			if err := flags.failOn.Check(); err != nil {
				return command.NewUsageError(err)
			}
			return in.read(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := flags.run(cmd.Context(), in, std)
			if err == nil && flags.failOn.Reached(r) {
				return command.Finding{}
			}
			return err
		},
	}
	in.declare(cmd, options.GroupSource)
	in.AddOutput(cmd.Flags(), analyze.FormatSARIF)
	addNamespace(cmd.Flags(), &flags.namespace)
	cmd.Flags().Lookup("namespace").Usage = "`NAMESPACE` of the Services and Grids to look at; without it all"
	flags.failOn.AddFlag(cmd)
	showAnswerFlags(cmd)
	return cmd
}

func (f analyzeFlags) run(ctx context.Context, in *inputs, std command.Stdio) (analyze.Report, error) {
	in.NodeName = "" // so that all Nodes are read; allNodes would refuse manifests without any
	snapshot, grids, err := in.withGrids(ctx, std.In, f.namespace)
	if err != nil {
		return analyze.Report{}, err
	}
	config := analyze.Config{Topology: in.Topology(), Rules: apiserver.RulesConfig(in.Options), Grids: grids, Namespace: f.namespace, Cluster: len(in.Manifests) == 0}
	if err := config.CheckNamespace(snapshot); err != nil {
		return analyze.Report{}, err
	}
	if len(snapshot.Nodes) == 0 {
		in.warn("the source has no Node: labels, units and endpoints are not checked; add the Nodes")
	}
	r := analyze.Analyze(snapshot, config)
	return r, analyze.Print(std.Out, in.Output, r)
}
