package main

import (
	"context"
	"fmt"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/analyze"
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

--namespace looks at the Services and Grids in one namespace only. Headless Services and those of
other proxies are not read. Grids are looked at if you may list them.

Exit codes: 0 no finding as serious as --fail-on; 1 such findings; 2 wrong command line, or something
failed.`,
		Example: `  kubectl grid analyze
  kubectl grid analyze -n shop --fail-on warning
  kubectl grid analyze -o sarif > findings.sarif`,
		Args: func(_ *cobra.Command, args []string) error {
			if err := command.NoArgs(nil, args); err != nil {
				return err
			}
			if err := failOn.Check(); err != nil {
				return err
			}
			return checkAnswer(output, noUnit, analyze.FormatSARIF)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := c.analyze(cmd.Context(), topology.Config{NodesWithoutUnit: topology.NodesWithoutUnit(noUnit)}, std)
			if err == nil {
				err = analyze.Print(std.Out, output, r)
			}
			switch {
			case err != nil:
				return withCode{err, 2}
			case failOn.Reached(r):
				return withCode{code: 1}
			}
			return nil
		},
	}
	addNoUnit(cmd.Flags(), &noUnit)
	command.AddFormat(cmd.Flags(), &output, analyze.FormatSARIF)
	failOn.AddFlag(cmd.Flags())
	return cmd
}

// withCode is an error of analyze, whose exit codes are those of "gridproxy analyze". Without an
// error everything has been printed.
type withCode struct {
	err  error
	code int
}

// Error is that of the error itself.
func (e withCode) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

// CommandCode is the exit code.
func (e withCode) CommandCode() int { return e.code }

// Unwrap is the error itself.
func (e withCode) Unwrap() error { return e.err }

// analyze makes the Report of the cluster, or of --namespace. A missing right to list Grids is a
// warning.
func (c *connection) analyze(ctx context.Context, t topology.Config, std command.Stdio) (analyze.Report, error) {
	config, err := c.config()
	if err != nil {
		return analyze.Report{}, err
	}
	r, err := newReader(config)
	if err != nil {
		return analyze.Report{}, err
	}
	s, err := r.snapshot(ctx, "")
	if err != nil {
		return analyze.Report{}, err
	}
	grids, denied, err := r.server.Grids(ctx, c.givenNamespace())
	if err != nil {
		return analyze.Report{}, err
	}
	if denied != "" {
		fmt.Fprintf(std.Err, "warning: %s\n", denied)
	}
	a := analyze.Config{Topology: t, Grids: grids, Namespace: c.givenNamespace()}
	if err := a.CheckNamespace(s); err != nil {
		return analyze.Report{}, err
	}
	return analyze.Analyze(s, a), nil
}
