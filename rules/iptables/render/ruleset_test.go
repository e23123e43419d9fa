package render

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"pgregory.net/rapid"
)

// TestEveryChainIsUsed: no jump leads to a missing or empty chain, every chain of a Service has a
// jump to it, no chain occurs twice, and all are ours.
func TestEveryChainIsUsed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawOptions(t, netfilter.Family(rapid.IntRange(0, 1).Draw(t, "family")))
		tables := Ruleset(rulestest.Ruleset(t), o)
		for table := range netfilter.Table(len(tables.Tables)) {
			checkJumps(t, o.Names, table, tables.Tables[table])
		}
	})
}

func checkJumps(t *rapid.T, names netfilter.Naming, table netfilter.Table, rules TableRules) {
	size := map[string]int{}
	for _, c := range rules.Chains {
		if _, twice := size[c.Name]; twice {
			t.Errorf("%s %s is there twice", table, c.Name)
		}
		if !names.IsOurs(table, c.Name) && c.Name != netfilter.ChainFirewall || c.Name == names.Chain(netfilter.ChainProxyCanary) {
			t.Errorf("%s %s is not ours", table, c.Name)
		}
		if len(c.Name) > 28 {
			t.Errorf("%s %s is longer than a chain name may be", table, c.Name)
		}
		size[c.Name] = len(c.Rules)
	}
	used := map[string]bool{}
	for _, c := range append(append([]netfilter.Chain{}, rules.Chains...), rules.Jumps...) {
		for _, r := range c.Rules {
			if (r.Target == netfilter.TargetJump) != (r.Jump != "") {
				t.Errorf("%s %s: half a jump: %+v", table, c.Name, r)
			}
			if r.Jump == "" {
				continue
			}
			used[r.Jump] = true
			n, there := size[r.Jump]
			if empty := n == 0 && names.IsServiceChain(table, r.Jump); !there || empty {
				t.Errorf("%s %s jumps to %s, which has %d rules, there: %v", table, c.Name, r.Jump, n, there)
			}
		}
	}
	for name := range size {
		if !used[name] && !(table == netfilter.NAT && name == names.Chain(netfilter.ChainMarkMasq)) {
			t.Errorf("nothing leads to %s %s", table, name)
		}
	}
}

// TestRenderIsItsParts: Ruleset equals Fixed plus Service. Adding and removing Services
// changes only their own chains and entries.
func TestRenderIsItsParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := rulestest.Ruleset(t)
		o := drawOptions(t, netfilter.Family(rapid.IntRange(0, 1).Draw(t, "family"))).For(rs)
		want := asWritten(Fixed(rs, o.For(rs)))
		for _, s := range rs.Services {
			b := Service(s, o)
			for _, c := range b.Chains {
				want["nat "+c.Name] = c.Rules
			}
			for _, e := range b.Entries {
				key := e.Table.String() + " " + e.Chain
				if _, fixed := want[key]; !fixed {
					t.Fatalf("an entry in %s, which is no fixed chain", key)
				}
				want[key] = append(want[key], e.Rule)
			}
		}
		got := asWritten(Ruleset(rs, o))
		if len(got) != len(want) {
			t.Fatalf("Render has %d chains, its parts %d", len(got), len(want))
		}
		for name, list := range got {
			if !equalSets(list, want[name]) {
				t.Fatalf("%s: Render has %v, its parts %v", name, list, want[name])
			}
		}
		if list := got["nat "+o.Names.Chain(netfilter.ChainServices)]; !nodePortJumpsLast(o.Names, list) {
			t.Fatalf("the jump to the NodePorts is not behind everything else: %v", list)
		}
	})
}

func equalSets(a, b []netfilter.Rule) bool {
	count := map[netfilter.Rule]int{}
	for _, r := range a {
		count[r]++
	}
	for _, r := range b {
		count[r]--
	}
	for _, n := range count {
		if n != 0 {
			return false
		}
	}
	return true
}

func nodePortJumpsLast(n netfilter.Naming, list []netfilter.Rule) bool {
	seen := false
	for _, r := range list {
		if seen && r.Jump != n.Chain(netfilter.ChainNodePorts) {
			return false
		}
		seen = seen || r.Jump == n.Chain(netfilter.ChainNodePorts)
	}
	return true
}

// TestRuleCounts pins the rules per Service, with the figures of kube-proxy's own test of the same
// name: S Services of E endpoints are 5+S(2+3E) rules in nat and 4 in filter. With an external IP,
// a load balancer's address with a source range and a NodePort that is counted on loopback they are
// 8 and 1 more each. Without endpoints each of its Frontends is one rule in filter.
func TestRuleCounts(t *testing.T) {
	for _, services := range []int{0, 1, 10} {
		for _, endpoints := range []int{0, 1, 10} {
			for _, balancer := range []bool{false, true} {
				t.Run(fmt.Sprintf("%d x %d, balancer %v", services, endpoints, balancer), func(t *testing.T) {
					wantNAT, wantFilter := 5+services*(2+3*endpoints), 4
					if balancer {
						wantNAT, wantFilter = 5+services*(10+3*endpoints), 4+services
					}
					if endpoints == 0 {
						wantNAT, wantFilter = 5, 4+services
						if balancer {
							wantFilter = 4 + 4*services
						}
					}
					rs := rules.Ruleset{
						NodePorts: rules.NodePortScope{IPv4: rules.ListenAddrs{All: true}, Localhost: true},
						Local:     rules.LocalDetector{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}},
					}
					for i := range services {
						rs.Services = append(rs.Services, countedService(i, endpoints, balancer))
					}
					tables := Ruleset(rs, Options{MasqueradeBit: 14, DropInvalid: true, NFAcct: true})
					if n := countRules(tables.Tables[netfilter.NAT]); n != wantNAT {
						t.Errorf("nat has %d rules, want %d", n, wantNAT)
					}
					if n := countRules(tables.Tables[netfilter.Filter]); n != wantFilter {
						t.Errorf("filter has %d rules, want %d", n, wantFilter)
					}
				})
			}
		}
	}
}

