package ipvs

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// drawLeftovers draws a kernel that was used before: by an earlier run of ours with other
// Services, kube-proxy, drains begun, entries flushed, and servers of others, some of them
// because they are on excluded addresses.
func drawLeftovers(t *rapid.T, target State, cfg Config) *fakeKernel {
	k := newFakeKernel(t.Fatalf, kernelState{State: drawState(t)})
	k.exclude = cfg.Exclude
	for _, d := range slices.SortedFunc(maps.Keys(k.holds.Destinations), compareDestinations) {
		if rapid.IntRange(0, 3).Draw(t, "drains") == 0 {
			k.holds.Destinations[d] = Destination{}
		}
	}
	switch rapid.IntRange(0, 2).Draw(t, "what tells the owner") {
	case 0: // only the link is left to tell; on other addresses a set of kube-proxy's
		clear(k.holds.Entries)
		for key := range k.holds.Servers {
			k.holds.Entries[entryListing(netfilter.SetName(key.family(), "KUBE-LOAD-BALANCER"), key)] = struct{}{}
		}
	case 1:
		clear(k.holds.Addresses)
	}
	m := k.ownership()
	for key, s := range k.holds.Servers {
		if !m.has(key) {
			k.foreign.Servers[key] = s
		}
	}
	for d, v := range k.holds.Destinations {
		if has(k.foreign.Servers, d.Server) {
			k.foreign.Destinations[d] = v
		}
	}
	keys := slices.SortedFunc(maps.Keys(target.Servers), compareServers)
	keys = append(keys, serverAt("192.168.0.2:9999", netfilter.TCP), serverAt("[fd00:168::2]:9999", netfilter.UDP))
	for range rapid.IntRange(0, 3).Draw(t, "servers of others") {
		key := rapid.SampledFrom(keys).Draw(t, "server of others")
		if _, taken := k.holds.Servers[key]; !taken && !m.has(key) {
			k.addForeign(key, netip.AddrPortFrom(netip.MustParseAddr("10.9.9.9"), 9))
		}
	}
	return k
}

// drawConnections gives some destinations open connections.
func drawConnections(t *rapid.T, s State) map[DestinationKey]int {
	open := map[DestinationKey]int{}
	for _, d := range slices.SortedFunc(maps.Keys(s.Destinations), compareDestinations) {
		if rapid.Bool().Draw(t, "open connections") {
			open[d] = rapid.IntRange(1, 3).Draw(t, "connections")
		}
	}
	return open
}

// withoutKubeProxys leaves out what only kube-proxy's sets have: they are destroyed as a whole.
func withoutKubeProxys(k *fakeKernel) {
	maps.DeleteFunc(k.holds.Entries, func(e Entry, _ struct{}) bool { return !has(keptSets, e.Set) })
}

// From whatever the kernel holds, through crashes at any operation, what is wanted is there in the
// end, and nothing else but what is others'. On the way nothing of others is touched and no
// server that has to answer ceases to.
func TestPlansEndInWhatIsWanted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var compiler Compiler
		sample := rulestest.Draw(t)
		cfg := drawConfig(t)
		compiled := compiler.Compile(sample.Ruleset(), cfg)
		k := drawLeftovers(t, compiled.State(), cfg)
		bounds := limits{drain: time.Hour, noDrain: rapid.Bool().Draw(t, "no drain")}
		now := time.Unix(1e9, 0)
		p := &planner{exclude: cfg.Exclude}
		p.setObserved(k.copied())
		for range rapid.IntRange(1, 4).Draw(t, "syncs") {
			open := drawConnections(t, k.holds.State)
			limit := rapid.SampledFrom([]int{-1, -1, 0, 1, 2, 5, 10, 20}).Draw(t, "crash after")
			if !k.sync(p, compiled, now, bounds, open, limit) {
				p = &planner{exclude: cfg.Exclude}
				p.setObserved(k.copied())
			} else {
				withoutKubeProxys(k)
			}
			if rapid.Bool().Draw(t, "change") {
				sample = sample.Change(t)
				compiled = compiler.Compile(sample.Ruleset(), cfg)
			}
			now = now.Add(time.Minute)
		}
		if !k.sync(p, compiled, now, bounds, nil, -1) {
			t.Fatal("the sync did not end")
		}
		withoutKubeProxys(k)
		k.expectEqual(compiled.State(), "in the end")
		if n := p.status(); n.Draining != 0 || n.Servers+len(k.foreign.Servers) != len(k.holds.Servers) ||
			n.Destinations+len(k.foreign.Destinations) != len(k.holds.Destinations) {
			t.Fatalf("status %+v", n)
		}
		before := len(k.log)
		p.setObserved(k.copied())
		k.sync(p, compiled, now, bounds, nil, -1)
		if len(k.log) != before {
			t.Fatalf("there is nothing to do, and %+v was done", k.log[before:])
		}
		if p.empty() != (len(k.holds.Servers) == len(k.foreign.Servers) && len(k.holds.Entries) == 0 && len(k.holds.Addresses) == 0) {
			t.Fatalf("empty is %t with %+v", p.empty(), k.holds.State)
		}
	})
}

