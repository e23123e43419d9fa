package main

import (
	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
)

func main() { command.Main(newRoot, 0 /* each request has a deadline */) }

func newRoot(std command.Stdio) *cobra.Command {
	root := &cobra.Command{
		Use:         "kubectl-grid",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl grid"},
		Short:       "Show the daemons of gridproxy and the units of Grids",
		Long: `kubectl grid shows the daemons of gridproxy on all Nodes, the units of Grids, and which unit answers
which unit. It changes nothing. All flags of kubectl for the connection are accepted.
` + command.ExitCodes,
	}
	c := newConnection(root.PersistentFlags())
	root.AddCommand(newStatus(std, c), newUnits(std, c), newMatrix(std, c), newExplain(std, c), newVersion(std))
	return root
}

func newVersion(std command.Stdio) *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Long:  "Print what this binary was built from.\n" + command.ExitCodes,
		Args:  command.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return command.ThisBuild().WriteTable(std.Out) },
	}
}
