package conntrack

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// place is what the kernel test needs of one family.
type place struct {
	name        string
	ipv6        bool
	vip, lost   string // a Frontend that stays and one that goes
	other       string // no Frontend
	node        string // an address of the machine
	in, out     string // endpoints: in the unit, and outside of it later
	unspecified string
}

var places = []place{
	{"IPv4", false, "10.96.0.10", "10.96.0.20", "10.96.0.99", "192.168.7.1", "10.1.0.1", "10.1.0.2", "0.0.0.0"},
	{"IPv6", true, "fd00:96::10", "fd00:96::20", "fd00:96::99", "fd00:7::1", "fd00:1::1", "fd00:1::2", "::"},
}

func (p place) at(host string, port string) string {
	if p.ipv6 {
		return "[" + host + "]:" + port
	}
	return host + ":" + port
}

// dnat is the text that sends frontends to an endpoint, as Services' rules do in the end.
func (p place) dnat(endpoint string) string {
	var b strings.Builder
	b.WriteString("*nat\n")
	for _, f := range []string{p.vip, p.lost} {
		b.WriteString("-A OUTPUT -d " + f + " -p udp --dport 53 -j DNAT --to-destination " + p.at(endpoint, "5353") + "\n")
		b.WriteString("-A OUTPUT -d " + f + " -p tcp --dport 80 -j DNAT --to-destination " + p.at(endpoint, "8080") + "\n")
	}
	b.WriteString("-A OUTPUT -m addrtype --dst-type LOCAL -p udp --dport 30053 -j DNAT --to-destination " + p.at(endpoint, "5353") + "\n")
	b.WriteString("COMMIT\n")
	return b.String()
}

// service is one Service port with Frontends at "addr:port".
func service(name string, proto corev1.Protocol, serving []string, frontends ...string) *rules.Service {
	s := &rules.Service{Name: topology.ServicePortName{
		NamespacedName: types.NamespacedName{Namespace: "default", Name: name}, Protocol: proto,
	}}
	for _, f := range frontends {
		s.Frontends = append(s.Frontends, rules.Frontend{Addr: netip.MustParseAddrPort(f)})
	}
	for _, e := range serving {
		s.Serving = append(s.Serving, netip.MustParseAddrPort(e))
	}
	return s
}

func ruleset(services ...*rules.Service) rules.Ruleset {
	slices.SortFunc(services, func(a, b *rules.Service) int { return topology.CompareNames(a.Name, b.Name) })
	return rules.Ruleset{Services: services, NodePorts: rules.NodePortScope{
		IPv4: rules.ListenAddrs{All: true}, IPv6: rules.ListenAddrs{All: true},
	}}
}

func viewOf(local ...string) topology.View {
	var v topology.View
	for _, a := range local {
		v.Self.HostAddrs = append(v.Self.HostAddrs, netip.MustParseAddr(a))
	}
	return v
}

// withDrops is v with one more port. Closure leaves out its endpoints at some "addr:port".
func withDrops(v topology.View, name topology.ServicePortName, endpoints ...string) topology.View {
	sp := &topology.ServicePort{Name: name}
	if len(endpoints) > 0 {
		sp.Closure.LeftOut = []topology.ReasonCount{{Reason: topology.ReasonOtherUnit, Count: len(endpoints)}}
	}
	v.Ports = append(slices.Clone(v.Ports), sp)
	slices.SortFunc(v.Ports, func(a, b *topology.ServicePort) int { return topology.CompareNames(a.Name, b.Name) })
	others := v.Drops
	v.Drops = func(of *topology.ServicePort) (all []topology.Drop) {
		if of != sp {
			return others(of)
		}
		for _, e := range endpoints {
			all = append(all, topology.Drop{Endpoint: topology.Endpoint{Addr: netip.MustParseAddrPort(e)}, Reason: topology.ReasonOtherUnit})
		}
		return all
	}
	return v
}

func clean(t *testing.T, c *Cleaner, want rules.Ruleset, v topology.View, force bool, deleted, outlived int) {
	t.Helper()
	d, o, err := c.Clean(t.Context(), want, v, rules.FamilySet{true, true}, force)
	must(t, err)
	if d != deleted || o != outlived {
		t.Errorf("Clean = %d deleted, %d outlived, want %d, %d", d, o, deleted, outlived)
	}
}

func TestCleanTightens(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) { testCleanTightens(t, p) })
	}
}

