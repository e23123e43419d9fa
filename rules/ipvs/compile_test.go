package ipvs

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"
	"gridproxy/topology"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// drawState draws what some Ruleset comes to.
func drawState(t *rapid.T) State {
	var c Compiler
	return c.Compile(rulestest.Ruleset(t), drawConfig(t)).State()
}

func drawConfig(t *rapid.T) Config {
	return Config{
		Scheduler: rapid.SampledFrom([]string{"", "lc"}).Draw(t, "scheduler"),
		Exclude: rapid.SampledFrom([][]netip.Prefix{
			nil, nil, nil, {netip.MustParsePrefix("198.51.100.0/24")}, {netip.MustParsePrefix("10.96.0.1/32"), netip.MustParsePrefix("fd00:168:1::/64")},
			{netip.MustParsePrefix("192.168.1.0/24")},
		}).Draw(t, "exclude"),
		Families: rapid.SampledFrom([][]netfilter.Family{nil, nil, nil, {netfilter.IPv4}, {netfilter.IPv6}}).Draw(t, "families"),
		Retire:   rapid.IntRange(0, 9).Draw(t, "retire") == 0,
	}
}

// Nothing that one Frontend needs is missing, and nothing is there that none needs. The
// expectation is worked out from the Ruleset alone, by the rules of the design.
func TestCompileKeepsItsPromises(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rs, cfg := rulestest.Ruleset(t), drawConfig(t)
		rs.HostNetworks = rapid.SampledFrom([][]netip.Prefix{
			nil, {netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("fd00:192::/64")}, {netip.MustParsePrefix("192.168.0.0/16")},
		}).Draw(t, "networks")
		rs.APIServers = rapid.SampledFrom([][]netip.AddrPort{nil, {netip.MustParseAddrPort("192.0.2.1:6443")}}).Draw(t, "API servers")
		var compiler Compiler
		compiled := compiler.Compile(rs, cfg)
		if servers := slices.SortedFunc(maps.Keys(compiled.State().Servers), compareServers); len(servers) > 0 && rapid.Bool().Draw(t, "the kernel refuses") {
			cfg.Refused = []ServerKey{rapid.SampledFrom(servers).Draw(t, "refused")}
			compiled = compiler.Compile(rs, cfg)
		}
		c := checker{Fatalf: t.Fatalf, rs: rs, cfg: cfg, state: compiled.State(), rest: compiled.Residual}
		c.frontends()
		c.sharedChains()
		c.servers()
		c.addresses()
	})
}

type checker struct {
	Fatalf func(string, ...any)
	rs     rules.Ruleset
	cfg    Config
	state  State
	rest   rules.Ruleset
}

func (c *checker) listed(set string, addr netip.Prefix, p netfilter.Proto, port uint16) bool {
	_, found := c.state.Entries[Entry{Set: netfilter.SetName(familyOf(addr.Addr()), set), Net: addr, Proto: p, Port: port}]
	return found
}

// frontends: each is in servers, in chains, or both.
func (c *checker) frontends() {
	for _, s := range c.rs.Services {
		for _, f := range s.Frontends {
			if c.cfg.Families != nil && !slices.Contains(c.cfg.Families, familyOf(f.Addr.Addr())) {
				continue
			}
			c.frontend(s, f)
		}
	}
}

