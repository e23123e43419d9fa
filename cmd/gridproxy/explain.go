package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/topology"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
)

func newExplain(std command.Stdio) *cobra.Command {
	in := &inputs{warn: warnTo(std.Err), stderr: std.Err, adopt: &adoption{own: []string{"node-name", "output"}}}
	cmd := &cobra.Command{
		Use:   "explain [NAMESPACE/]SERVICE",
		Short: "Show for each endpoint of a Service whether this node uses it, and if not, why",
		Long: `Show for each endpoint of a Service whether a node uses it, and if not, why.

The node is --node-name, else the environment variable NODE_NAME. A Service without a namespace is
in namespace default. What a running daemon remembers is not known here: a Service whose annotation
cannot be parsed is shown as on a daemon that has just started.

In the container of a running daemon no flag is needed: without any flag but --node-name and --output,
the flags of the running "gridproxy run" are used, and "Flags: from process N" is printed to standard
error.

On the node itself the rules in its kernel are read too. They show whether the Service is quarantined,
because the kernel refuses its rules.

With --proxy-mode ipvs the virtual servers of the Service are shown too, and what chains decide
before them. The addresses of the node are the status.addresses of its Node object, which does not
have their networks. An external address in one of these networks is shown with a virtual server,
although the node writes it as chains.
` + command.ExitCodes,
		Example: `  gridproxy explain default/servicegrid-demo-svc --node-name bj-3 --manifests cluster.yaml
  gridproxy explain web --node-name bj-3 --kubeconfig ~/.kube/config -o json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("%d arguments: want one Service, as NAMESPACE/NAME, or NAME for one in namespace default", len(args))
			}
			return nil
		},
		PreRunE: in.read,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		name, err := explain.ParseName(args[0])
		if err != nil {
			return command.NewUsageError(err)
		}
		in.NodeName = cmp.Or(in.NodeName, os.Getenv("NODE_NAME"))
		if in.NodeName == "" && in.adopted {
			if in.NodeName, err = nodeName(""); err != nil {
				return err
			}
		}
		if in.NodeName == "" {
			return command.NewUsageError(fmt.Errorf(`--node-name "": want the name of the Node whose view is explained; NODE_NAME is not set either`))
		}
		return explainService(cmd.Context(), in.Options, name, std, in.warn)
	}
	in.declare(cmd, options.GroupSource)
	in.AddOutput(cmd.Flags())
	for _, name := range []string{"nodes-without-unit", "proxy-mode", "service-proxy-name", "feature-gates"} { // they change the answer
		cmd.Flags().Lookup(name).Hidden = false
	}
	return cmd
}

// explainService prints the explanation of one Service on one node.
func explainService(ctx context.Context, o options.Options, name types.NamespacedName, std command.Stdio, warn func(string)) error {
	snapshot, warnings, err := readSnapshot(ctx, o, std.In)
	for _, w := range warnings {
		warn(w)
	}
	if err != nil {
		return err
	}
	view := topology.Resolve(snapshot, o.Topology())
	e, err := explain.Service(snapshot, o.Topology(), view, name)
	if err != nil {
		return err
	}
	if o.Rules().IgnoreExternalIPs && len(explain.ExternalIPs(snapshot, name)) > 0 {
		e.Notes = append(e.Notes, "its externalIPs are ignored: feature gate "+options.GateExternalIPs+" is false")
	}
	want := rules.Compile(view, rulesConfig(o))
	e.AddConflicts(name, want.AddressConflicts)
	evidence, err := evidenceHere(ctx, o)
	if err != nil {
		warn(err.Error())
	}
	e.AddEvidence(name, view, evidence)
	want.Services = slices.DeleteFunc(want.Services, func(s *rules.Service) bool { return s.Name.NamespacedName != name })
	driver.Explain(&e, want, o)
	return printAs(std.Out, o.Output, e, e.WriteTable)
}
