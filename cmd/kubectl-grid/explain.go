package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"gridproxy/cmd/command"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/topology"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

type explainFlags struct {
	output, noUnit string
	node           string // "" = all
	all            bool
}

func newExplain(std command.Stdio, c *connection) *cobra.Command {
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain [NAMESPACE/]SERVICE | --all --node NODE",
		Short: "Show on each Node how many endpoints of a Service it uses, or on one Node which",
		Long: `Show on each Node how many endpoints of a Service it uses, and on which Nodes those are to which its
cluster IP leads. The answer is that of "gridproxy explain --all-nodes".

--node shows for each endpoint whether this Node uses it, and if not, why. The answer is that of
"gridproxy explain" without what only the Node knows: what its kernel holds, its virtual servers, and
the networks of its addresses. --all prints a line for each Service on this Node.

A Service without a namespace is in --namespace, else in the namespace of the context. With --all,
--namespace shows only those in it.`,
		Example: `  kubectl grid explain web -n shop
  kubectl grid explain shop/web --node bj-1
  kubectl grid explain --all --node bj-1 -o json`,
		Args: func(_ *cobra.Command, args []string) error { return flags.checkArgs(args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if flags.all {
				return flags.printServices(cmd.Context(), c, std)
			}
			names, err := c.serviceNames(args)
			if err != nil {
				return command.NewUsageError(err)
			}
			if flags.node != "" {
				return flags.printService(cmd.Context(), c, names[0], std)
			}
			return flags.printNodes(cmd.Context(), c, names[0], std)
		},
	}
	cmd.Flags().StringVar(&flags.node, "node", "", "`NODE` whose endpoints are explained; without it all Nodes")
	cmd.Flags().BoolVar(&flags.all, "all", false, "a line for each Service instead of one Service; with --node")
	addNoUnit(cmd.Flags(), &flags.noUnit)
	c.completeServices(cmd, 1)
	command.AddFormat(cmd.Flags(), &flags.output)
	return cmd
}

func (f explainFlags) checkArgs(args []string) error {
	switch {
	case f.all && len(args) > 0:
		return fmt.Errorf("--all and %q: give one of them", args[0])
	case f.all && f.node == "":
		return errors.New("--all without --node: give the Node; kubectl grid matrix shows all Services from all units")
	case !f.all && len(args) != 1:
		return fmt.Errorf("%d arguments: want the name of one Service", len(args))
	}
	return checkAnswer(f.output, f.noUnit)
}

func (f explainFlags) topology() topology.Config {
	return topology.Config{NodesWithoutUnit: topology.NodesWithoutUnit(f.noUnit)}
}

// printNodes prints a line about one Service for each Node.
func (f explainFlags) printNodes(ctx context.Context, c *connection, name types.NamespacedName, std command.Stdio) error {
	s, err := c.snapshot(ctx, "")
	if err != nil {
		return err
	}
	all, err := explain.OnNodes(s, f.topology(), name)
	if err != nil {
		return err
	}
	return command.PrintAs(std.Out, f.output, all, func(w io.Writer) error { return explain.WriteNodes(w, all) })
}

// printService prints the explanation of one Service on one Node.
func (f explainFlags) printService(ctx context.Context, c *connection, name types.NamespacedName, std command.Stdio) error {
	s, err := c.snapshot(ctx, f.node)
	if err != nil {
		return err
	}
	view := topology.Resolve(s, f.topology())
	e, err := explain.Service(s, f.topology(), view, name)
	if err != nil {
		return err
	}
	e.AddConflicts(name, rules.Compile(view, rules.Config{}).AddressConflicts)
	return command.PrintAs(std.Out, f.output, e, e.WriteTable)
}

// printServices prints a line for each Service on one Node.
func (f explainFlags) printServices(ctx context.Context, c *connection, std command.Stdio) error {
	s, err := c.snapshot(ctx, f.node)
	if err != nil {
		return err
	}
	if s.Services, err = explain.InNamespace(s, c.givenNamespace()); err != nil {
		return err
	}
	all := explain.Summaries(s, f.topology())
	return command.PrintAs(std.Out, f.output, all, func(w io.Writer) error { return explain.WriteServices(w, all) })
}