func (c *checker) frontend(s *rules.Service, f rules.Frontend) {
	proto := netfilter.Proto(s.Name.IPProtocol())
	rest, inChains := find(c.rest, s, f)
	if c.cfg.Retire {
		if !inChains || !reflect.DeepEqual(rest, f) {
			c.Fatalf("%v %v retires and is not wholly in chains", s.Name, f.Addr)
		}
		return
	}
	fromAny := slices.IndexFunc(f.Routes, func(r rules.Route) bool { return r.From == rules.Any })
	for _, addr := range c.spots(f) {
		key := ServerKey{Addr: netip.AddrPortFrom(addr, f.Addr.Port()), Proto: proto}
		server, served := c.state.Servers[key]
		met := c.listed(netfilter.SetChains, netip.PrefixFrom(addr, addr.BitLen()), proto, f.Addr.Port()) ||
			addr.Is4() && addr.IsLoopback() && c.listed(netfilter.SetChains, netip.MustParsePrefix("127.0.0.0/8"), proto, f.Addr.Port())
		where := fmt.Sprintf("%v %v on %v", s.Name, f.Kind, key)
		switch {
		case met && !inChains:
			c.Fatalf("%s: packets are sent to chains that say nothing", where)
		case !met && !served:
			c.Fatalf("%s: nothing answers", where)
		case met && served && (rest.Verdict != rules.Pass || len(rest.Routes) != fromAny || fromAny <= 0):
			c.Fatalf("%s: chains leave %+v for a server that has route %d", where, rest, fromAny)
		case met && !served && !(fromAny > 0 && f.Kind == rules.NodePort && addr.IsLoopback()) && !reflect.DeepEqual(rest, f):
			c.Fatalf("%s: chains say %+v and not %+v", where, rest, f)
		case !met && served && fromAny > 0:
			c.Fatalf("%s: the routes before the server's are nowhere", where)
		}
		if served {
			c.server(where, s, f, fromAny, key, server)
		}
	}
}

// server: its destinations are the set of the Route from Any.
func (c *checker) server(where string, s *rules.Service, f rules.Frontend, fromAny int, key ServerKey, server Server) {
	near := slices.ContainsFunc(c.rs.HostNetworks, func(p netip.Prefix) bool { return p.Contains(key.Addr.Addr()) }) ||
		slices.ContainsFunc(c.rs.APIServers, func(s netip.AddrPort) bool { return s.Addr() == key.Addr.Addr() })
	if (f.Kind == rules.ExternalIP || f.Kind == rules.LoadBalancer) && near && !slices.Contains(c.rs.HostAddrs, key.Addr.Addr()) {
		c.Fatalf("%s: there is a server on what may be a neighbour's address, or is an API server's", where)
	}
	if len(f.Allow) > 0 || fromAny < 0 && f.Verdict != rules.Reject {
		c.Fatalf("%s: a server cannot say this", where)
	}
	var want, got []netip.AddrPort
	set := netfilter.SetExternalIP
	if fromAny >= 0 {
		want = slices.Clone(s.Sets[f.Routes[fromAny].Set].Endpoints)
		if f.Routes[fromAny].Masquerade != rules.Always {
			set = netfilter.SetExternalIPLocal
		}
	}
	if f.Kind == rules.ClusterIP && set != netfilter.SetExternalIP || f.Kind == rules.ClusterIP && fromAny < 0 {
		set = netfilter.SetClusterIP
	}
	for d := range c.state.Destinations {
		if d.Server == key {
			got = append(got, d.Addr)
		}
	}
	slices.SortFunc(want, netip.AddrPort.Compare)
	slices.SortFunc(got, netip.AddrPort.Compare)
	if !slices.Equal(want, got) {
		c.Fatalf("%s: destinations %v, want %v", where, got, want)
	}
	if !c.listed(set, netip.PrefixFrom(key.Addr.Addr(), key.Addr.Addr().BitLen()), key.Proto, key.Addr.Port()) {
		c.Fatalf("%s: not in %s", where, set)
	}
	_, onLink := c.state.Addresses[key.Addr.Addr()]
	if want := f.Kind != rules.NodePort && !slices.Contains(c.rs.HostAddrs, key.Addr.Addr()); onLink != want {
		c.Fatalf("%s: on the link is %t, want %t", where, onLink, want)
	}
	if want := (Server{Scheduler: cmp.Or(c.cfg.Scheduler, DefaultScheduler), Affinity: s.Affinity}); server != want {
		c.Fatalf("%s: %+v, want %+v", where, server, want)
	}
}