// testCleanTightens moves an endpoint out of the unit while flows to it are open.
func testCleanTightens(t *testing.T, p place) {
	enterNamespace(t, p.vip, p.lost, p.other, p.node, p.in, p.out)
	for _, e := range []string{p.in, p.out} {
		listenUDP(t, p.at(e, "5353"))
		listenTCP(t, p.at(e, "8080"))
	}
	listenUDP(t, p.at(p.node, "9999"))
	in, out := p.at(p.in, "5353"), p.at(p.out, "5353")
	vip, lost, nodePort := p.at(p.vip, "53"), p.at(p.lost, "53"), p.at(p.unspecified, "30053")
	v := viewOf(p.node, p.in, p.out)

	dns := service("dns", corev1.ProtocolUDP, []string{in, out}, vip, nodePort)
	old := service("old", corev1.ProtocolUDP, []string{in, out}, lost)
	web := service("web", corev1.ProtocolTCP, []string{p.at(p.in, "8080"), p.at(p.out, "8080")}, p.at(p.vip, "80"))
	var c Cleaner
	clean(t, &c, ruleset(dns, old, web), v, false, 0, 0)

	restore(t, p.ipv6, p.dnat(p.out))
	for _, dst := range []string{vip, lost, p.at(p.node, "30053"), p.at(p.node, "9999"), p.at(p.other, "53")} {
		send(t, dst)
	}
	connect(t, p.at(p.vip, "80"))
	restore(t, p.ipv6, p.dnat(p.in))
	send(t, vip)
	connect(t, p.at(p.vip, "80"))

	before := kernelFlows(t, p.ipv6)
	if len(before) != 8 {
		t.Fatalf("the kernel tracks %d flows, want 8: %q", len(before), before)
	}
	clean(t, &c, ruleset(dns, old, web), v, false, 0, 0)
	if after := kernelFlows(t, p.ipv6); !slices.Equal(before, after) {
		t.Errorf("a sweep without a change changed flows:\n%s", cmp.Diff(before, after))
	}

	dns2 := service("dns", corev1.ProtocolUDP, []string{in}, vip, nodePort)
	web2 := service("web", corev1.ProtocolTCP, []string{p.at(p.in, "8080")}, p.at(p.vip, "80"))
	tight := withDrops(v, web.Name, p.at(p.out, "8080"))
	clean(t, &c, ruleset(dns2, web2), tight, false, 3, 1)
	want := []string{
		"tcp " + p.at(p.vip, "80") + "->" + p.at(p.in, "8080"),
		"tcp " + p.at(p.vip, "80") + "->" + p.at(p.out, "8080"),
		"udp " + p.at(p.other, "53") + "->" + p.at(p.other, "53"),
		"udp " + p.at(p.node, "9999") + "->" + p.at(p.node, "9999"),
		"udp " + vip + "->" + in,
	}
	slices.Sort(want)
	if after := kernelFlows(t, p.ipv6); !slices.Equal(want, after) {
		t.Errorf("flows after the sweep (-want +kernel):\n%s", cmp.Diff(want, after))
	}
	clean(t, &c, ruleset(dns2, web2), tight, true, 0, 0)
}

func TestCleanEmptyUnit(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) { testCleanEmptyUnit(t, p) })
	}
}

// testCleanEmptyUnit removes a Service's last endpoint (kubernetes/kubernetes#139628), starts
// again, and lets a flow pass while no rule exists.
func testCleanEmptyUnit(t *testing.T, p place) {
	enterNamespace(t, p.in, p.vip)
	listenUDP(t, p.at(p.in, "5353"))
	vip, in := p.at(p.vip, "53"), p.at(p.in, "5353")
	full := ruleset(service("dns", corev1.ProtocolUDP, []string{in}, vip))
	empty := ruleset(service("dns", corev1.ProtocolUDP, nil, vip))

	restore(t, p.ipv6, p.dnat(p.in))
	send(t, vip)
	var c Cleaner
	clean(t, &c, full, viewOf(), false, 0, 0)
	clean(t, &c, empty, viewOf(), false, 1, 0)

	send(t, vip)
	clean(t, &c, empty, viewOf(), false, 0, 0) // nothing changed: not swept
	var restarted Cleaner
	clean(t, &restarted, empty, viewOf(), false, 1, 0)

	clean(t, &c, full, viewOf(), false, 0, 0)
	restore(t, p.ipv6, "*nat\nCOMMIT\n*filter\n-A INPUT -m conntrack --ctstate INVALID -j DROP\nCOMMIT\n")
	send(t, vip) // another process flushed our rules: no rule translates it
	restore(t, p.ipv6, p.dnat(p.in))
	send(t, vip)
	clean(t, &c, full, viewOf(), false, 0, 0)
	clean(t, &c, full, viewOf(), true, 1, 0)
	if got, want := kernelFlows(t, p.ipv6), []string{"udp " + vip + "->" + in}; !slices.Equal(got, want) {
		t.Errorf("flows = %q, want %q", got, want)
	}
}

