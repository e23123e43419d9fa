package main

import (
	"gridproxy/cmd/command"
	"gridproxy/cmd/command/man"

	"github.com/spf13/cobra"
)

func main() { command.Main(newRoot, 0 /* each request has a deadline */) }

func newRoot(std command.Stdio) *cobra.Command {
	root := &cobra.Command{
		Use:         "kubectl-grid",
		Annotations: map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl grid"},
		Short:       "Show the daemons of gridproxy and the units of Grids",
		Long: `kubectl grid shows the daemons of gridproxy on all Nodes, the units of Grids, and which unit answers
which unit, and what is wrong with Services, Nodes and Grids. It changes nothing. All flags of kubectl for the connection are accepted.`,
	}
	c := newConnection(root.PersistentFlags(), std.Err)
	root.AddCommand(command.Reports(newStatus(std, c)), newUnits(std, c), newClusters(std, c), newMatrix(std, c), newExplain(std, c))
	root.AddCommand(command.Reports(newAnalyze(std, c)), command.NewVersion(std), man.New(std))
	c.completeNamespace(root)
	return root
}