// spots are the addresses at which a Frontend has to answer.
func (c *checker) spots(f rules.Frontend) []netip.Addr {
	if f.Kind != rules.NodePort {
		return []netip.Addr{f.Addr.Addr()}
	}
	addrs := c.rs.NodePorts.IPv4
	if f.Addr.Addr().Is6() {
		addrs = c.rs.NodePorts.IPv6
	}
	return slices.DeleteFunc(slices.Clone(addrs.Addrs), func(a netip.Addr) bool {
		return a.IsLoopback() && (a.Is6() || !c.rs.NodePorts.Localhost)
	})
}

// sharedChains: the external Frontends of a Service and family share chains, so what is left
// of each has the same Routes.
func (c *checker) sharedChains() {
	for _, s := range c.rest.Services {
		var routes [2][]rules.Route
		for _, f := range s.Frontends {
			if f.Kind == rules.ClusterIP || len(f.Routes) == 0 {
				continue
			}
			family := familyOf(f.Addr.Addr())
			if first := routes[family]; first != nil && !slices.Equal(first, f.Routes) {
				c.Fatalf("%v: chains of %+v and of %+v", s.Name, first, f)
			}
			routes[family] = f.Routes
		}
	}
}

// servers: each is in exactly one set, on a proper address, and of one family.
func (c *checker) servers() {
	for key := range c.state.Servers {
		n := 0
		for _, set := range []string{netfilter.SetClusterIP, netfilter.SetExternalIP, netfilter.SetExternalIPLocal} {
			if c.listed(set, netip.PrefixFrom(key.Addr.Addr(), key.Addr.Addr().BitLen()), key.Proto, key.Addr.Port()) {
				n++
			}
		}
		if n != 1 {
			c.Fatalf("server %s is in %d sets", key, n)
		}
		excluded := slices.ContainsFunc(c.cfg.Exclude, func(p netip.Prefix) bool { return p.Contains(key.Addr.Addr()) })
		if excluded || slices.Contains(c.cfg.Refused, key) || key.Addr.Addr().IsLoopback() {
			c.Fatalf("there is a server on %s", key)
		}
	}
	for d := range c.state.Destinations {
		if _, found := c.state.Servers[d.Server]; !found || d.Addr.Addr().Is6() != d.Server.Addr.Addr().Is6() {
			c.Fatalf("destination %s of %s", d.Addr, d.Server)
		}
		hairpin := Entry{
			Set: netfilter.SetName(familyOf(d.Addr.Addr()), netfilter.SetLoopBack), Net: netip.PrefixFrom(d.Addr.Addr(), d.Addr.Addr().BitLen()),
			Proto: d.Server.Proto, Port: d.Addr.Port(), Peer: d.Addr.Addr(),
		}
		if _, found := c.state.Entries[hairpin]; !found {
			c.Fatalf("%s of %s is not masqueraded to itself", d.Addr, d.Server)
		}
	}
}

// addresses: those on the link are those of KUBE-IPVS-IPS, and something needs them. The
// other entries are of servers, too.
func (c *checker) addresses() {
	needed := map[netip.Addr]bool{}
	for key := range c.state.Servers {
		needed[key.Addr.Addr()] = true
	}
	for a := range c.state.Addresses {
		if !needed[a] || slices.Contains(c.rs.HostAddrs, a) || !c.listed(netfilter.SetIPVSIPs, netip.PrefixFrom(a, a.BitLen()), 0, 0) {
			c.Fatalf("address %s is on the link", a)
		}
	}
	for e := range c.state.Entries {
		base := strings.Replace(e.Set, "KUBE-6-", "KUBE-", 1)
		if netfilter.SetName(familyOf(e.Net.Addr()), base) != e.Set {
			c.Fatalf("entry %s is in set %s", e, e.Set)
		}
		found := true
		switch base {
		case netfilter.SetIPVSIPs:
			_, found = c.state.Addresses[e.Net.Addr()]
		case netfilter.SetClusterIP, netfilter.SetExternalIP, netfilter.SetExternalIPLocal:
			_, found = c.state.Servers[listedServer(e)]
		case netfilter.SetLoopBack:
			found = false
			for d := range c.state.Destinations {
				found = found || d.Addr == netip.AddrPortFrom(e.Net.Addr(), e.Port) && d.Server.Proto == e.Proto && e.Peer == e.Net.Addr()
			}
		}
		if !found {
			c.Fatalf("nothing needs entry %s of %s", e, e.Set)
		}
	}
}

