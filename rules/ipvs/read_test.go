package ipvs

import (
	"maps"
	"net"
	"net/netip"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
)

// TestSetEntries: what is written to a set is read back as the same.
func TestSetEntries(t *testing.T) {
	enter(t)
	k := open(t)
	found := map[string]string{}
	for _, f := range bothFamilies() {
		must(t, k.ensureSets(f, found))
	}
	if len(found) != 2*len(netfilter.SetTypes()) {
		t.Errorf("sets: %v", found)
	}
	p := netip.MustParsePrefix
	want := map[Entry]struct{}{
		{Set: "KUBE-CLUSTER-IP", Net: p("10.96.0.1/32"), Proto: 17, Port: 53}:                                         {},
		{Set: "KUBE-6-CLUSTER-IP", Net: p("fd00:96::1/128"), Proto: 132, Port: 1}:                                     {},
		{Set: "KUBE-IPVS-IPS", Net: p("10.96.0.1/32")}:                                                                {},
		{Set: "KUBE-IPVS-CHAINS", Net: p("127.0.0.0/8"), Proto: 6, Port: 30080}:                                       {},
		{Set: "KUBE-6-IPVS-CHAINS", Net: p("fd00:96::1/128"), Proto: 6, Port: 65535}:                                  {},
		{Set: "KUBE-LOOP-BACK", Net: p("10.180.0.1/32"), Proto: 6, Port: 80, Peer: netip.MustParseAddr("10.180.0.1")}: {},
		{Set: "KUBE-6-LOOP-BACK", Net: p("fd00::1/128"), Proto: 6, Port: 80, Peer: netip.MustParseAddr("fd00::1")}:    {},
		{Set: "KUBE-6-EXTERNAL-IP-LOCAL", Net: p("fd00:192::1/128"), Proto: netfilter.TCP, Port: 443}:                 {},
	}
	for e := range want {
		must(t, k.addEntry(e))
		must(t, k.addEntry(e))
	}
	o, err := k.observe(t.Context(), nil)
	must(t, err)
	if !maps.Equal(o.Entries, want) {
		t.Error(cmp.Diff(want, o.Entries, equateAddrs))
	}
	for e := range want {
		must(t, k.deleteEntry(e))
		must(t, k.deleteEntry(e))
	}
	if o, err = k.observe(t.Context(), nil); err != nil || len(o.Entries) != 0 {
		t.Errorf("after deleting them: %v, %v", o.Entries, err)
	}
}

// TestOtherNamespaces: the kernel's list of servers in /proc has gaps where other namespaces
// have servers too. Nothing may be taken for missing, nor for gone.
func TestOtherNamespaces(t *testing.T) {
	var rs rules.Ruleset
	for n := range 100 {
		rs.Services = append(rs.Services, webService(byte(n+1), "10.180.0.1:80", "10.180.0.2:80"))
	}
	rs.Services[0].Affinity = time.Hour
	gaps := false
	for range 2 {
		m := newMachine(t, BackendConfig{})
		m.sync(rs, false)
		listed, err := readProcServers(t.Context())
		must(t, err)
		gaps = gaps || len(listed.Servers) < 200
		m.expect(m.wants(rs), "at first")
		before := m.Status().Messages
		if changes := m.sync(rs, true); changes.Repaired+changes.Chains+changes.Rules != 0 {
			t.Errorf("something was taken for missing: %+v", changes)
		}
		m.restart()
		m.sync(rs, true)
		if sent := m.Status().Messages.since(before); sent.Servers > 20 {
			t.Errorf("something was taken for missing: %+v", sent)
		}
		run(t, "", "ipvsadm", "-e", "-t", "10.96.0.1:80", "-r", "10.180.0.1", "-g", "-w", "1")
		run(t, "", "ipvsadm", "-E", "-t", "10.96.0.2:80", "-s", "rr", "-p", "60", "-M", "255.255.255.0")
		run(t, "", "ipvsadm", "-E", "-t", "10.96.0.3:80", "-s", "rr", "-p", "60")
		m.sync(rs, true)
		m.expect(m.wants(rs), "after tampering")
	}
	if !gaps {
		t.Log("this kernel's list has no gaps")
	}
}

// TestReadWhileOthersWrite: another process changes links and servers while ours
// are read.
func TestReadWhileOthersWrite(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	rs := ruleset(webService(1, "10.180.0.1:80"), webService(2, "10.180.0.1:80"))
	m.sync(rs, false)
	handle, err := netlink.NewHandle()
	must(t, err)
	defer handle.Close()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		lo, err := handle.LinkByName("lo")
		for i := 0; err == nil; i++ {
			select {
			case <-stop:
				return
			default:
			}
			a := &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(10, 9, byte(i/250), byte(i%250+1)), Mask: net.CIDRMask(32, 32)}}
			if handle.AddrAdd(lo, a) == nil {
				_ = handle.AddrDel(lo, a)
			}
		}
	}()
	for range 50 {
		if changes := m.sync(rs, true); changes.Repaired != 0 {
			t.Errorf("something was taken for missing: %+v", changes)
		}
	}
	close(stop)
	<-stopped
	m.expect(m.wants(rs), "in the end")
}
