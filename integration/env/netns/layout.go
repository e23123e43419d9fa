package netns

import (
	"fmt"
	"net/netip"
)

// Layout is the cluster to build.
type Layout struct {
	Nodes []NodeSpec
	Pods  []PodSpec
}

// NodeSpec is a node: its labels and addresses as its Node object will show them, and the
// ranges that its Pods have their addresses from.
type NodeSpec struct {
	Name     string
	Labels   map[string]string
	Addrs    []netip.Addr
	PodCIDRs []netip.Prefix
}

// PodSpec is a Pod. Every Pod answers HTTP on TCP and one datagram with one on UDP, on
// EchoPort, so it serves as client and as endpoint.
type PodSpec struct {
	Name, Node string
	Addrs      []netip.Addr
}

// EchoPort is the port on which every Pod answers, as the echo server of the SuperEdge
// manual does.
const EchoPort = 8080

// The topology key and the units of the SuperEdge manual.
const (
	UnitKey   = "location"
	Beijing   = "beijing"
	Guangzhou = "guangzhou"
)

// Manual is the cluster of the SuperEdge manual: three nodes in Beijing and three in
// Guangzhou with the manual's names and IPv4 addresses, its four Pods on the nodes where
// the manual has them, and on each node one more Pod, "client-<node>", to ask from. The
// manual says nothing of Pod ranges; these are the /26 that its Pods' addresses fall in.
// IPv6 is ours.
func Manual() Layout {
	var l Layout
	for i, n := range []struct{ name, unit, addr, pods string }{
		{"bj-1", Beijing, "192.168.10.12", "10.0.0.64/26"},
		{"bj-2", Beijing, "192.168.10.7", "10.0.0.0/26"},
		{"bj-3", Beijing, "192.168.10.15", "10.0.1.64/26"},
		{"gz-1", Guangzhou, "172.16.34.168", "10.0.1.128/26"},
		{"gz-2", Guangzhou, "172.16.32.211", "10.0.0.128/26"},
		{"gz-3", Guangzhou, "172.16.35.193", "10.0.1.0/26"},
	} {
		v4, v6 := netip.MustParsePrefix(n.pods), netip.MustParsePrefix(fmt.Sprintf("fd00:10:%d::/64", i+1))
		l.Nodes = append(l.Nodes, NodeSpec{
			Name:     n.name,
			Labels:   map[string]string{"kubernetes.io/hostname": n.name, UnitKey: n.unit},
			Addrs:    []netip.Addr{netip.MustParseAddr(n.addr), netip.MustParseAddr(fmt.Sprintf("fd00:18::%d", i+1))},
			PodCIDRs: []netip.Prefix{v4, v6},
		})
		l.Pods = append(l.Pods, PodSpec{
			Name:  ClientOn(n.name),
			Node:  n.name,
			Addrs: []netip.Addr{v4.Addr().Next().Next(), v6.Addr().Next().Next()},
		})
	}
	for _, p := range []struct{ name, node, v4, v6 string }{
		{"beijing-wrx7r", "bj-1", "10.0.0.70", "fd00:10:1::70"},
		{"beijing-v9zdr", "bj-3", "10.0.1.72", "fd00:10:3::72"},
		{"guangzhou-hhmt2", "gz-2", "10.0.0.139", "fd00:10:5::139"},
		{"guangzhou-k9gc7", "gz-3", "10.0.1.8", "fd00:10:6::8"},
	} {
		l.Pods = append(l.Pods, PodSpec{
			Name: p.name, Node: p.node,
			Addrs: []netip.Addr{netip.MustParseAddr(p.v4), netip.MustParseAddr(p.v6)},
		})
	}
	return l
}

// Only is the layout with some of its nodes and the Pods on them.
func (l Layout) Only(nodes ...string) Layout {
	keep := make(map[string]bool, len(nodes))
	for _, n := range nodes {
		keep[n] = true
	}
	var out Layout
	for _, n := range l.Nodes {
		if keep[n.Name] {
			out.Nodes = append(out.Nodes, n)
		}
	}
	for _, p := range l.Pods {
		if keep[p.Node] {
			out.Pods = append(out.Pods, p)
		}
	}
	return out
}

// ClientOn is the name of the Pod of Manual that asks from a node.
func ClientOn(node string) string { return "client-" + node }

// ClusterCIDRs hold every Pod of Manual, as --cluster-cidr takes them.
func ClusterCIDRs() string { return "10.0.0.0/16,fd00:10::/32" }
