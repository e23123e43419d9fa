package main

import (
	"fmt"
	"io"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"

	"github.com/spf13/cobra"
)

func main() { command.Main(newRoot) }

func newRoot(std command.Stdio) *cobra.Command {
	root := &cobra.Command{
		Use:   "gridproxy",
		Short: "Keep the traffic of Services inside this node's NodeUnit",
		Long: `gridproxy writes the rules of Services into the kernel, as kube-proxy does. A Service with
the annotation topologyKeys gets only those endpoints whose node is in this node's unit.
` + command.ExitCodes,
	}
	root.AddCommand(newRun(std), newRender(std), newExplain(std), newDiff(std), newCleanup(std), newVersion(std))
	return root
}

// addOptions declares the flags on cmd and, before it runs, reads --config and checks what
// no single flag can. Warnings go to warn, except in run, which logs them.
func addOptions(cmd *cobra.Command, warn func(string), show ...options.Group) *options.Options {
	o := new(options.Defaults())
	o.AddFlags(cmd.Flags(), show...)
	body := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if o.ConfigFile != "" {
			warnings, err := options.ReadConfig(o.ConfigFile, cmd.Flags())
			for _, w := range warnings {
				warn(w)
			}
			if err != nil {
				return err
			}
		}
		if err := o.Check(); err != nil {
			return command.NewUsageError(err)
		}
		return body(cmd, args)
	}
	return o
}

// warnTo writes warnings one a line.
func warnTo(w io.Writer) func(text string) {
	return func(text string) { fmt.Fprintf(w, "warning: %s\n", strings.ReplaceAll(text, "\n", "; ")) }
}
