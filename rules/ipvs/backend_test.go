package ipvs

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"github.com/vishvananda/netlink"
	"pgregory.net/rapid"
)

// changes draws a Ruleset and so many others, each one change away from the one before.
// Unchanged Services keep their pointers, as the syncer has it.
func changes(seed, count int) []rules.Ruleset {
	return rapid.Custom(func(t *rapid.T) []rules.Ruleset {
		var memo rules.Memo
		s := rulestest.Draw(t)
		var all []rules.Ruleset
		for range count {
			all = append(all, memo.Compile(s.View, s.Config))
			s = s.Change(t)
		}
		return all
	}).Example(seed)
}

// TestSync: whatever changes, the kernel holds what it would hold had it begun there.
func TestSync(t *testing.T) {
	for seed := range 5 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			m := newMachine(t, BackendConfig{})
			for i, rs := range changes(seed, 12) {
				m.sync(rs, false)
				m.expect(m.wants(rs), fmt.Sprintf("after change %d", i))
			}
			m.sync(rules.Ruleset{}, false)
			m.expect(State{}, "after the last Service went")
		})
	}
}

// TestSyncWithChains has the real chains too. What they hold is for rules/iptables to test;
// here it is that sets come before the rules that name them, and go after them.
func TestSyncWithChains(t *testing.T) {
	for _, variant := range []iptables.Variant{iptables.VariantNFT, iptables.VariantLegacy} {
		t.Run(string(variant), func(t *testing.T) {
			enter(t)
			m := newMachine(t, BackendConfig{Tables: newTables(t, iptables.Config{Variant: variant, IPVS: true})})
			for i, rs := range changes(3, 4) {
				m.sync(rs, i == 2)
				m.expect(m.wants(rs), fmt.Sprintf("after change %d", i))
			}
			if saved := run(t, "", "iptables-"+string(variant)+"-save"); !strings.Contains(saved, "-m set --match-set "+iptables.SetClusterIP) {
				t.Errorf("the chains name no set:\n%s", saved)
			}
			must(t, m.Cleanup(t.Context()))
			must(t, m.Cleanup(t.Context()))
			nothingLeft(t)
		})
	}
}

// TestAffinityAndScheduler change in place: the destinations stay.
func TestAffinityAndScheduler(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	web := webService(1, "10.180.0.1:80", "[fd00:180::1]:80")
	m.sync(ruleset(web), false)
	for _, step := range []struct {
		affinity  time.Duration
		scheduler string
		want      string
	}{
		{3 * time.Hour, "", "-s rr -p 10800"},
		{time.Minute, "wlc", "-s wlc -p 60"},
		{0, "mh", "-s mh -b mh-port"},
		{0, "twos-such", "-s rr"},
		{0, "", "-s rr"},
	} {
		changed := *web
		changed.Affinity, changed.Scheduler = step.affinity, step.scheduler
		before := m.Status().Messages
		m.sync(ruleset(&changed), false)
		m.expect(m.wantsWithout(ruleset(&changed), "twos-such"), step.want)
		for _, key := range []string{"-A -t 10.96.0.1:80 ", "-A -t [fd00:96::1]:80 "} {
			if saved := run(t, "", "ipvsadm", "-Sn"); !strings.Contains(saved, key+step.want+"\n") {
				t.Errorf("want %s%s in\n%s", key, step.want, saved)
			}
		}
		if sent := m.Status().Messages.since(before); sent.Destinations != 0 {
			t.Errorf("%s: %+v", step.want, sent)
		}
	}
}

func (m *machine) wantsWithout(rs rules.Ruleset, scheduler string) State {
	c := m.Backend.config.Config
	c.Lacks = []string{scheduler}
	return new(Compiler).Compile(rs, c).State()
}

