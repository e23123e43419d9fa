package main

import (
	"context"
	"math"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/cmd/inspect/matrix"
	"gridproxy/topology/watch"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

func newMatrix(std command.Stdio) *cobra.Command {
	in := &inputs{warn: warnTo(std.Err), stderr: std.Err, adopt: &adoption{own: []string{"output", "namespace"}}}
	var namespace string
	cmd := &cobra.Command{
		Use:   "matrix [[NAMESPACE/]SERVICE ...]",
		Short: "Show from which units the clients of each unit are answered",
		Long: `Show from which units the clients of each unit are answered, for all Services or the given ones.

A unit is all Nodes with one value of a label key that closes one of these Services. If they are all
open, the keys of all Services count. Nodes in no unit are shown too. A cell is about clients that
connect to the cluster IP:

  beijing          endpoints in these units answer
  own unit         the same, where many units share a line
  all              wherever the Service has endpoints, endpoints answer
  own node         each Node uses its own endpoints only
  refused          no endpoint is usable
  dropped          internalTrafficPolicy is Local, and no endpoint is on the Node
  differs by node  the Nodes of the unit have different answers: see gridproxy explain --all-nodes
  differs by port  the ports of the Service have different answers: see gridproxy explain
  -                no rules are written for the Service

Units are columns if the table then has at most 100 columns of text, else lines. -o html is a page
that needs neither a network nor a script. There are at most 1000 units.

All Nodes are read, and no node name is needed. A Service without a namespace is in --namespace, else
in namespace default; svc/NAME and service/NAME mean NAME.

In the container of a running daemon no flag is needed: without any flag but --output and --namespace,
the flags of the running "gridproxy run" are used, and "Flags: from process N" is printed to standard
error.`,
		Example: `  gridproxy matrix --manifests deploy/samples/site
  gridproxy matrix default/echo default/orders --kubeconfig ~/.kube/config
  gridproxy matrix -n shop --kubeconfig ~/.kube/config -o html > matrix.html`,
		Args:    cobra.ArbitraryArgs,
		PreRunE: in.read,
		RunE: func(cmd *cobra.Command, args []string) error {
			names := make([]types.NamespacedName, len(args))
			for i, text := range args {
				var err error
				if names[i], err = explain.ParseName(text, namespace); err != nil {
					return command.NewUsageError(err)
				}
			}
			return printMatrix(cmd.Context(), in, names, namespace, std)
		},
	}
	in.declare(cmd, options.GroupSource)
	in.AddOutput(cmd.Flags(), matrix.FormatHTML)
	addNamespace(cmd.Flags(), &namespace)
	in.completeServices(cmd, &namespace, math.MaxInt)
	showAnswerFlags(cmd)
	return cmd
}

// printMatrix prints the matrix of the named Services. Without names it is that of all Services
// in a namespace, "" = in any.
func printMatrix(ctx context.Context, in *inputs, names []types.NamespacedName, namespace string, std command.Stdio) error {
	snapshot, err := in.allNodes(ctx, std.In)
	if err != nil {
		return err
	}
	rows, err := explain.InNamespace(snapshot, namespace)
	if len(names) > 0 {
		rows, err = explain.FindAll(snapshot, names)
	}
	if err != nil {
		return err
	}
	if watch.HasAPIServer(rows) {
		in.warnAll(assumedProxies(snapshot.Slices))
	}
	done := command.Waiting(std.Err, "resolving the matrix")
	m := matrix.New(snapshot, in.Topology(), rows)
	done()
	return matrix.Print(std.Out, in.Output, m)
}
