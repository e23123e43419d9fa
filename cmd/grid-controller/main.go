package main

import (
	"gridproxy/cmd/command"
	"gridproxy/cmd/command/man"
	"gridproxy/cmd/grid-controller/expand"
	"gridproxy/cmd/grid-controller/join"
	"gridproxy/cmd/grid-controller/migrate"

	"github.com/spf13/cobra"
)

func main() { command.Main(newRoot, 0 /* the manager has a limit of its own */) }

func newRoot(std command.Stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "grid-controller",
		Short: "Give every NodeUnit the workloads of its Grids",
		Long: `grid-controller expands each DeploymentGrid and StatefulSetGrid into one Deployment or
StatefulSet in every NodeUnit, and each ServiceGrid into one Service that stays inside them.`,
	}
	root.AddCommand(newRun(std), command.Reports(expand.New(std)), migrate.New(std.Out))
	root.AddCommand(join.New(std), join.NewLeave(std), command.NewVersion(std), man.New(std))
	return root
}
