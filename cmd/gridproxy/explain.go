package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/gridproxy/status"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/rules/names"
	"gridproxy/topology"
	"gridproxy/topology/similar"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
)

// explainFlags are those of explain alone.
type explainFlags struct {
	namespace     string
	dns           string // a name
	all, allNodes bool
}

const explainHelp = `Show for each endpoint of a Service whether a node uses it, and if not, why.

The node is --node-name, else the environment variable NODE_NAME. A Service without a namespace is
in --namespace, else in namespace default; svc/NAME and service/NAME mean NAME. What a running daemon
remembers is not known here: a Service whose annotation cannot be parsed is shown as on a daemon that
has just started.

With --from-state the answer is that of a state that a daemon saved in its --state-dir, which needs no
API server, and the line "State:" says from when it is. The node is that of the file, and the topology
keys that the daemon remembers are in it.

--all prints a line for each Service: what closes it, how many of its endpoints this node uses, and
the Nodes of those to which its cluster IP leads. --all-nodes prints such a line for one Service and
each Node; no node name is needed then, and all Nodes are read. Endpoints count once for each port.
gridproxy matrix shows all Services from all units.

--dns explains a name instead of a Service: which records grid-dns has for it on the node, which
Service it belongs to, and what closure leaves out. A name below in-addr.arpa or ip6.arpa, or an
address, is answered with the names of that address.

In the container of a running daemon no flag is needed: without any flag but --node-name,
--from-state, --output, --namespace, --all, --all-nodes and --dns, the flags of the running "gridproxy run"
are used, and "Flags: from process N" is printed to standard error.

On the node itself the rules in its kernel are read too. They show whether the Service is quarantined,
because the kernel refuses its rules. Lines of --all and --all-nodes do not say that.

With --proxy-mode ipvs the virtual servers of the Service are shown too, and what chains decide
before them. The addresses of the node are the status.addresses of its Node object, which does not
have their networks. An external address in one of these networks is shown with a virtual server,
although the node writes it as chains.`

func newExplain(std command.Stdio) *cobra.Command {
	own := []string{"node-name", options.FromStateFlag, "output", "namespace", "all", "all-nodes", "dns"}
	in := &inputs{warn: warnTo(std.Err), stderr: std.Err, adopt: &adoption{own: own}}
	var flags explainFlags
	cmd := &cobra.Command{
		Use:   "explain [NAMESPACE/]SERVICE | --all | --dns NAME",
		Short: "Show for each endpoint of a Service whether this node uses it, and if not, why",
		Long:  explainHelp,
		Example: `  gridproxy explain default/servicegrid-demo-svc --node-name bj-3 --manifests cluster.yaml
  gridproxy explain web --node-name bj-3 --kubeconfig ~/.kube/config -o json
  gridproxy explain web --from-state /var/lib/gridproxy/state
  gridproxy explain --all --node-name bj-1 --manifests deploy/samples/site -n default
  gridproxy explain svc/echo --all-nodes --manifests deploy/samples/site`,
		Args:    func(_ *cobra.Command, args []string) error { return flags.checkArgs(args) },
		PreRunE: in.read,
		RunE: func(cmd *cobra.Command, args []string) error {
			return flags.run(cmd.Context(), in, args, std)
		},
	}
	in.declare(cmd, options.GroupSource)
	in.AddFromState(cmd.Flags())
	in.AddOutput(cmd.Flags())
	addNamespace(cmd.Flags(), &flags.namespace)
	in.completeServices(cmd, &flags.namespace, 1)
	cmd.Flags().BoolVar(&flags.all, "all", false, "a line for each Service instead of one Service")
	cmd.Flags().StringVar(&flags.dns, "dns", "", "explain what DNS says about a `NAME` of the cluster, such as web.default.svc.cluster.local, instead of a Service")
	cmd.Flags().BoolVar(&flags.allNodes, "all-nodes", false, "a line for each Node instead of one node's view")
	showAnswerFlags(cmd)
	return cmd
}

