//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"slices"
	"strings"

	"gridproxy/topology"
)

// dnsViewOf is what DNS says about a cluster to its node.
func dnsViewOf(c dnsCluster) topology.DNSView {
	s := topology.Snapshot{
		Node: c.Node, Nodes: c.Nodes, LastKeys: c.LastKeys,
		Services:   slices.Clone(c.Services),
		Namespaces: []string{},
	}
	for _, n := range c.Namespaces {
		s.Namespaces = append(s.Namespaces, n.Name)
	}
	for _, slice := range c.Slices {
		s.Slices = append(s.Slices, topology.NewSliceWithNames(slice))
	}
	slices.Sort(s.Namespaces)
	slices.SortFunc(s.Services, topology.CompareObjects)
	slices.SortFunc(s.Slices, topology.CompareObjects)
	return topology.ResolveDNS(s, topology.Config{NodesWithoutUnit: c.WithoutUnit})
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

// dnsHostnameOf is the name of an endpoint that has no hostname.
func dnsHostnameOf(addr string) string {
	name := strings.NewReplacer(".", "-", ":", "-").Replace(addr)
	if strings.HasSuffix(name, "-") {
		name += "0"
	}
	return name
}
