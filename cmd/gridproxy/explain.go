package main

import (
	"cmp"
	"fmt"
	"os"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"

	"github.com/spf13/cobra"
)

func newExplain(std command.Stdio) *cobra.Command {
	var o *options.Options
	warn := warnTo(std.Err)
	cmd := &cobra.Command{
		Use:   "explain [NAMESPACE/]SERVICE",
		Short: "Say of each endpoint of a Service whether this node uses it, and why not",
		Long: `Say of each endpoint of a Service whether a node uses it, and why not.

The node is --node-name, else the environment variable NODE_NAME. A Service without namespace
is one of namespace default. What a running daemon remembers is not known here: a Service
whose annotation cannot be read is shown as on a daemon that has just started.
` + command.ExitCodes,
		Example: `  gridproxy explain default/servicegrid-demo-svc --node-name bj-3 --manifests cluster.yaml
  gridproxy explain web --node-name bj-3 --kubeconfig ~/.kube/config -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments: want one Service, as NAMESPACE/NAME, or NAME for one in namespace default", len(args))
			}
			return nil
		},
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := explain.ParseName(args[0])
		if err != nil {
			return command.NewUsageError(err)
		}
		o.NodeName = cmp.Or(o.NodeName, os.Getenv("NODE_NAME"))
		if o.NodeName == "" {
			return command.NewUsageError(fmt.Errorf(`--node-name "": want the name of the Node whose view is explained; NODE_NAME is not set either`))
		}
		snapshot, warnings, err := readSnapshot(cmd.Context(), *o, std.In)
		for _, w := range warnings {
			warn(w)
		}
		if err != nil {
			return err
		}
		e, err := explain.Service(snapshot, topology.Resolve(snapshot, o.Topology()), name)
		if err != nil {
			return err
		}
		return printAs(std.Out, o.Output, e, e.WriteTable)
	}
	o = addOptions(cmd, warn, options.GroupSource)
	o.AddOutput(cmd.Flags())
	if f := cmd.Flags().Lookup("nodes-without-unit"); f != nil {
		f.Hidden = false // the one rule that decides about endpoints
	}
	return cmd
}