// TestRemember: a Service that was deleted while no process ran loses its UDP flows at the first
// Clean, which does not know it otherwise.
func TestRemember(t *testing.T) {
	for _, p := range places {
		t.Run(p.name, func(t *testing.T) {
			enterNamespace(t, p.vip, p.lost, p.node, p.in)
			listenUDP(t, p.at(p.in, "5353"))
			restore(t, p.ipv6, p.dnat(p.in))
			send(t, p.at(p.vip, "53"))
			send(t, p.at(p.lost, "53"))
			dns := service("dns", corev1.ProtocolUDP, []string{p.at(p.in, "5353")}, p.at(p.vip, "53"))
			deleted := service("deleted", corev1.ProtocolUDP, []string{p.at(p.in, "5353")}, p.at(p.lost, "53"))
			var forgetful, c Cleaner
			clean(t, &forgetful, ruleset(dns), viewOf(p.node), false, 0, 0)
			c.Remember([]*rules.Service{deleted, service("dns", corev1.ProtocolUDP, nil, p.at(p.vip, "53"))})
			clean(t, &c, ruleset(dns), viewOf(p.node), false, 1, 0)
			want := []string{"udp " + p.at(p.vip, "53") + "->" + p.at(p.in, "5353")}
			if diff := cmp.Diff(want, kernelFlows(t, p.ipv6)); diff != "" {
				t.Errorf("flows (-want +got):\n%s", diff)
			}
		})
	}
}

// TestCleanFollowsFamily: a family whose rules are not in force is left alone while the other
// is swept, and swept when it is back, although its rules did not change any more.
func TestCleanFollowsFamily(t *testing.T) {
	var local []string
	for _, p := range places {
		local = append(local, p.vip, p.in)
	}
	enterNamespace(t, local...)
	var in, vips []string
	for _, p := range places {
		in, vips = append(in, p.at(p.in, "5353")), append(vips, p.at(p.vip, "53"))
		listenUDP(t, p.at(p.in, "5353"))
		restore(t, p.ipv6, p.dnat(p.in))
	}
	full, empty := service("dns", corev1.ProtocolUDP, in, vips...), service("dns", corev1.ProtocolUDP, nil, vips...)
	for _, f := range rules.Families() {
		var c Cleaner
		clean(t, &c, ruleset(full), viewOf(), false, 0, 0)
		for _, vip := range vips {
			send(t, vip)
		}
		healthy := rules.FamilySet{true, true}
		healthy[f] = false
		for _, want := range []int{1, 0} {
			if d, _, err := c.Clean(t.Context(), ruleset(empty), viewOf(), healthy, false); err != nil || d != want {
				t.Errorf("%s failed: %d flows deleted (%v), want %d", f, d, err, want)
			}
		}
		if got, want := len(kernelFlows(t, f == rules.IPv6)), 1; got != want {
			t.Errorf("%s failed: %d of its flows are left, want %d", f, got, want)
		}
		clean(t, &c, ruleset(empty), viewOf(), false, 1, 0)
	}
}

// TestDumpFiltersInKernel proves that the flows of other protocols do not cross into user
// space: a dump that is stopped by a filter of ours alone would cost the whole table.
func TestDumpFiltersInKernel(t *testing.T) {
	p := places[0]
	enterNamespace(t, p.vip, p.node, p.in)
	listenTCP(t, p.at(p.in, "8080"))
	listenUDP(t, p.at(p.in, "5353"))
	restore(t, false, p.dnat(p.in))
	for range 20 {
		connect(t, p.at(p.vip, "80"))
		send(t, p.at(p.vip, "53"))
	}
	for proto, want := range map[Protocol]int{UDP: 20, TCP: 20, SCTP: 0} {
		got := 0
		must(t, list(Table{Proto: proto}, func([]byte) bool { got++; return true }))
		if got != want {
			t.Errorf("the kernel sent %d messages for protocol %d, want %d", got, proto, want)
		}
	}
}
