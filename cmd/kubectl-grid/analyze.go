package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gridproxy/cmd/command"
	"gridproxy/cmd/inspect/analyze"
	"gridproxy/controller/gridspec"
	"gridproxy/topology"

	"github.com/spf13/cobra"
)

func newAnalyze(std command.Stdio, c *connection) *cobra.Command {
	var output, noUnit string
	var failOn analyze.FailOn
	cmd := &cobra.Command{
		Use:   "analyze",
		Short: "Find what is wrong with closed Services, the labels of Nodes and Grids",
		Long: `Find what is wrong with closed Services, with the labels of Nodes and with Grids. The findings and
their codes are those of "gridproxy analyze"; docs/findings.md explains all of them.

--namespace looks at the Services and Grids in one namespace only. Grids are looked at if you may
list them. A warning says if SuperEdge's annotation of the node-local API proxy is on the Endpoints
default/kubernetes alone, where the daemon does not read it.

A finding as serious as --fail-on is exit code 1.`,
		Example: `  kubectl grid analyze
  kubectl grid analyze -n shop --fail-on warning
  kubectl grid analyze -o sarif > findings.sarif`,
		Args: command.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			return command.NewUsageError(cmp.Or(failOn.Check(), checkAnswer(output, noUnit, analyze.FormatSARIF)))
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := c.analyze(cmd.Context(), topology.Config{NodesWithoutUnit: topology.NodesWithoutUnit(noUnit)}, std)
			if err == nil {
				err = analyze.Print(std.Out, output, r)
			}
			if err == nil && failOn.Reached(r) {
				return command.Finding{}
			}
			return err
		},
	}
	addNoUnit(cmd.Flags(), &noUnit)
	command.AddFormat(cmd.Flags(), &output, analyze.FormatSARIF)
	failOn.AddFlag(cmd)
	return cmd
}

// analyze makes the Report of the cluster, or of --namespace. It prints the warnings of withGrids.
func (c *connection) analyze(ctx context.Context, t topology.Config, std command.Stdio) (analyze.Report, error) {
	s, grids, warnings, err := c.withGrids(ctx)
	for _, w := range warnings {
		fmt.Fprintf(std.Err, "warning: %s\n", w)
	}
	if err != nil {
		return analyze.Report{}, err
	}
	a := analyze.Config{Topology: t, Grids: grids, Namespace: c.givenNamespace(), Cluster: true}
	if err := a.CheckNamespace(s); err != nil {
		return analyze.Report{}, err
	}
	return analyze.Analyze(s, a), nil
}

// withGrids reads the cluster and its Grids, or those of --namespace. It warns of a missing right
// to list Grids, and of an API proxy that only Endpoints name.
func (c *connection) withGrids(ctx context.Context) (s topology.Snapshot, grids []gridspec.Grid, warnings []string, err error) {
	r, err := c.reader()
	if err != nil {
		return s, nil, nil, err
	}
	defer command.Waiting(c.problems, "reading the cluster")()
	if s, err = r.snapshot(ctx, ""); err != nil {
		return s, nil, nil, err
	}
	grids, denied, err := r.server.Grids(ctx, c.givenNamespace())
	warnings = []string{denied}
	if len(topology.APIProxies(s.Slices)) == 0 {
		warnings = append(warnings, r.warnOfAPIProxy(ctx))
	}
	return s, grids, slices.DeleteFunc(warnings, func(w string) bool { return w == "" }), err
}
