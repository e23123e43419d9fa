package main

import (
	"time"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
)

// endLimit is how long the process may run after SIGTERM.
const endLimit = leaveAlone + 7*time.Second

func main() { command.Main(newRoot, endLimit) }

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