// TestTampering: what somebody does to what is ours is put right, and counted.
func TestTampering(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	rs := ruleset(webService(1, "10.180.0.1:80", "10.180.0.2:80", "[fd00:180::1]:80"), webService(2, "10.180.0.3:80"), webService(3))
	m.sync(rs, true)
	for name, tamper := range map[string]func(){
		"a destination deleted":    func() { run(t, "", "ipvsadm", "-d", "-t", "10.96.0.1:80", "-r", "10.180.0.1") },
		"a destination added":      func() { run(t, "", "ipvsadm", "-a", "-t", "10.96.0.1:80", "-r", "10.180.9.9", "-m") },
		"a weight changed":         func() { run(t, "", "ipvsadm", "-e", "-t", "10.96.0.1:80", "-r", "10.180.0.1", "-m", "-w", "0") },
		"another way to forward":   func() { run(t, "", "ipvsadm", "-e", "-t", "10.96.0.1:80", "-r", "10.180.0.1", "-g", "-w", "1") },
		"another scheduler":        func() { run(t, "", "ipvsadm", "-E", "-t", "[fd00:96::1]:80", "-s", "wlc") },
		"a server deleted":         func() { run(t, "", "ipvsadm", "-D", "-t", "10.96.0.2:80") },
		"all servers deleted":      func() { run(t, "", "ipvsadm", "-C") },
		"an address removed":       func() { run(t, "", "ip", "addr", "del", "fd00:96::2/128", "dev", Link) },
		"an address added":         func() { run(t, "", "ip", "addr", "add", "10.96.7.7/32", "dev", Link) },
		"an entry deleted":         func() { run(t, "", "ipset", "del", "KUBE-CLUSTER-IP", "10.96.0.1,tcp:80") },
		"an entry added":           func() { run(t, "", "ipset", "add", "KUBE-6-IPVS-IPS", "fd00:96::77") },
		"a set flushed":            func() { run(t, "", "ipset", "flush", "KUBE-LOOP-BACK") },
		"a set destroyed":          func() { run(t, "", "ipset", "destroy", "KUBE-6-CLUSTER-IP") },
		"all sets destroyed":       func() { run(t, "", "ipset", "destroy") },
		"the link deleted":         func() { run(t, "", "ip", "link", "del", Link) },
		"servers and sets deleted": func() { run(t, "", "ipvsadm", "-C"); run(t, "", "ipset", "destroy") },
	} {
		tamper()
		changes := m.sync(rs, true)
		m.expect(m.wants(rs), name)
		if !changes.Verified {
			t.Errorf("%s: %+v", name, changes)
		}
		if added := strings.HasSuffix(name, "added"); changes.Repaired == 0 && !added {
			t.Errorf("%s: it was put right, but not told: %+v", name, changes)
		}
		if again := m.sync(rs, true); again.Repaired != 0 || again.Chains+again.Rules != 0 {
			t.Errorf("%s: a second look finds something to do: %+v", name, again)
		}
	}
}

// TestSyncHeals: what fails is tried again on what the kernel then holds.
func TestSyncHeals(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	m.sync(ruleset(webService(1, "10.180.0.1:80")), true)
	run(t, "", "ipvsadm", "-C")
	rs := ruleset(webService(1, "10.180.0.1:80", "10.180.0.2:80"), webService(2, "10.180.0.2:80"))
	if _, err := m.Sync(t.Context(), rs, false); err == nil {
		t.Fatal("a destination was added to a server that is not there")
	}
	if m.holds().Servers[webServer(2)].Scheduler == "" {
		t.Error("what one Service fails at stopped another")
	}
	m.sync(rs, false)
	m.expect(m.wants(rs), "after the next Sync")
}

// TestForeign: what is not ours is never touched.
func TestForeign(t *testing.T) {
	m := newMachine(t, BackendConfig{Config: Config{Exclude: []netip.Prefix{netip.MustParsePrefix("10.96.0.9/32")}}})
	other := ServerKey{Addr: netip.MustParseAddrPort("203.0.113.5:80"), Proto: iptables.TCP}
	excluded := ServerKey{Addr: netip.MustParseAddrPort("10.96.0.9:80"), Proto: iptables.TCP}
	run(t, "-A -t 203.0.113.5:80 -s wlc\n-a -t 203.0.113.5:80 -r 10.180.0.1:80 -g -w 3\n-A -t 10.96.0.9:80 -s sh\n-A -f 7 -s rr\n", "ipvsadm", "-R")
	run(t, "", "ipset", "create", "MINE", "hash:ip")
	run(t, "", "ip", "addr", "add", "10.96.0.200/32", "dev", "lo")
	before := run(t, "", "ipvsadm", "-Sn")
	found := m.holds()
	m.foreign = State{Servers: found.Servers, Destinations: found.Destinations}
	if len(found.Servers) != 2 || found.Servers[other].Scheduler != "wlc" || found.Servers[excluded].Scheduler != "sh" {
		t.Fatalf("servers of others: %v", found.Servers)
	}
	for i, rs := range []rules.Ruleset{ruleset(webService(1, "10.180.0.1:80"), webService(9, "10.180.0.1:80")), ruleset(webService(2)), {}} {
		m.sync(rs, i == 1)
		m.expect(m.wants(rs), fmt.Sprint("Ruleset ", i))
		m.restart()
	}
	must(t, m.Cleanup(t.Context()))
	if after := run(t, "", "ipvsadm", "-Sn"); after != before {
		t.Errorf("virtual servers of others are now\n%s\nwere\n%s", after, before)
	}
	run(t, "", "ipset", "destroy", "MINE")
	if addrs := run(t, "", "ip", "addr", "show", "dev", "lo"); !strings.Contains(addrs, "10.96.0.200/32") {
		t.Errorf("an address of others went: %s", addrs)
	}
}