// find is the Frontend that stands for f in a Ruleset.
func find(rs rules.Ruleset, s *rules.Service, f rules.Frontend) (rules.Frontend, bool) {
	for _, r := range rs.Services {
		if r.Name != s.Name {
			continue
		}
		for _, g := range r.Frontends {
			if g.Kind == f.Kind && g.Addr == f.Addr {
				return g, true
			}
		}
	}
	return rules.Frontend{}, false
}

// A Service that did not change keeps its pointers, and a Compiler that remembers says what
// a new one says.
func TestCompileRemembers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memo rules.Memo
		var compiler Compiler
		kept := newDesiredServers()
		sample := rulestest.Draw(t)
		cfg := drawConfig(t)
		before := map[*rules.Service]*servicePlan{}
		residual := map[topology.ServicePortName]*rules.Service{}
		for range rapid.IntRange(2, 5).Draw(t, "changes") {
			rs := memo.Compile(sample.View, sample.Config)
			got := compiler.Compile(rs, cfg)
			want := new(Compiler).Compile(rs, cfg)
			if diff := gocmp.Diff(want.Residual, got.Residual, gocmp.Exporter(func(reflect.Type) bool { return true })); diff != "" {
				t.Fatalf("residual (-from scratch +remembered):\n%s", diff)
			}
			kept.update(got.plans, touched{})
			if !reflect.DeepEqual(want.State(), kept.state()) {
				t.Fatalf("from scratch %+v\nkept %+v", want.State(), kept.state())
			}
			for i, s := range rs.Services {
				if p := before[s]; p != nil && p.residual != got.plans[i].residual {
					t.Fatalf("%v did not change, and its chains are another pointer", s.Name)
				}
				before[s] = got.plans[i]
			}
			for _, s := range got.Residual.Services {
				if old := residual[s.Name]; old != nil && old != s && reflect.DeepEqual(old, s) {
					t.Fatalf("%v has equal chains under another pointer", s.Name)
				}
			}
			clear(residual)
			for _, s := range got.Residual.Services {
				residual[s.Name] = s
			}
			if rapid.IntRange(0, 9).Draw(t, "new config") == 0 {
				cfg = drawConfig(t)
				clear(before)
			} else {
				next := sample.Change(t)
				if !reflect.DeepEqual(next.Config, sample.Config) {
					clear(before)
				}
				sample = next
			}
		}
	})
}

// A machine gets a link-local address with each Pod, which leads to no new decision.
func TestCompileIgnoresLinkLocalAddresses(t *testing.T) {
	var c Compiler
	addr := netip.MustParseAddr
	svc := &rules.Service{Frontends: []rules.Frontend{{Kind: rules.NodePort, Addr: netip.MustParseAddrPort("[::]:30080"), Verdict: rules.Reject}}}
	compile := func(addrs ...netip.Addr) *servicePlan {
		return c.Compile(rules.Ruleset{
			Services: []*rules.Service{svc}, HostAddrs: addrs,
			NodePorts: rules.NodePortScope{IPv6: rules.ListenAddrs{All: true, Addrs: addrs}},
		}, Config{}).plans[0]
	}
	before := compile(addr("fd00:168::2"))
	if after := compile(addr("::1"), addr("fd00:168::2"), addr("fe80::1")); after != before {
		t.Errorf("for a link-local address %+v became %+v", before, after)
	}
	if after := compile(addr("fd00:168::2"), addr("fd00:168::3"), addr("fe80::1")); after == before || len(after.slots) != 2 {
		t.Errorf("for another address it is still %+v", after)
	}
	before = compile()
	if after := compile(addr("fe80::1")); after != before {
		t.Errorf("for the only address, a link-local one, %+v became %+v", before, after)
	}
}

