package main

import (
	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
)

func main() { command.Main(newRoot, endTimeout) }

func newRoot(std command.Stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "grid-dns",
		Short: "Answer DNS queries of one node with the endpoints of its NodeUnit",
		Long: `grid-dns is the DNS server of one node. The gridproxy of the node tells it what DNS says
there, so that names of closed Services lead to endpoints of this node's unit only, with the API server away too.`,
	}
	root.AddCommand(newServe(std), newCheck(), command.NewVersion(std))
	return root
}