// showAnswerFlags puts the flags into the help that change what a Service answers.
func showAnswerFlags(cmd *cobra.Command) {
	for _, name := range []string{"nodes-without-unit", "proxy-mode", "service-proxy-name", "feature-gates"} {
		cmd.Flags().Lookup(name).Hidden = false
	}
}

func addNamespace(fs *pflag.FlagSet, namespace *string) {
	fs.StringVarP(namespace, "namespace", "n", "", "`NAMESPACE` of a Service that is given without one; without any Service: only those in it")
}

func (f explainFlags) checkArgs(args []string) error {
	switch {
	case f.dns != "" && (f.all || f.allNodes || len(args) > 0):
		return fmt.Errorf("--dns %s: it explains one name; give no Service, --all or --all-nodes", f.dns)
	case f.dns != "":
		return nil
	case f.all && f.allNodes:
		return fmt.Errorf("--all and --all-nodes: give one of them; gridproxy matrix shows all Services from all units")
	case f.all && len(args) > 0:
		return fmt.Errorf("--all and %q: give one of them", args[0])
	case !f.all && len(args) != 1:
		return fmt.Errorf("%d arguments: want one Service, as NAMESPACE/NAME, or NAME for one in namespace %s; or --all", len(args), cmp.Or(f.namespace, "default"))
	}
	return nil
}

func (f explainFlags) run(ctx context.Context, in *inputs, args []string, std command.Stdio) error {
	var name types.NamespacedName
	if !f.all && f.dns == "" {
		var err error
		if name, err = explain.ParseName(args[0], f.namespace); err != nil {
			return command.NewUsageError(err)
		}
	}
	if f.allNodes && in.saved != nil {
		return command.NewUsageError(fmt.Errorf("--all-nodes and --%s %s: a saved state has the Nodes of its own units alone; leave one of them out", options.FromStateFlag, in.FromState))
	}
	if f.allNodes {
		return explainByNode(ctx, in, name, std)
	}
	in.NodeName = cmp.Or(in.NodeName, os.Getenv("NODE_NAME"))
	if in.NodeName == "" && in.adopted {
		var err error
		if in.NodeName, err = nodeName(""); err != nil {
			return err
		}
	}
	if in.NodeName == "" {
		offer := ""
		if !f.all && f.dns == "" {
			offer = "; --all-nodes shows a line for each Node"
		}
		return command.NewUsageError(fmt.Errorf(`--node-name "": want the name of the Node whose view is explained; NODE_NAME is not set either%s`, offer))
	}
	if f.dns != "" {
		return explainName(ctx, in, f.dns, std)
	}
	if f.all {
		return explainAll(ctx, in, f.namespace, std)
	}
	return explainService(ctx, in, name, std)
}

// explainAll prints a line for each Service of a namespace, "" = of all, on one node.
func explainAll(ctx context.Context, in *inputs, namespace string, std command.Stdio) error {
	snapshot, err := in.snapshot(ctx, std.In)
	if err != nil {
		return err
	}
	if snapshot.Services, err = explain.InNamespace(snapshot, namespace); err != nil {
		return err
	}
	if err := in.checkNode(snapshot); err != nil {
		return err
	}
	in.saySaved()
	if text := unknownNode(snapshot); text != "" {
		in.warn(text)
	}
	all := explain.Summaries(snapshot, in.Topology())
	return command.PrintAs(std.Out, in.Output, all, func(w io.Writer) error { return explain.WriteServices(w, all) })
}

// checkNode returns an error if the source is no saved state, has Nodes, and the one whose view
// is explained is not among them.
func (in *inputs) checkNode(s topology.Snapshot) error {
	if _, known := s.Nodes[s.Node]; known || len(s.Nodes) == 0 || in.saved != nil {
		return nil
	}
	hint := "check --node-name"
	if names := similar.Names(s.Node, slices.Sorted(maps.Keys(s.Nodes))); len(names) > 0 {
		hint = "similar names are " + strings.Join(names, ", ")
	}
	return fmt.Errorf("the source has no Node %q: %s", s.Node, hint)
}