// split says what one Service comes to, a line for each thing.
func split(rs rules.Ruleset, cfg Config) string {
	var compiler Compiler
	c := compiler.Compile(rs, cfg)
	s := c.State()
	var b strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(s.Servers), compareServers) {
		fmt.Fprintf(&b, "server %s %s", key, s.Servers[key].Scheduler)
		for _, d := range slices.SortedFunc(maps.Keys(s.Destinations), compareDestinations) {
			if d.Server == key {
				fmt.Fprintf(&b, " %s", d.Addr)
			}
		}
		if _, onLink := s.Addresses[key.Addr.Addr()]; onLink {
			b.WriteString(" link")
		}
		b.WriteByte('\n')
	}
	for _, e := range slices.SortedFunc(maps.Keys(s.Entries), compareEntries) {
		if e.Set != netfilter.SetName(familyOf(e.Net.Addr()), netfilter.SetLoopBack) && e.Proto != 0 {
			fmt.Fprintf(&b, "%s %s\n", e.Set, e)
		}
	}
	for _, s := range c.Residual.Services {
		for _, f := range s.Frontends {
			fmt.Fprintf(&b, "chains %s %s allow %d", [...]string{"cluster", "external", "lb", "node"}[f.Kind], f.Addr, len(f.Allow))
			for _, r := range f.Routes {
				fmt.Fprintf(&b, " %s", [...]string{"any", "pods", "node"}[r.From])
			}
			fmt.Fprintf(&b, " %s\n", [...]string{"pass", "reject", "drop"}[f.Verdict])
		}
	}
	return b.String()
}

