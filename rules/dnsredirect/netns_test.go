package dnsredirect

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"
	"gridproxy/rules"
	"gridproxy/rules/conntrack"
	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
	"gridproxy/topology/dnsview"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The parts of the test's machine, by family.
var machine = []struct {
	family                           netfilter.Family
	clusterIP, server, pod, networks string
}{
	{netfilter.IPv4, "10.96.0.10", "169.254.20.12", "10.0.0.5", "10.96.0.0/16"},
	{netfilter.IPv6, "fd00:96::10", "fd00:6772:6964::12", "fd00::5", "fd00:96::/64"},
}

// run runs a program in the namespace of the calling thread.
func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func lead(t *testing.T, r *Redirect, entries []Entry, leave rules.FamilySet) {
	t.Helper()
	_, err := r.Lead(entries, leave)
	must(t, err)
}

// answer answers every datagram to an address with a name.
func answer(t *testing.T, addr, name string) {
	t.Helper()
	conn, err := net.ListenPacket("udp", net.JoinHostPort(addr, "53"))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		in := make([]byte, 512)
		for {
			_, from, err := conn.ReadFrom(in)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo([]byte(name), from)
		}
	}()
}

// ask is who answers at an address, from a port of its own; "refused" = none does.
func ask(t *testing.T, addr string) string {
	t.Helper()
	conn, err := net.Dial("udp", net.JoinHostPort(addr, "53"))
	must(t, err)
	defer conn.Close() //nolint:errcheck // nothing more is read
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second)))
	if _, err := conn.Write([]byte("who?")); err != nil {
		return "refused"
	}
	out := make([]byte, 512)
	n, err := conn.Read(out)
	if err != nil {
		return "refused"
	}
	return string(out[:n])
}

// dnsService has a Frontend of each family with one endpoint.
func dnsService() *rules.Service {
	s := &rules.Service{Name: topology.ServicePortName{
		NamespacedName: types.NamespacedName{Namespace: "kube-system", Name: "kube-dns"}, Port: "dns", Protocol: corev1.ProtocolUDP,
	}}
	for i, m := range machine {
		endpoint := netip.AddrPortFrom(netip.MustParseAddr(m.pod), 53)
		s.Frontends = append(s.Frontends, rules.Frontend{
			Addr: netip.AddrPortFrom(netip.MustParseAddr(m.clusterIP), 53), Routes: []rules.Route{{Set: i}},
		})
		s.Sets = append(s.Sets, rules.EndpointSet{Endpoints: []netip.AddrPort{endpoint}})
		s.Serving = append(s.Serving, endpoint)
	}
	return s
}

// redirected is a machine with the rules of kube-dns and of a DNS server of its own.
func redirected(t *testing.T, c Config) (*Redirect, *iptables.Backend, rules.Ruleset) {
	t.Helper()
	need.IPTables(t)
	need.Namespace(t)
	for _, m := range machine {
		run(t, "ip", "addr", "add", m.pod, "dev", "lo", "nodad")
		run(t, "ip", "route", "add", m.networks, "dev", "lo")
		c.Addrs = append(c.Addrs, netip.MustParseAddr(m.server))
	}
	r, err := Open(c)
	must(t, err)
	t.Cleanup(r.Close)
	for _, f := range rules.Families() {
		must(t, r.Prepare(f))
	}
	for _, m := range machine {
		answer(t, m.server, "the server of this node")
		answer(t, m.pod, "the cluster's")
	}
	b, err := iptables.New(t.Context(), iptables.Config{Variant: netfilter.VariantNFT})
	must(t, err)
	want := rules.Ruleset{Services: []*rules.Service{dnsService()}, LocalDNS: rules.LocalDNS{Addrs: c.Addrs}}
	if _, err := b.Sync(t.Context(), want, true); err != nil {
		t.Fatal(err)
	}
	return r, b, want
}