func explainName(ctx context.Context, in *inputs, text string, std command.Stdio) error {
	question, err := explain.ParseDNSQuestion(text, in.DNS.Domain)
	if err != nil {
		return command.NewUsageError(err)
	}
	in.Names = true // the source has names
	snapshot, err := in.snapshot(ctx, std.In)
	if err != nil {
		return err
	}
	if snapshot.Namespaces == nil {
		return errNoNames
	}
	if err := in.checkNode(snapshot); err != nil {
		return err
	}
	in.saySaved()
	a := explain.DNS(snapshot, in.Topology(), names.Config{Domain: in.DNS.Domain, TTL: names.DefaultTTL, NameServer: in.DNS.Service}, question)
	return command.PrintAs(std.Out, in.Output, a, a.WriteTable)
}

// explainByNode prints a line for each Node about one Service.
func explainByNode(ctx context.Context, in *inputs, name types.NamespacedName, std command.Stdio) error {
	snapshot, err := in.allNodes(ctx, std.In)
	if err != nil {
		return err
	}
	all, err := explain.OnNodes(snapshot, in.Topology(), name)
	if err != nil {
		return err
	}
	return command.PrintAs(std.Out, in.Output, all, func(w io.Writer) error { return explain.WriteNodes(w, all) })
}

// explainService prints the explanation of one Service on one node. If this machine is that
// node, it also reads the kernel and asks the daemon.
func explainService(ctx context.Context, in *inputs, name types.NamespacedName, std command.Stdio) error {
	snapshot, err := in.snapshot(ctx, std.In)
	if err != nil {
		return err
	}
	if err := in.checkNode(snapshot); err != nil {
		return err
	}
	o := in.Options
	view := topology.Resolve(snapshot, o.Topology())
	e, err := explain.Service(snapshot, o.Topology(), view, name)
	if err != nil {
		return err
	}
	if in.saved != nil { // which has some Nodes alone
		e.State = in.stateLine()
	} else {
		e.Notes = append(e.Notes, explain.UncarriedKeys(snapshot, e.Keys)...)
	}
	if o.Rules().IgnoreExternalIPs && len(explain.ExternalIPs(snapshot, name)) > 0 {
		e.Notes = append(e.Notes, "its externalIPs are ignored: feature gate "+options.GateExternalIPs+" is false")
	}
	want := rules.Compile(view, apiserver.RulesConfig(o))
	e.AddConflicts(name, want.AddressConflicts)
	e.Notes = append(e.Notes, daemonNotes(ctx, o, name)...)
	evidence, err := evidenceHere(ctx, o)
	if err != nil {
		in.warn(err.Error())
	}
	e.AddEvidence(name, view, evidence)
	want.Services = slices.DeleteFunc(want.Services, func(s *rules.Service) bool { return s.Name.NamespacedName != name })
	driver.Explain(&e, want, o)
	return command.PrintAs(std.Out, o.Output, e, e.WriteTable)
}

// daemonNotes asks the daemon of this machine, if it is that of the Node, what it enforces
// otherwise than an API server says. It returns nil with manifests, or if no daemon answers.
func daemonNotes(ctx context.Context, o options.Options, service types.NamespacedName) []string {
	if o.StatusSocket == "" || len(o.Manifests) > 0 {
		return nil
	}
	s, err := status.Ask(ctx, o.StatusSocket)
	if err != nil || s.Node.Name != o.NodeName {
		return nil
	}
	return s.NotesOn(service.String())
}

// evidenceHere returns which Services this machine's kernel refuses, by its rules. The result
// is empty if this machine is not the Node that is explained, or if this process is not root.
func evidenceHere(ctx context.Context, o options.Options) (explain.Evidence, error) {
	if here, err := nodeName(""); err != nil || here != o.NodeName || os.Geteuid() != 0 {
		return explain.Evidence{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, evidenceTimeout)
	defer cancel()
	found, err := driver.ReadEvidence(ctx, o)
	if err != nil {
		return explain.Evidence{}, fmt.Errorf("cannot find out whether this machine's kernel refuses the Service's rules: %w", err)
	}
	return found, nil
}