// A plan that compares only what a change touches does what one does that compares all.
func TestPlanOfAChangeIsThePlanOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var compiler Compiler
		var memo rules.Memo
		sample := rulestest.Draw(t)
		cfg := drawConfig(t)
		compile := func() Compiled { return compiler.Compile(memo.Compile(sample.View, sample.Config), cfg) }
		compiled := compile()
		touching, all := newFakeKernel(t.Fatalf, kernelState{}), newFakeKernel(t.Fatalf, kernelState{})
		if rapid.Bool().Draw(t, "server of others") {
			if keys := slices.SortedFunc(maps.Keys(compiled.State().Servers), compareServers); len(keys) > 0 {
				key := rapid.SampledFrom(keys).Draw(t, "server")
				touching.addForeign(key, netip.MustParseAddrPort("10.9.9.9:9"))
				all.addForeign(key, netip.MustParseAddrPort("10.9.9.9:9"))
			}
		}
		bounds := limits{drain: 3 * time.Minute, noDrain: rapid.Bool().Draw(t, "no drain")}
		now := time.Unix(1e9, 0)
		var one, whole planner
		one.setObserved(touching.copied())
		for range rapid.IntRange(2, 8).Draw(t, "changes") {
			open := drawConnections(t, touching.holds.State)
			whole.setObserved(all.copied())
			touching.log, all.log = nil, nil
			touching.sync(&one, compiled, now, bounds, open, -1)
			all.sync(&whole, compiled, now, bounds, open, -1)
			if diff := cmp.Diff(all.log, touching.log, equateAddrs); diff != "" {
				t.Fatalf("(-whole +touched):\n%s", diff)
			}
			sample = sample.Change(t)
			compiled = compile()
			now = now.Add(time.Minute)
		}
	})
}

// planned is a planner with its kernel for tests of one thing.
type planned struct {
	*fakeKernel
	planner
	compiler Compiler
	config   Config
	now      time.Time
	bounds   limits
	open     map[DestinationKey]int
}

func newPlanned(t *testing.T) *planned {
	return &planned{
		fakeKernel: newFakeKernel(t.Fatalf, kernelState{}), now: time.Unix(1e9, 0),
		bounds: limits{drain: 15 * time.Minute}, open: map[DestinationKey]int{},
	}
}

// want syncs to one Service with these endpoints.
func (p *planned) want(s *rules.Service) {
	p.sync(&p.planner, p.compile(s), p.now, p.bounds, p.open, -1)
}

// compile compiles one Service; nil = none.
func (p *planned) compile(s *rules.Service) Compiled {
	var rs rules.Ruleset
	if s != nil {
		rs.Services = []*rules.Service{s}
	}
	return p.compiler.Compile(rs, p.config)
}

// one is a Service on 10.96.0.1:80 with these endpoints.
func one(endpoints ...string) *rules.Service {
	s := &rules.Service{}
	for _, e := range endpoints {
		s.Serving = append(s.Serving, netip.MustParseAddrPort(e))
	}
	f := rules.Frontend{Addr: netip.MustParseAddrPort("10.96.0.1:80"), Verdict: rules.Reject}
	if len(endpoints) > 0 {
		f.Routes, f.Verdict = []rules.Route{{From: rules.Any}}, rules.Pass
		s.Sets = []rules.EndpointSet{{Endpoints: s.Serving}}
	}
	s.Frontends = []rules.Frontend{f}
	return s
}

func (p *planned) weights() string {
	var out []string
	for d, v := range p.holds.Destinations {
		out = append(out, fmt.Sprintf("%s=%d", d.Addr.Addr(), v.Weight))
	}
	slices.Sort(out)
	return fmt.Sprintf("%d %v", len(p.holds.Servers), out)
}