// TestConflict: where somebody else has a virtual server already, it stays his, and nothing
// else suffers.
func TestConflict(t *testing.T) {
	for _, when := range []string{"before the start", "behind our back"} {
		t.Run(when, func(t *testing.T) {
			m := newMachine(t, BackendConfig{})
			rs := ruleset(webService(1, "10.180.0.1:80"), webService(2, "10.180.0.1:80"))
			if when != "before the start" {
				m.sync(ruleset(rs.Services[1]), false)
			}
			run(t, "-A -t 10.96.0.1:80 -s wlc\n-a -t 10.96.0.1:80 -r 10.9.9.9:80 -m -w 3\n", "ipvsadm", "-R")
			m.sync(rs, false)
			if got := m.holds().Servers[webServer(1)]; got.Scheduler != "wlc" {
				t.Errorf("the server of somebody else is %+v", got)
			}
			m.expectWeights(webServer(1), map[string]int{"10.9.9.9:80": 3}, when)
			m.expectWeights(webServer(2), map[string]int{"10.180.0.1:80": 1}, when)
			if m.Status().Conflicts != 1 {
				t.Errorf("status: %+v", m.Status())
			}
			if !strings.Contains(m.log.String(), "10.96.0.1:80/tcp") {
				t.Errorf("log: %s", m.log.String())
			}
			m.sync(rs, true)
			m.restart()
			m.sync(rs, true)
			m.expectWeights(webServer(1), map[string]int{"10.9.9.9:80": 3}, "after a restart")

			run(t, "", "ipvsadm", "-D", "-t", "10.96.0.1:80")
			m.sync(rs, true)
			m.expect(m.wants(rs), "after he has gone")
			if m.Status().Conflicts != 0 {
				t.Errorf("status: %+v", m.Status())
			}
		})
	}
}

// TestNoOrphans: after a thousand changes and a few restarts nothing is there that is not
// wanted.
func TestNoOrphans(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	for seed := range 10 {
		for i, rs := range changes(100+seed, 100) {
			m.sync(rs, i%25 == 24)
			m.clock = m.clock.Add(time.Second)
			if i == 99 {
				m.expect(m.wants(rs), fmt.Sprintf("seed %d", seed))
			}
		}
		m.restart()
	}
	m.sync(rules.Ruleset{}, false)
	m.expect(State{}, "in the end")
	must(t, m.Cleanup(t.Context()))
	nothingLeft(t)
}