func entries(t *testing.T) []Entry {
	t.Helper()
	svc := &topology.DNSService{Names: dnsview.Names{Kind: dnsview.ClusterIP, Ports: []dnsview.Port{
		{Name: "dns", Protocol: "UDP", Number: 53}, {Name: "dns-tcp", Protocol: "TCP", Number: 53}, {Name: "metrics", Protocol: "TCP", Number: 9153},
	}}}
	for _, m := range machine {
		svc.ClusterIPs = append(svc.ClusterIPs, netip.MustParseAddr(m.clusterIP))
	}
	all := Entries(svc)
	if len(all) != 4 {
		t.Fatalf("entries %v", all)
	}
	return all
}

func wantAnswer(t *testing.T, when, want string) {
	t.Helper()
	for _, m := range machine {
		if got := ask(t, m.clusterIP); got != want {
			t.Errorf("%s, %s: %q answers, want %q", when, m.clusterIP, got, want)
		}
	}
}

// TestRedirect: queries meet the server of this node while they are led there, and no longer; a
// verification finds nothing to repair.
func TestRedirect(t *testing.T) {
	r, b, want := redirected(t, Config{})
	wantAnswer(t, "before", "the cluster's")
	lead(t, r, entries(t), rules.FamilySet{})
	wantAnswer(t, "led", "the server of this node")
	lead(t, r, entries(t), rules.FamilySet{}) // renews them
	for _, f := range rules.Families() {
		must(t, r.Prepare(f)) // what is there stays
	}
	if c, err := b.Sync(t.Context(), want, true); err != nil || c.Chains > 0 {
		t.Errorf("a verification wrote %d chains, %v", c.Chains, err)
	}
	wantAnswer(t, "renewed and verified", "the server of this node")
	lead(t, r, OfFamily(entries(t), true), rules.FamilySet{})
	if got := ask(t, machine[0].clusterIP); got != "the cluster's" {
		t.Errorf("IPv4, while only IPv6 is led: %q", got)
	}
	if got := ask(t, machine[1].clusterIP); got != "the server of this node" {
		t.Errorf("IPv6, while only it is led: %q", got)
	}
	lead(t, r, nil, rules.FamilySet{})
	wantAnswer(t, "not led any more", "the cluster's")
}

// TestExpire: without a process that renews them, the entries end.
func TestExpire(t *testing.T) {
	r, _, _ := redirected(t, Config{Expire: time.Second})
	lead(t, r, entries(t), rules.FamilySet{})
	for _, m := range machine {
		wait.Until(t, "queries to "+m.clusterIP+" are led to the cluster's server", func() error {
			got := ask(t, m.clusterIP)
			return wait.Check(got == "the cluster's", "%q answers", got)
		})
	}
}

// TestPermanent: such entries do not end, so that queries are refused without a server.
func TestPermanent(t *testing.T) {
	r, _, _ := redirected(t, Config{Permanent: true})
	lead(t, r, entries(t), rules.FamilySet{})
	for _, m := range machine {
		name := setName(rules.Family(m.family))
		if text := run(t, "ipset", "list", name); strings.Count(text, "timeout 0") != 2 {
			t.Errorf("entries of %s:\n%s", name, text)
		}
	}
}

// TestAnotherProcessLed: what a process before left in the sets is gone with the first Lead.
func TestAnotherProcessLed(t *testing.T) {
	r, _, _ := redirected(t, Config{Permanent: true})
	lead(t, r, entries(t), rules.FamilySet{})
	later, err := Open(Config{Addrs: r.config.Addrs})
	must(t, err)
	defer later.Close()
	lead(t, later, nil, rules.FamilySet{})
	wantAnswer(t, "after another process", "the cluster's")
}

// TestLeave: a family that is left as it is stays, until it is not left any more.
func TestLeave(t *testing.T) {
	r, _, _ := redirected(t, Config{})
	lead(t, r, entries(t), rules.FamilySet{})
	later, err := Open(Config{Addrs: r.config.Addrs})
	must(t, err)
	defer later.Close()
	for range 2 {
		lead(t, later, OfFamily(entries(t), true), rules.FamilySet{rules.IPv4: true})
		wantAnswer(t, "IPv4 is left", "the server of this node")
	}
	lead(t, later, nil, rules.FamilySet{})
	wantAnswer(t, "nothing is left", "the cluster's")
}

