package main

import (
	"context"
	"fmt"
	"io"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/topology"

	"github.com/spf13/cobra"
)

func newExplain(std command.Stdio, c *connection) *cobra.Command {
	var output, noUnit string
	cmd := &cobra.Command{
		Use:   "explain [NAMESPACE/]SERVICE",
		Short: "Show on each Node how many endpoints of a Service it uses, and where they are",
		Long: `Show on each Node how many endpoints of a Service it uses, and on which Nodes those are to which its
cluster IP leads. The answer is that of "gridproxy explain --all-nodes". "gridproxy explain" on a Node
says of each endpoint why it is used or not.

A Service without a namespace is in --namespace, else in the namespace of the context.
` + command.ExitCodes,
		Example: `  kubectl grid explain web -n shop
  kubectl grid explain shop/web -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments: want the name of one Service", len(args))
			}
			return checkAnswer(output, noUnit)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			all, err := c.explain(cmd.Context(), args, topology.Config{NodesWithoutUnit: topology.NodesWithoutUnit(noUnit)})
			if err != nil {
				return err
			}
			return command.PrintAs(std.Out, output, all, func(w io.Writer) error { return explain.WriteNodes(w, all) })
		},
	}
	addNoUnit(cmd.Flags(), &noUnit)
	command.AddFormat(cmd.Flags(), &output)
	return cmd
}

// explain is a line about one Service for each Node.
func (c *connection) explain(ctx context.Context, args []string, config topology.Config) ([]explain.Summary, error) {
	names, err := c.serviceNames(args)
	if err != nil {
		return nil, command.NewUsageError(err)
	}
	s, err := c.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return explain.OnNodes(s, config, names[0])
}
