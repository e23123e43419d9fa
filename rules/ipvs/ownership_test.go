package ipvs

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// TestForeign: what is not ours is never touched.
func TestForeign(t *testing.T) {
	m := newMachine(t, BackendConfig{Config: Config{Exclude: []netip.Prefix{netip.MustParsePrefix("10.96.0.9/32")}}})
	other := ServerKey{Addr: netip.MustParseAddrPort("203.0.113.5:80"), Proto: netfilter.TCP}
	excluded := ServerKey{Addr: netip.MustParseAddrPort("10.96.0.9:80"), Proto: netfilter.TCP}
	run(t, "-A -t 203.0.113.5:80 -s wlc\n-a -t 203.0.113.5:80 -r 10.180.0.1:80 -g -w 3\n-A -t 10.96.0.9:80 -s sh\n-A -f 7 -s rr\n", "ipvsadm", "-R")
	run(t, "", "ipset", "create", "MINE", "hash:ip")
	run(t, "create KUBE-LOAD-BALANCER hash:ip,port\nadd KUBE-LOAD-BALANCER 10.96.0.9,tcp:80\n", "ipset", "restore")
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

// TestConflict: where another program has a virtual server already, it stays, and nothing
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
				t.Errorf("the server of another program is %+v", got)
			}
			m.expectWeights(webServer(1), map[string]int{"10.9.9.9:80": 3}, when)
			m.expectWeights(webServer(2), map[string]int{"10.180.0.1:80": 1}, when)
			if m.Status().Conflicts != 1 {
				t.Errorf("status: %+v", m.Status())
			}
			if !strings.Contains(m.log.String(), "ipvsadm -D -t 10.96.0.1:80") {
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
	run(t, "-A -t 10.96.0.1:80 -s rr\n-a -t 10.96.0.1:80 -r 10.180.0.1:80 -m -w 1\n"+
		"-A -t 10.96.0.44:80 -s rr\n-A -t 198.51.100.7:80 -s rr\n-A -t 127.0.0.1:30080\n", "ipvsadm", "-R")
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