// TestRemove: nothing is left, once the rules are gone.
func TestRemove(t *testing.T) {
	r, b, _ := redirected(t, Config{})
	lead(t, r, entries(t), rules.FamilySet{})
	dry := rules.Removal{DryRun: true}
	if err := r.Remove(&dry); err != nil || fmt.Sprint(dry.Items) != "[{ipset sets 2} {interface lo addresses 2}]" {
		t.Fatalf("what would be removed: %v, %v", dry.Items, err)
	}
	wantAnswer(t, "after a dry run", "the server of this node")
	if err := r.Remove(nil); err != nil {
		t.Fatalf("while rules name the sets: %v", err)
	}
	must(t, b.Cleanup(context.Background()))
	must(t, r.Remove(nil))
	if text := run(t, "ipset", "list", "-n"); text != "" {
		t.Errorf("sets are left: %s", text)
	}
	if text := run(t, "ip", "addr", "show", "dev", "lo"); strings.Contains(text, machine[0].server) || strings.Contains(text, machine[1].server) {
		t.Errorf("addresses are left:\n%s", text)
	}
	if text := run(t, "iptables-nft-save"); strings.Contains(text, netfilter.ChainLocalDNS) {
		t.Errorf("rules are left:\n%s", text)
	}
	var none rules.Removal
	if err := r.Remove(&none); err != nil || len(none.Items) > 0 {
		t.Errorf("a second time: %v, %v", none.Items, err)
	}
}

// TestStrangers: only this machine, and its Pods, may ask the server at its own address.
func TestStrangers(t *testing.T) {
	want := []string{
		"-A INPUT -d 169.254.20.12/32 -m comment --comment \"gridproxy: who may ask the DNS server of this node\" -j KUBE-LOCAL-DNS",
		"-A KUBE-LOCAL-DNS -m comment --comment \"redirected queries\" -m conntrack --ctstate DNAT -j RETURN",
		"-A KUBE-LOCAL-DNS -m comment --comment \"this machine\" -m addrtype --src-type LOCAL -j RETURN",
		"-A KUBE-LOCAL-DNS -s 10.0.0.0/24 -m comment --comment \"pods of this node\" -j RETURN",
		"-A KUBE-LOCAL-DNS -m comment --comment \"another machine\" -j REJECT --reject-with icmp-port-unreachable",
	}
	_, b, ruleset := redirected(t, Config{})
	ruleset.LocalDNS.Clients = []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("fd00::/64")}
	if _, err := b.Sync(t.Context(), ruleset, false); err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(run(t, "iptables-nft-save", "-t", "filter")) {
		if strings.Contains(line, "-A") && strings.Contains(line, netfilter.ChainLocalDNS) {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFlowsToTheServerStay: the sweep of flows leaves those to the server of this node alone, and
// EndFlows ends them.
func TestFlowsToTheServerStay(t *testing.T) {
	r, _, want := redirected(t, Config{})
	lead(t, r, entries(t), rules.FamilySet{})
	wantAnswer(t, "led", "the server of this node")
	var c conntrack.Cleaner
	deleted, _, err := c.Clean(t.Context(), want, topology.View{}, rules.FamilySet{true, true}, true)
	if err != nil || deleted != 0 {
		t.Errorf("the sweep deleted %d flows, %v", deleted, err)
	}
	for _, m := range machine {
		n, err := conntrack.EndFlows(t.Context(), conntrack.Table{IPv6: m.family == netfilter.IPv6, Proto: conntrack.UDP}, func(f conntrack.Flow) bool {
			return f.ReplySrc.Addr() == netip.MustParseAddr(m.server)
		})
		if err != nil || n != 1 {
			t.Errorf("%d flows to %s deleted, %v", n, m.server, err)
		}
	}
}