func countRules(r TableRules) int {
	n := 0
	for _, c := range r.Chains {
		n += len(c.Rules)
	}
	return n
}

// countedService is a Service with a cluster IP or with a Frontend of each kind.
func countedService(i, endpoints int, balancer bool) *rules.Service {
	s := &rules.Service{Name: portName(fmt.Sprintf("ns/svc%d:p", i), "TCP")}
	front := rules.Frontend{Verdict: rules.Reject}
	external := front
	if endpoints > 0 {
		set := rules.EndpointSet{}
		for e := range endpoints {
			set.Endpoints = append(set.Endpoints, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 128, byte(i), byte(e)}), 80))
		}
		s.Sets = []rules.EndpointSet{set}
		front.Routes = []rules.Route{{From: rules.Any, Masquerade: rules.OffCluster}}
		external.Routes = []rules.Route{{From: rules.Any, Masquerade: rules.Always}}
	}
	at := func(f rules.Frontend, kind rules.Kind, third byte) rules.Frontend {
		f.Kind, f.Addr = kind, netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, third, byte(i)}), 80)
		return f
	}
	s.Frontends = []rules.Frontend{at(front, rules.ClusterIP, 0)}
	if balancer {
		vip := at(external, rules.LoadBalancer, 2)
		if endpoints > 0 {
			vip.Allow = []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24")}
		}
		nodePort := at(external, rules.NodePort, 0)
		nodePort.Addr = netip.AddrPortFrom(netip.IPv4Unspecified(), uint16(30000+i))
		s.Frontends = append(s.Frontends, at(external, rules.ExternalIP, 1), vip, nodePort)
	}
	return s
}

// TestNFAcct: counters are written only if their objects exist, and change nothing.
func TestNFAcct(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs := rulestest.Ruleset(t)
		o := drawOptions(t, netfilter.Family(rapid.IntRange(0, 1).Draw(t, "family")))
		o.DropInvalid = true
		without := rendered(t, Ruleset(rs, o))
		if strings.Contains(without, "nfacct") {
			t.Fatal("a counter is written that may not exist")
		}
		o.NFAcct = true
		with := rendered(t, Ruleset(rs, o))
		counted := strings.Count(with, "--nfacct-name "+AcctLocalhostAccepted)
		want := 0
		if o.Family == netfilter.IPv4 && rs.NodePorts.Localhost {
			nat := without[strings.Index(without, "*nat"):]
			want = strings.Count(nat, "\n-A "+o.Names.Chain(netfilter.ChainNodePorts)+" ")
		}
		if counted != want {
			t.Fatalf("%d NodePorts on loopback are counted, want %d", counted, want)
		}
		if n := strings.Count(with, "--nfacct-name "+AcctInvalidDropped); n != 1 {
			t.Fatalf("INVALID packets are counted %d times", n)
		}
	})
}

// TestHealthChecks: opened in their own family, once for each port of the Service.
func TestHealthChecks(t *testing.T) {
	rs := rules.Ruleset{
		Services: []*rules.Service{
			{Name: portName("ns/a", "TCP")}, {Name: portName("ns/svc:p", "TCP")}, {Name: portName("ns/svc:q", "UDP")}, {Name: portName("ns/svc2", "TCP")},
		},
		HealthChecks: []rules.HealthCheck{
			{Service: portName("ns/svc", "").NamespacedName, Port: 31000},
			{Service: portName("ns/svc2", "").NamespacedName, Port: 31001, IPv6: true},
			{Service: portName("ns/unknown", "").NamespacedName, Port: 31002, IPv6: true},
		},
	}
	rule := func(name string, port uint16) netfilter.Rule {
		return netfilter.Rule{Comment: name + " health check node port", Proto: netfilter.TCP, DstPort: port, Target: netfilter.TargetAccept}
	}
	for f, want := range map[netfilter.Family][]netfilter.Rule{
		netfilter.IPv4: {rule("ns/svc:p", 31000), rule("ns/svc:q", 31000)},
		netfilter.IPv6: {rule("ns/svc2", 31001), rule("ns/unknown", 31002)},
	} {
		got := Fixed(rs, Options{Family: f}.For(rs)).Tables[netfilter.Filter].Chains[0]
		if got.Name != netfilter.ChainNodePorts || !slices.Equal(got.Rules, want) {
			t.Errorf("family %d: got %+v, want %+v", f, got, want)
		}
	}
}