// TestDraining: TCP and SCTP drain alike. Both have connections with an end.
func TestDraining(t *testing.T) {
	for protocol, number := range map[corev1.Protocol]netfilter.Proto{corev1.ProtocolTCP: netfilter.TCP, corev1.ProtocolSCTP: netfilter.SCTP} {
		t.Run(string(protocol), func(t *testing.T) { testDraining(t, protocol, number) })
	}
}

func testDraining(t *testing.T, protocol corev1.Protocol, number netfilter.Proto) {
	d := destinationAt(serverAt("10.96.0.1:80", number), "10.180.0.2:80")
	one := func(endpoints ...string) *rules.Service {
		s := one(endpoints...)
		s.Name.Protocol = protocol
		return s
	}
	both := one("10.180.0.1:80", "10.180.0.2:80")
	first := one("10.180.0.1:80")
	for _, c := range []struct {
		name string
		do   func(p *planned)
		want string
	}{
		{"no connections", func(p *planned) { p.want(first) }, "1 [10.180.0.1=1]"},
		{"open connections", func(p *planned) { p.open[d] = 1; p.want(first) }, "1 [10.180.0.1=1 10.180.0.2=0]"},
		{"they end", func(p *planned) { p.open[d] = 1; p.want(first); p.open[d] = 0; p.want(first) }, "1 [10.180.0.1=1]"},
		{"the time is not up", func(p *planned) {
			p.open[d] = 1
			p.want(first)
			p.now = p.now.Add(15*time.Minute - 1)
			p.want(first)
		}, "1 [10.180.0.1=1 10.180.0.2=0]"},
		{"the time is up", func(p *planned) {
			p.open[d] = 1
			p.want(first)
			p.now = p.now.Add(15 * time.Minute)
			p.want(first)
		}, "1 [10.180.0.1=1]"},
		{"wanted again", func(p *planned) { p.open[d] = 1; p.want(first); p.want(both) }, "1 [10.180.0.1=1 10.180.0.2=1]"},
		{"wanted again, and not again: the time starts anew", func(p *planned) {
			p.open[d] = 1
			p.want(first)
			p.now = p.now.Add(10 * time.Minute)
			p.want(both)
			p.want(first)
			p.now = p.now.Add(10 * time.Minute)
			p.want(first)
		}, "1 [10.180.0.1=1 10.180.0.2=0]"},
		{"the Service has gone", func(p *planned) { p.open[d] = 1; p.want(nil) }, "1 [10.180.0.2=0]"},
		{"the Service comes back", func(p *planned) { p.open[d] = 1; p.want(nil); p.want(both) }, "1 [10.180.0.1=1 10.180.0.2=1]"},
		{"a restart in between", func(p *planned) {
			p.open[d] = 1
			p.want(nil)
			p.now = p.now.Add(10 * time.Minute)
			p.planner = planner{}
			p.setObserved(p.copied())
			p.want(nil)
			p.now = p.now.Add(10 * time.Minute)
			p.want(nil)
		}, "1 [10.180.0.2=0]"},
		{"a restart, and the time is up", func(p *planned) {
			p.open[d] = 1
			p.want(nil)
			p.planner = planner{}
			p.setObserved(p.copied())
			p.want(nil)
			p.now = p.now.Add(15 * time.Minute)
			p.want(nil)
		}, "0 []"},
		{"out of the unit where nothing drains", func(p *planned) {
			p.open[d], p.bounds.noDrain = 1, true
			p.want(first)
		}, "1 [10.180.0.1=1]"},
		{"terminating where nothing drains", func(p *planned) {
			p.open[d], p.bounds.noDrain = 1, true
			s := one("10.180.0.1:80")
			s.Serving = both.Serving
			p.want(s)
		}, "1 [10.180.0.1=1 10.180.0.2=0]"},
		{"not counted", func(p *planned) {
			p.setDesired(p.compile(nil))
			limit := -1
			l := p.bounds
			l.now, l.families = p.now, rules.FamilySet{true, true}
			p.do(&p.planner, p.quiesce(l), &limit)
			p.do(&p.planner, p.quiesceServers(l), &limit)
			p.connections = map[DestinationKey]int{d: 0}
			p.do(&p.planner, p.shrink(l), &limit)
		}, "1 [10.180.0.1=0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanned(t)
			p.want(both)
			c.do(p)
			if got := p.weights(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// What leaves a virtual server that stays gets nothing new before the chains are written; a
// virtual server that goes waits for them.
func TestQuiesceBeforeTheChains(t *testing.T) {
	both := one("10.180.0.1:80", "10.180.0.2:80")
	for _, c := range []struct {
		name    string
		next    *rules.Service
		noDrain bool
		want    string
	}{
		{"one leaves", one("10.180.0.1:80"), false, "1 [10.180.0.1=1 10.180.0.2=0]"},
		{"one leaves where nothing drains", one("10.180.0.1:80"), true, "1 [10.180.0.1=1]"},
		{"all leave", one(), false, "1 [10.180.0.1=0 10.180.0.2=0]"},
		{"the Service has gone", nil, false, "1 [10.180.0.1=1 10.180.0.2=1]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanned(t)
			p.want(both)
			p.usable = nil
			p.bounds.noDrain = c.noDrain
			p.setDesired(p.compile(c.next))
			limit := -1
			p.do(&p.planner, p.grow(limits{}), &limit)
			p.do(&p.planner, p.quiesce(p.bounds), &limit)
			if got := p.weights(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A UDP flow goes on only where its endpoint still serves the Service.
func TestDrainingUDP(t *testing.T) {
	d := destinationAt(serverAt("10.96.0.1:80", netfilter.UDP), "10.180.0.2:80")
	udp := func(serving *rules.Service, endpoints ...string) *rules.Service {
		s := one(endpoints...)
		s.Name.Protocol = corev1.ProtocolUDP
		s.Serving = serving.Serving
		return s
	}
	both, first := one("10.180.0.1:80", "10.180.0.2:80"), one("10.180.0.1:80")
	for _, c := range []struct {
		name   string
		next   *rules.Service
		retire bool
		want   string
	}{
		{"terminating", udp(both, "10.180.0.1:80"), false, "1 [10.180.0.1=1 10.180.0.2=0]"},
		{"gone, or out of the unit", udp(first, "10.180.0.1:80"), false, "1 [10.180.0.1=1]"},
		{"the Service has gone", nil, false, "0 []"},
		{"chains take over", udp(both, "10.180.0.1:80", "10.180.0.2:80"), true, "1 [10.180.0.2=0]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanned(t)
			p.want(udp(both, "10.180.0.1:80", "10.180.0.2:80"))
			p.open[d] = 1
			p.config.Retire = c.retire
			p.want(c.next)
			if got := p.weights(); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

// A drained server takes its address and its entries along, and until then keeps them.
func TestADrainingServerKeepsWhatItNeeds(t *testing.T) {
	p := newPlanned(t)
	p.want(one("10.180.0.1:80"))
	p.open[destinationAt(serverAt("10.96.0.1:80", netfilter.TCP), "10.180.0.1:80")] = 1
	p.want(nil)
	var left []string
	for e := range p.holds.Entries {
		left = append(left, e.Set+" "+e.String())
	}
	slices.Sort(left)
	want := []string{"KUBE-CLUSTER-IP 10.96.0.1,tcp:80", "KUBE-IPVS-IPS 10.96.0.1"}
	if len(p.holds.Addresses) != 1 || !slices.Equal(left, want) {
		t.Errorf("addresses %v, entries %v", p.holds.Addresses, left)
	}
	done := len(p.log)
	p.want(nil)
	if len(p.log) != done {
		t.Errorf("while it drains there is nothing to do, and %+v was done", p.log[done:])
	}
	clear(p.open)
	p.want(nil)
	if !p.empty() || len(p.holds.Addresses)+len(p.holds.Entries)+len(p.holds.Servers) > 0 {
		t.Errorf("left: %+v", p.holds.State)
	}
}

// While an address stays because something drains there, every other server on it stays, too, and
// refuses; they go with the address.
func TestServersStayWithTheirAddress(t *testing.T) {
	two := one("10.180.0.1:80")
	second := two.Frontends[0]
	second.Addr = netip.MustParseAddrPort("10.96.0.1:81")
	two.Frontends = append(two.Frontends, second)
	for _, retire := range []bool{false, true} {
		p := newPlanned(t)
		p.want(two)
		p.open[destinationAt(serverAt("10.96.0.1:80", netfilter.TCP), "10.180.0.1:80")] = 1
		p.config.Retire = retire
		next := two
		if !retire {
			next = nil
		}
		for range 2 {
			p.want(next)
			if got := p.weights(); got != "2 [10.180.0.1=0]" || len(p.holds.Addresses) != 1 {
				t.Errorf("retire %t: while one drains: %s, addresses %v", retire, got, p.holds.Addresses)
			}
		}
		clear(p.open)
		p.want(next)
		if !p.empty() || len(p.holds.Servers)+len(p.holds.Entries) > 0 {
			t.Errorf("retire %t: left: %+v", retire, p.holds.State)
		}
	}
}

// A set that another program flushes makes no server of ours foreign.
func TestAFlushedSetIsRepaired(t *testing.T) {
	p := newPlanned(t)
	s := one("10.180.0.1:80")
	p.want(s)
	clear(p.holds.Entries)
	clear(p.holds.Addresses)
	p.setObserved(p.copied())
	limit := -1
	p.do(&p.planner, p.grow(limits{}), &limit)
	p.want(s)
	p.expectEqual(p.compile(s).State(), "after a flush")
}

// After a restart only the address on the link is left to tell whose a server is, where all
// sets were flushed.
func TestAFlushedSetIsRepairedAfterARestart(t *testing.T) {
	p := newPlanned(t)
	p.want(one("10.180.0.1:80"))
	clear(p.holds.Entries)
	p.planner = planner{}
	p.setObserved(p.copied())
	if n := p.status(); n.Servers != 1 {
		t.Errorf("the server on our link is not ours: %+v", n)
	}
}

// On an excluded address a server is ours only if one of our own sets lists it: then it drains.
func TestExcludedServersAreOthers(t *testing.T) {
	key := serverAt("10.96.0.1:80", netfilter.TCP)
	for _, c := range []struct {
		name    string
		entries []Entry
		link    bool
		exclude string
		gone    bool
	}{
		{"listed by kube-proxy", []Entry{entryListing("KUBE-LOAD-BALANCER", key)}, false, "10.96.0.0/24", false},
		{"a node port of kube-proxy's", []Entry{{Set: "KUBE-NODE-PORT-TCP", Port: 80}}, false, "10.96.0.0/24", false},
		{"on the link", nil, true, "10.96.0.1/32", false},
		{"listed by us", []Entry{entryListing(netfilter.SetClusterIP, key)}, true, "10.96.0.0/24", true},
		{"not excluded", []Entry{entryListing("KUBE-LOAD-BALANCER", key)}, true, "10.96.1.0/24", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanned(t)
			p.planner.exclude = []netip.Prefix{netip.MustParsePrefix(c.exclude)}
			p.fakeKernel.exclude = p.planner.exclude
			p.addForeign(key, netip.MustParseAddrPort("10.9.9.9:80"))
			if c.gone {
				p.fakeKernel.foreign = filled(kernelState{}).State
			}
			for _, e := range c.entries {
				p.holds.Entries[e] = struct{}{}
			}
			if c.link {
				p.holds.Addresses[key.Addr.Addr()] = struct{}{}
			}
			p.setObserved(p.copied())
			p.want(nil)
			want := "1 [10.9.9.9=7]"
			if c.gone {
				want = "0 []"
			}
			if got := p.weights(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

// A server that comes between reading and adding is another program's.
func TestAConflictIsLeftAlone(t *testing.T) {
	p := newPlanned(t)
	p.setObserved(p.copied())
	key := serverAt("10.96.0.1:80", netfilter.TCP)
	p.addForeign(key, netip.MustParseAddrPort("10.9.9.9:9"))
	p.unseen = true
	s := one("10.180.0.1:80")
	compiled := p.compile(s)
	p.setDesired(compiled)
	limit := -1
	p.do(&p.planner, p.grow(limits{}), &limit)
	p.unseen = false
	if len(p.holds.Addresses) > 0 {
		t.Errorf("an address that makes the server ours was added: %v", p.holds.Addresses)
	}
	p.want(s)
	p.expectEqual(compiled.State(), "with a conflict")
	if n := p.status(); n.Conflicts != 1 || n.Servers != 0 || n.Destinations != 0 {
		t.Errorf("status %+v", n)
	}
	delete(p.holds.Servers, key)
	clear(p.holds.Destinations)
	p.fakeKernel.foreign = filled(kernelState{}).State
	p.setObserved(p.copied())
	p.want(s)
	p.expectEqual(compiled.State(), "after the other has gone")
}
