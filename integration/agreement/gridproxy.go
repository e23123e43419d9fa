package agreement

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/labels"
)

// Result is what a proxy makes of a Cluster, by family: IPv4, IPv6.
type Result struct {
	Text   [2][]byte   // its rules, as iptables-restore or iptables-save writes them
	Health [2][]string // what its health-check node ports answer
}

// closureFunc is topology.Resolve, or what a test puts in its place.
type closureFunc func(topology.Snapshot, topology.Config) topology.View

// gridProxy is what gridproxy makes of a Cluster in the calling thread's network
// namespace.
func gridProxy(c Cluster, resolve closureFunc) (Result, error) {
	machine, err := host.Read()
	if err != nil {
		return Result{}, fmt.Errorf("reading the addresses of the network namespace: %w", err)
	}
	ruleset := compile(c, machine, resolve)
	var r Result
	for family := range r.Text {
		o := render.Options{Family: netfilter.Family(family), MasqueradeBit: masqueradeBit, RandomFully: true, DropInvalid: true}
		var b bytes.Buffer
		if _, err := render.Ruleset(ruleset, o).WriteTo(&b); err != nil {
			return Result{}, fmt.Errorf("writing gridproxy's rules: %w", err)
		}
		r.Text[family] = b.Bytes()
	}
	server := healthcheck.New(func(rules.Family) bool { return true })
	defer server.Close()
	for _, failed := range server.Sync(ruleset, rules.Outcomes{}) {
		return Result{}, failed
	}
	for family := range r.Health {
		if r.Health[family], err = askHealth(c, family == 1); err != nil {
			return Result{}, err
		}
	}
	return r, nil
}

// compile decides what the node must enforce, which names no mechanism.
func compile(c Cluster, machine topology.Host, resolve closureFunc) rules.Ruleset {
	view := resolve(snapshot(c, machine), topology.Config{NodesWithoutUnit: topology.NodesWithoutUnit(c.Flags.NodesWithoutUnit)})
	return rules.Compile(view, config(c.Flags))
}

func snapshot(c Cluster, machine topology.Host) topology.Snapshot {
	s := topology.Snapshot{
		Node: c.Node, Self: c.self(), Nodes: map[string]labels.Set{}, LastKeys: c.LastKeys, Host: machine,
		Services: slices.Clone(c.Services),
	}
	for _, slice := range c.Slices {
		s.Slices = append(s.Slices, topology.NewSlice(slice))
	}
	for _, n := range c.Nodes {
		s.Nodes[n.Name] = n.Labels
	}
	slices.SortFunc(s.Services, compareObjects)
	slices.SortFunc(s.Slices, compareObjects)
	return s
}

func compareObjects[T interface {
	GetNamespace() string
	GetName() string
}](a, b T) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

func config(f Flags) rules.Config {
	c := rules.Config{
		MasqueradeAll:      f.MasqueradeAll,
		LocalhostNodePorts: f.LocalhostNodePorts,
		DetectLocal:        rules.DetectLocal{Mode: rules.DetectLocalMode(f.DetectLocalMode), ClusterCIDRs: prefixes(f.ClusterCIDRs)},
	}
	for _, listed := range f.NodePortAddresses {
		if listed == "primary" {
			c.NodePortAddresses.Primary = true
			continue
		}
		c.NodePortAddresses.Prefixes = append(c.NodePortAddresses.Prefixes, prefixes(expandKeyword(listed, nil))...)
	}
	switch f.DetectLocalMode {
	case "BridgeInterface":
		c.DetectLocal.Bridge = f.PodInterface
	case "InterfaceNamePrefix":
		c.DetectLocal.InterfacePrefix = f.PodInterface
	}
	return c
}

func prefixes(texts []string) []netip.Prefix {
	var all []netip.Prefix
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}