func TestCompile(t *testing.T) {
	addr, ap, prefix := netip.MustParseAddr, netip.MustParseAddrPort, netip.MustParsePrefix
	set := []rules.EndpointSet{
		{Endpoints: []netip.AddrPort{ap("10.180.0.1:80"), ap("10.180.1.1:80")}},
		{Policy: rules.Local, Endpoints: []netip.AddrPort{ap("10.180.0.1:80")}},
	}
	anyRoute := []rules.Route{{From: rules.Any, Masquerade: rules.Always}}
	local := []rules.Route{{From: rules.Pods}, {From: rules.Node, Masquerade: rules.Always}, {From: rules.Any, Set: 1}}
	host := []netip.Addr{addr("127.0.0.1"), addr("192.168.0.2"), addr("192.168.1.2")}
	all := rules.NodePortScope{IPv4: rules.ListenAddrs{All: true, Addrs: host}, Localhost: true}
	remote := all
	remote.Localhost, remote.IPv4.Addrs = false, host[1:]
	some := rules.NodePortScope{IPv4: rules.ListenAddrs{Addrs: host[:2]}, Localhost: true}
	external := func(kind rules.Kind, a string, routes []rules.Route, v rules.Verdict) rules.Frontend {
		return rules.Frontend{Kind: kind, Addr: ap(a), Routes: routes, Verdict: v}
	}
	const node = "0.0.0.0:30080"
	allowed := external(rules.LoadBalancer, "198.51.100.1:80", local, rules.Drop)
	allowed.Allow = []netip.Prefix{prefix("203.0.113.0/24")}
	for _, c := range []struct {
		name      string
		frontends []rules.Frontend
		ports     rules.NodePortScope
		cfg       Config
		want      string
	}{
		{"cluster IP", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", []rules.Route{{From: rules.Any, Masquerade: rules.OffCluster}}, rules.Pass)},
			all, Config{}, "server 10.96.0.1:80/tcp rr 10.180.0.1:80 10.180.1.1:80 link\nKUBE-CLUSTER-IP 10.96.0.1,tcp:80\n"},
		{"cluster IP, always masqueraded", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", anyRoute, rules.Pass)}, all, Config{Scheduler: "sh"},
			"server 10.96.0.1:80/tcp sh 10.180.0.1:80 10.180.1.1:80 link\nKUBE-EXTERNAL-IP 10.96.0.1,tcp:80\n"},
		{"cluster IP without endpoints", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", nil, rules.Reject)}, all, Config{},
			"server 10.96.0.1:80/tcp rr link\nKUBE-CLUSTER-IP 10.96.0.1,tcp:80\n"},
		{"cluster IP, internal policy Local, none here", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", nil, rules.Drop)}, all, Config{},
			"KUBE-IPVS-CHAINS 10.96.0.1,tcp:80\nchains cluster 10.96.0.1:80 allow 0 drop\n"},
		{"excluded", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", nil, rules.Reject)}, all, Config{Exclude: []netip.Prefix{prefix("10.96.0.0/24")}},
			"KUBE-IPVS-CHAINS 10.96.0.1,tcp:80\nchains cluster 10.96.0.1:80 allow 0 reject\n"},
		{"refused by the kernel", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", anyRoute, rules.Pass)},
			all, Config{Refused: []ServerKey{serverAt("10.96.0.1:80", netfilter.TCP)}},
			"KUBE-IPVS-CHAINS 10.96.0.1,tcp:80\nchains cluster 10.96.0.1:80 allow 0 any pass\n"},
		{"another one refused by the kernel", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", nil, rules.Reject)},
			all, Config{Refused: []ServerKey{serverAt("10.96.0.1:80", netfilter.UDP)}},
			"server 10.96.0.1:80/tcp rr link\nKUBE-CLUSTER-IP 10.96.0.1,tcp:80\n"},
		{"multicast", []rules.Frontend{external(rules.ExternalIP, "224.0.0.9:80", anyRoute, rules.Pass)}, all, Config{},
			"KUBE-IPVS-CHAINS 224.0.0.9,tcp:80\nchains external 224.0.0.9:80 allow 0 any pass\n"},
		{"broadcast", []rules.Frontend{external(rules.ExternalIP, "255.255.255.255:80", nil, rules.Reject)}, all, Config{},
			"KUBE-IPVS-CHAINS 255.255.255.255,tcp:80\nchains external 255.255.255.255:80 allow 0 reject\n"},
		{"external IP of this machine", []rules.Frontend{external(rules.ExternalIP, "192.168.0.2:80", anyRoute, rules.Pass)}, all, Config{},
			"server 192.168.0.2:80/tcp rr 10.180.0.1:80 10.180.1.1:80\nKUBE-EXTERNAL-IP 192.168.0.2,tcp:80\n"},
		{"external IP in a network of this machine", []rules.Frontend{external(rules.ExternalIP, "192.168.0.7:80", anyRoute, rules.Pass)}, all, Config{},
			"KUBE-IPVS-CHAINS 192.168.0.7,tcp:80\nchains external 192.168.0.7:80 allow 0 any pass\n"},
		{"load balancer in a network of this machine", []rules.Frontend{external(rules.LoadBalancer, "192.168.0.7:80", nil, rules.Reject)}, all, Config{},
			"KUBE-IPVS-CHAINS 192.168.0.7,tcp:80\nchains lb 192.168.0.7:80 allow 0 reject\n"},
		{"cluster IP in a network of this machine", []rules.Frontend{external(rules.ClusterIP, "192.168.0.7:80", nil, rules.Reject)}, all, Config{},
			"server 192.168.0.7:80/tcp rr link\nKUBE-CLUSTER-IP 192.168.0.7,tcp:80\n"},
		{"external IP that is link-local", []rules.Frontend{external(rules.LoadBalancer, "[fe80::7]:80", nil, rules.Reject)}, all, Config{},
			"KUBE-6-IPVS-CHAINS fe80::7,tcp:80\nchains lb [fe80::7]:80 allow 0 reject\n"},
		{"external IP on loopback", []rules.Frontend{external(rules.ExternalIP, "127.0.0.7:80", anyRoute, rules.Pass)}, all, Config{},
			"KUBE-IPVS-CHAINS 127.0.0.7,tcp:80\nchains external 127.0.0.7:80 allow 0 any pass\n"},
		{"external policy Local", []rules.Frontend{external(rules.ExternalIP, "192.0.2.1:80", local, rules.Drop)}, all, Config{},
			"server 192.0.2.1:80/tcp rr 10.180.0.1:80 link\nKUBE-EXTERNAL-IP-LOCAL 192.0.2.1,tcp:80\n" +
				"KUBE-IPVS-CHAINS 192.0.2.1,tcp:80\nchains external 192.0.2.1:80 allow 0 pods node pass\n"},
		{"external policy Local, none here", []rules.Frontend{external(rules.ExternalIP, "192.0.2.1:80", local[:2], rules.Drop)}, all, Config{},
			"KUBE-IPVS-CHAINS 192.0.2.1,tcp:80\nchains external 192.0.2.1:80 allow 0 pods node drop\n"},
		{"source ranges take the external ones along", []rules.Frontend{external(rules.ExternalIP, "192.0.2.1:80", local, rules.Drop), allowed}, all, Config{},
			"KUBE-IPVS-CHAINS 192.0.2.1,tcp:80\nKUBE-IPVS-CHAINS 198.51.100.1,tcp:80\n" +
				"chains external 192.0.2.1:80 allow 0 pods node any drop\nchains lb 198.51.100.1:80 allow 1 pods node any drop\n"},
		{"node port", []rules.Frontend{external(rules.NodePort, node, anyRoute, rules.Pass)}, all, Config{},
			"server 192.168.0.2:30080/tcp rr 10.180.0.1:80 10.180.1.1:80\nserver 192.168.1.2:30080/tcp rr 10.180.0.1:80 10.180.1.1:80\n" +
				"KUBE-EXTERNAL-IP 192.168.0.2,tcp:30080\nKUBE-EXTERNAL-IP 192.168.1.2,tcp:30080\nKUBE-IPVS-CHAINS 127.0.0.0/8,tcp:30080\n" +
				"chains node 0.0.0.0:30080 allow 0 any pass\n"},
		{"node port, not on loopback", []rules.Frontend{external(rules.NodePort, node, anyRoute, rules.Pass)}, remote, Config{},
			"server 192.168.0.2:30080/tcp rr 10.180.0.1:80 10.180.1.1:80\nserver 192.168.1.2:30080/tcp rr 10.180.0.1:80 10.180.1.1:80\n" +
				"KUBE-EXTERNAL-IP 192.168.0.2,tcp:30080\nKUBE-EXTERNAL-IP 192.168.1.2,tcp:30080\n"},
		{"node port on some addresses", []rules.Frontend{external(rules.NodePort, node, nil, rules.Reject)}, some, Config{},
			"server 192.168.0.2:30080/tcp rr\nKUBE-EXTERNAL-IP 192.168.0.2,tcp:30080\nKUBE-IPVS-CHAINS 127.0.0.1,tcp:30080\n" +
				"chains node 0.0.0.0:30080 allow 0 reject\n"},
		{"node port, external policy Local", []rules.Frontend{external(rules.NodePort, node, local, rules.Drop)}, some, Config{},
			"server 192.168.0.2:30080/tcp rr 10.180.0.1:80\nKUBE-EXTERNAL-IP-LOCAL 192.168.0.2,tcp:30080\n" +
				"KUBE-IPVS-CHAINS 127.0.0.1,tcp:30080\nKUBE-IPVS-CHAINS 192.168.0.2,tcp:30080\nchains node 0.0.0.0:30080 allow 0 pods node pass\n"},
		{"node port, external policy Local, none here", []rules.Frontend{external(rules.NodePort, node, local[:2], rules.Drop)}, all, Config{},
			"KUBE-IPVS-CHAINS 127.0.0.0/8,tcp:30080\nKUBE-IPVS-CHAINS 192.168.0.2,tcp:30080\nKUBE-IPVS-CHAINS 192.168.1.2,tcp:30080\n" +
				"chains node 0.0.0.0:30080 allow 0 pods node drop\n"},
		{"node port, one address excluded", []rules.Frontend{external(rules.NodePort, node, anyRoute, rules.Pass)},
			remote, Config{Exclude: []netip.Prefix{prefix("192.168.1.2/32")}},
			"server 192.168.0.2:30080/tcp rr 10.180.0.1:80 10.180.1.1:80\nKUBE-EXTERNAL-IP 192.168.0.2,tcp:30080\nKUBE-IPVS-CHAINS 192.168.1.2,tcp:30080\n" +
				"chains node 0.0.0.0:30080 allow 0 any pass\n"},
		{"an external IP takes the place of a node port",
			[]rules.Frontend{external(rules.ExternalIP, "192.168.0.2:30080", nil, rules.Reject), external(rules.NodePort, node, anyRoute, rules.Pass)}, remote, Config{},
			"server 192.168.0.2:30080/tcp rr\nserver 192.168.1.2:30080/tcp rr 10.180.0.1:80 10.180.1.1:80\n" +
				"KUBE-EXTERNAL-IP 192.168.0.2,tcp:30080\nKUBE-EXTERNAL-IP 192.168.1.2,tcp:30080\n"},
		{"retiring", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", anyRoute, rules.Pass)}, all, Config{Retire: true},
			"chains cluster 10.96.0.1:80 allow 0 any pass\n"},
		{"a family that is not in use", []rules.Frontend{external(rules.ClusterIP, "10.96.0.1:80", anyRoute, rules.Pass)},
			all, Config{Families: []netfilter.Family{netfilter.IPv6}}, "chains cluster 10.96.0.1:80 allow 0 any pass\n"},
	} {
		svc := &rules.Service{Frontends: c.frontends, Sets: set}
		rs := rules.Ruleset{Services: []*rules.Service{svc}, NodePorts: c.ports, HostAddrs: host, HostNetworks: []netip.Prefix{prefix("192.168.0.0/24")}}
		if at := ap("192.168.0.2:30080"); c.frontends[0].Kind == rules.ExternalIP && c.frontends[0].Addr == at {
			rs.NodePortsTaken = []rules.ClaimKey{{Addr: at, Protocol: uint8(netfilter.TCP)}}
		}
		if diff := gocmp.Diff(c.want, split(rs, c.cfg)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestCompileChoosesTheScheduler(t *testing.T) {
	f := rules.Frontend{Addr: netip.MustParseAddrPort("10.96.0.1:80"), Verdict: rules.Reject}
	for _, c := range []struct {
		service string
		cfg     Config
		want    string
	}{
		{"", Config{}, "rr"},
		{"", Config{Scheduler: "wlc"}, "wlc"},
		{"mh", Config{Scheduler: "wlc"}, "mh"},
		{"mh", Config{Scheduler: "wlc", Lacks: []string{"mh"}}, "wlc"},
		{"wrong", Config{Scheduler: "wlc"}, "wlc"},
	} {
		svc := &rules.Service{Scheduler: c.service, Frontends: []rules.Frontend{f}}
		var compiler Compiler
		s := compiler.Compile(rules.Ruleset{Services: []*rules.Service{svc}}, c.cfg).State()
		if got := s.Servers[serverAt("10.96.0.1:80", netfilter.TCP)].Scheduler; got != c.want {
			t.Errorf("%+v: got %s", c, got)
		}
	}
}