// TestMessages: what one change sends does not depend on how many Services there are.
func TestMessages(t *testing.T) {
	var counts []Messages
	for _, services := range []int{5, 100} {
		m := newMachine(t, BackendConfig{})
		var rs rules.Ruleset
		for n := range services {
			rs.Services = append(rs.Services, webService(byte(n+1), "10.180.0.1:80", "10.180.0.2:80"))
		}
		m.sync(rs, false)
		before := m.Status().Messages
		rs.Services = append([]*rules.Service{webService(1, "10.180.0.1:80", "10.180.0.3:80")}, rs.Services[1:]...)
		m.sync(rs, false)
		counts = append(counts, m.Status().Messages.since(before))
		m.expect(m.wants(rs), "after the change")
	}
	// One added, one that drains and then goes; 10.180.0.2 stays the others' real server.
	want := Messages{Destinations: 3, Entries: 1}
	if counts[0] != want || counts[1] != want {
		t.Errorf("with 5 and with 100 Services: %+v, want %+v", counts, want)
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

// TestRetire: iptables mode takes over from IPVS mode, ours or kube-proxy's.
func TestRetire(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	m.sync(ruleset(webService(1, "10.180.0.1:80")), false)
	run(t, "create KUBE-LOAD-BALANCER hash:ip,port\nadd KUBE-LOAD-BALANCER 198.51.100.7,tcp:80\n", "ipset", "restore")
	run(t, "-A -t 198.51.100.7:80 -s rr\n-A -t 203.0.113.5:80 -s rr\n", "ipvsadm", "-R")
	if left, err := Leftover(); err != nil || !left {
		t.Fatalf("Leftover: %t, %v", left, err)
	}
	m.config.Retire = true
	m.restart()
	m.sync(ruleset(webService(1, "10.180.0.1:80")), true)
	if saved := run(t, "", "ipvsadm", "-Sn"); strings.TrimSpace(saved) != "-A -t 203.0.113.5:80 -s rr" {
		t.Errorf("servers after retiring:\n%s", saved)
	}
	if left, err := Leftover(); err != nil || left {
		t.Errorf("Leftover: %t, %v", left, err)
	}
	run(t, "", "ipvsadm", "-C")
	nothingLeft(t)
	m.sync(ruleset(), true)
}

// TestTakeOver: sets and servers of kube-proxy's are ours; a set that only it has goes once
// no rule names it.
func TestTakeOver(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	run(t, strings.Join([]string{
		"create KUBE-CLUSTER-IP hash:ip,port family inet hashsize 1024 maxelem 65536",
		"add KUBE-CLUSTER-IP 10.96.0.1,tcp:80", "add KUBE-CLUSTER-IP 10.96.0.44,tcp:80",
		"create KUBE-LOAD-BALANCER hash:ip,port", "add KUBE-LOAD-BALANCER 198.51.100.7,tcp:80",
		"create KUBE-NODE-PORT-TCP bitmap:port range 0-65535", "add KUBE-NODE-PORT-TCP 30080", "",
	}, "\n"), "ipset", "restore")
	run(t, "", "ip", "link", "add", Link, "type", "dummy")
	run(t, "", "ip", "addr", "add", "10.96.0.44/32", "dev", Link)
	run(t, "-A -t 10.96.0.1:80 -s rr\n-a -t 10.96.0.1:80 -r 10.180.0.1:80 -m -w 1\n-A -t 10.96.0.44:80 -s rr\n-A -t 198.51.100.7:80 -s rr\n-A -t 127.0.0.1:30080\n", "ipvsadm", "-R")
	rs := ruleset(webService(1, "10.180.0.1:80"))
	run(t, "*nat\n:OTHER - [0:0]\n-A OTHER -m set --match-set KUBE-LOAD-BALANCER dst,dst -j RETURN\nCOMMIT\n", "iptables-nft-restore", "--noflush")
	before := m.Status().Messages
	m.sync(rs, false)
	stays := Entry{Set: "KUBE-LOAD-BALANCER", Net: netip.MustParsePrefix("198.51.100.7/32"), Proto: 6, Port: 80}
	want := m.wants(rs)
	want.Entries[stays] = struct{}{}
	m.expect(want, "after taking over")
	if sent := m.Status().Messages.since(before); sent.Destinations > 1 {
		t.Errorf("the real server that was there already was written: %+v", sent)
	}
	sets := run(t, "", "ipset", "list", "-n")
	if strings.Contains(sets, "KUBE-NODE-PORT-TCP") || !strings.Contains(sets, "KUBE-LOAD-BALANCER\n") {
		t.Errorf("sets: %s", sets)
	}
	run(t, "*nat\n-F OTHER\n-X OTHER\nCOMMIT\n", "iptables-nft-restore", "--noflush")
	m.sync(rs, true)
	if sets := run(t, "", "ipset", "list", "-n"); strings.Contains(sets, "KUBE-LOAD-BALANCER\n") {
		t.Errorf("sets: %s", sets)
	}
}

func TestTurnTellsSomeErrors(t *testing.T) {
	var u turn
	for i := range 20 {
		u.fail(fmt.Errorf("error %d", i))
	}
	text := u.err().Error()
	if !strings.Contains(text, "error 4") || strings.Contains(text, "error 5") || !strings.Contains(text, "and 15 more") {
		t.Error(text)
	}
	if (&turn{}).err() != nil {
		t.Error("nothing failed, yet there is an error")
	}
}

// TestSetEntries: what is written to a set is read back as the same.
func TestSetEntries(t *testing.T) {
	enter(t)
	k := open(t)
	found := map[string]string{}
	must(t, k.ensureSets(bothFamilies(), found))
	if len(found) != 2*len(iptables.SetTypes()) {
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
		{Set: "KUBE-6-EXTERNAL-IP-LOCAL", Net: p("fd00:192::1/128"), Proto: iptables.TCP, Port: 443}:                  {},
	}
	for e := range want {
		must(t, k.addEntry(e))
		must(t, k.addEntry(e))
	}
	o, err := k.observe()
	must(t, err)
	if !maps.Equal(o.Entries, want) {
		t.Error(cmp.Diff(want, o.Entries, equateStates...))
	}
	for e := range want {
		must(t, k.deleteEntry(e))
		must(t, k.deleteEntry(e))
	}
	if o, err = k.observe(); err != nil || len(o.Entries) != 0 {
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
		listed, err := readProcServers()
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
