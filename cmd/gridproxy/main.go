package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/command/man"
	"gridproxy/cmd/gridproxy/daemon"

	"github.com/spf13/cobra"
	"github.com/vishvananda/netlink"
)

func main() {
	if err := netlink.SetSocketTimeout(netlinkTimeout); err != nil {
		fmt.Fprintln(os.Stderr, "error: limiting how long netlink sockets wait:", err)
		os.Exit(command.Failure)
	}
	command.Main(newRoot, daemon.EndLimit)
}

func newRoot(std command.Stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "gridproxy",
		Short: "Keep the traffic of Services inside this node's NodeUnit",
		Long: `gridproxy writes the rules of Services into the kernel, as kube-proxy does. A Service with
the annotation topologyKeys gets only those endpoints whose node is in this node's unit.`,
	}
	root.AddCommand(newRun(std), newRender(std), newExplain(std), newMatrix(std), command.Reports(newAnalyze(std)), command.Reports(newDiff(std)), newCleanup(std), command.Reports(newStatus(std)), newVersion(std), man.New(std))
	return root
}

func warnTo(w io.Writer) func(text string) {
	return func(text string) { fmt.Fprintf(w, "warning: %s\n", strings.ReplaceAll(text, "\n", "; ")) }
}
