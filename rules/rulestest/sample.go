package rulestest

import (
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// most is how many Services a Sample has at the most.
const most = 6

// Sample is a View with the Config to compile it under.
type Sample struct {
	View   topology.View
	Config rules.Config
}

// Ruleset draws a Ruleset of both families with up to six Services of every kind.
func Ruleset(t *rapid.T) rules.Ruleset { return Draw(t).Ruleset() }

// Draw draws a Sample.
func Draw(t *rapid.T) Sample {
	s := Sample{
		View: topology.View{
			Node: "node",
			Self: topology.NodeFacts{
				IPs:       []netip.Addr{addr("192.168.0.2"), addr("fd00:168::2")},
				HostAddrs: HostAddrs(),
				PodCIDRs:  []netip.Prefix{prefix("10.180.0.0/24"), prefix("fd00:180::/64")},
			},
		},
		Config: drawConfig(t),
	}
	for i := range rapid.IntRange(0, most).Draw(t, "services") {
		s = s.with(t, i)
	}
	return s
}

// HostAddrs returns the addresses of the machine that every Sample is of, sorted.
func HostAddrs() []netip.Addr {
	return []netip.Addr{
		addr("127.0.0.1"), addr("192.168.0.2"), addr("192.168.1.2"),
		addr("::1"), addr("fd00:168::2"), addr("fd00:168:1::2"),
	}
}

// Ruleset compiles the Sample.
func (s Sample) Ruleset() rules.Ruleset { return rules.Compile(s.View, s.Config) }

// Change draws a Sample that differs from s in one thing at the most: a Service is there,
// gone or another, or the Config is. All other ServicePorts are the same pointers.
func (s Sample) Change(t *rapid.T) Sample {
	if rapid.IntRange(0, 9).Draw(t, "change config") == 0 {
		s.Config = drawConfig(t)
		return s
	}
	i := rapid.IntRange(0, most-1).Draw(t, "service")
	if rapid.Bool().Draw(t, "delete") {
		return s.without(serviceName(i))
	}
	return s.with(t, i)
}

// with returns s with another Service of number i.
func (s Sample) with(t *rapid.T, i int) Sample {
	s = s.without(serviceName(i))
	ports := drawService(t, i)
	local := topology.FamilyCount{
		IPv4: rapid.IntRange(0, 2).Draw(t, "ready"), IPv6: rapid.IntRange(0, 2).Draw(t, "ready"),
	}
	for _, sp := range ports {
		sp.ReadyLocal = local
	}
	s.View.Ports = append(s.View.Ports, ports...)
	slices.SortFunc(s.View.Ports, func(a, b *topology.ServicePort) int { return topology.CompareNames(a.Name, b.Name) })
	return s
}

func (s Sample) without(name types.NamespacedName) Sample {
	s.View.Ports = slices.DeleteFunc(slices.Clone(s.View.Ports), func(sp *topology.ServicePort) bool {
		return sp.Name.NamespacedName == name
	})
	return s
}

func drawConfig(t *rapid.T) rules.Config {
	return rules.Config{
		MasqueradeAll:      rapid.IntRange(0, 3).Draw(t, "masquerade all") == 0,
		LocalhostNodePorts: rapid.Bool().Draw(t, "localhost NodePorts"),
		NodePortAddresses: rapid.SampledFrom([]rules.NodePortAddresses{
			{}, {}, {Primary: true}, {Primary: true, Prefixes: []netip.Prefix{prefix("127.0.0.0/8"), prefix("::1/128")}},
			{Prefixes: []netip.Prefix{prefix("192.168.0.0/16")}},
			{Prefixes: []netip.Prefix{prefix("127.0.0.0/8"), prefix("192.168.1.0/24"), prefix("fd00:168::/32")}},
		}).Draw(t, "NodePort addresses"),
		DetectLocal: rapid.SampledFrom([]rules.DetectLocal{
			{},
			{ClusterCIDRs: []netip.Prefix{prefix("10.180.0.0/16")}},
			{ClusterCIDRs: []netip.Prefix{prefix("fd00:180::/48"), prefix("10.180.0.0/16")}},
			{ClusterCIDRs: []netip.Prefix{prefix("0.0.0.0/0"), prefix("::/0")}},
			{Mode: rules.DetectNodeCIDR},
			{Mode: rules.DetectBridgeInterface, Bridge: "br0"},
			{Mode: rules.DetectInterfaceNamePrefix, InterfacePrefix: "veth"},
		}).Draw(t, "detect local"),
	}
}

func addr(s string) netip.Addr     { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }
