package main

import (
	"bytes"
	"context"
	"fmt"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/topology"

	"github.com/spf13/cobra"
)

const renderHelp = `Print the rules that a node would write, as one text for iptables-restore (or
ip6tables-restore with --ip-family ipv6).

With --proxy-mode ipvs there are four texts: virtual servers for ipvsadm-restore, sets for ipset
restore, our link with its addresses for ip -batch, and rules for iptables-restore. --part prints
one of them; without it each follows a comment line with its name. Rules name sets, so the sets
are restored first.

The text depends on the flags and files alone: it does not depend on this machine's interfaces,
sysctls, tools and environment, nor on the order of the documents. The addresses of the node are the
status.addresses of its Node object, which does not have their networks, and 127.0.0.1 and ::1.
External addresses in one of these networks are printed as virtual servers, although the node writes
them as chains. Rules that need iptables 1.6.2 (--random-fully) and the rule that drops INVALID
packets are always printed, nfacct matches never.

With --names the text is what DNS says on the node about every Service: first the Namespaces, then for
each Service its kind and cluster IPs or external name, its endpoints with their host names, and the
aliases of Pods of StatefulSetGrids, which are the same in every unit.

With --from-state the rules are those of a state that a daemon saved in its --state-dir, which needs no
API server. The line "State: saved TIME, read from FILE" is printed to standard error. The node is that
of the file.

In the container of a running daemon no flag is needed: without any flag but --node-name, --from-state,
--ip-family and --part, the flags of the running "gridproxy run" are used, and "Flags: from process N"
is printed to standard error.`

func newRender(std command.Stdio) *cobra.Command {
	in := &inputs{warn: warnTo(std.Err), stderr: std.Err, adopt: &adoption{own: []string{"node-name", "ip-family", "part", "names", options.FromStateFlag}}}
	cmd := &cobra.Command{
		Use:   "render (--node-name NODE (--manifests FILE|DIR|- ... | --kubeconfig FILE) | --from-state FILE)",
		Short: "Print the rules that a node would write",
		Long:  renderHelp,
		Example: `  gridproxy render --manifests cluster.yaml --node-name bj-3 --cluster-cidr 10.0.0.0/16
  gridproxy render --manifests cluster.yaml --node-name bj-3 --proxy-mode ipvs --part ipvs | ipvsadm-restore
  gridproxy render --from-state /var/lib/gridproxy/state --cluster-cidr 10.0.0.0/16
  kubectl get svc,endpointslices,nodes -A -o yaml | gridproxy render --manifests - --node-name bj-3
  gridproxy render --names --manifests cluster.yaml --node-name bj-3`,
		Args:    command.NoArgs,
		PreRunE: in.read,
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if in.adopted && in.saved == nil {
			name, err := nodeName(in.NodeName)
			if err != nil {
				return err
			}
			in.NodeName = name
		}
		if in.NodeName == "" {
			return command.NewUsageError(fmt.Errorf(`--node-name "": want the name of the Node whose rules are printed`))
		}
		return renderSource(cmd.Context(), in, std)
	}
	in.declare(cmd, options.GroupSource, options.GroupRules)
	in.AddFromState(cmd.Flags())
	in.AddFamily(cmd.Flags())
	in.AddPart(cmd.Flags())
	in.AddNames(cmd.Flags())
	return cmd
}

// renderSource prints the rules of the node for the present objects of the source, or with
// --names what DNS answers there.
func renderSource(ctx context.Context, in *inputs, std command.Stdio) error {
	snapshot, err := in.snapshot(ctx, std.In)
	if err != nil {
		return err
	}
	in.saySaved()
	write := render
	if in.Names {
		write = renderNames
	}
	text, warnings, err := write(snapshot, in.Options)
	in.warnAll(warnings)
	if err != nil {
		return err
	}
	return command.Flush(std.Out, text)
}

// render returns the text of the rules, with warnings for the operator.
func render(s topology.Snapshot, o options.Options) (text []byte, warnings []string, err error) {
	view := topology.Resolve(s, o.Topology())
	want := rules.Compile(view, apiserver.RulesConfig(o))
	warnings = append(doubts(s, view), driver.Warnings(want, o)...)
	var b bytes.Buffer
	if err := driver.Render(&b, want, o); err != nil {
		return nil, nil, fmt.Errorf("writing the rules as text: %w", err)
	}
	return b.Bytes(), warnings, nil
}

// doubts returns warnings about a Snapshot that is valid but probably a mistake.
func doubts(s topology.Snapshot, v topology.View) []string {
	var doubts []string
	switch unknown := unknownNode(s); {
	case unknown != "":
		doubts = append(doubts, unknown)
	case len(v.Self.IPs) == 0:
		doubts = append(doubts, fmt.Sprintf("Node %q has no address of type InternalIP or ExternalIP in status.addresses: rules that name the node's own addresses are left out", s.Node))
	}
	for ports := range explain.ByService(v) {
		for _, w := range ports[0].Warnings {
			doubts = append(doubts, fmt.Sprintf("Service %s: %s", ports[0].Name.NamespacedName, w))
		}
		if s.APIProxies == nil {
			doubts = append(doubts, assumedProxies(ports[0].Slices)...)
		}
		if sp := ports[0]; sp.Closure.Malformed != "" {
			doubts = append(doubts, fmt.Sprintf("Service %s: %s; %s", sp.Name.NamespacedName, sp.Closure.Malformed, topology.MalformedEffect(sp.Closure.Keys)))
		}
	}
	return doubts
}

// assumedProxies returns a warning for each API proxy that is assumed to answer.
func assumedProxies(all []*topology.Slice) (warnings []string) {
	for _, addr := range topology.APIProxies(all) {
		warnings = append(warnings, "Service default/kubernetes: "+explain.AssumedProxy(addr))
	}
	return warnings
}

// unknownNode returns a warning if the source does not have the Node of a Snapshot, else "".
func unknownNode(s topology.Snapshot) string {
	if _, known := s.Nodes[s.Node]; known {
		return ""
	}
	return fmt.Sprintf("the source has no Node %q: closed Services refuse there, ordinary ones work; check --node-name", s.Node)
}
