package ipvs

import (
	"strings"
	"testing"
)

// TestTampering: what another program changes in ours is repaired, and counted.
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
		writes := strings.HasSuffix(name, "added") || strings.HasPrefix(name, "another")
		if others := m.OtherWrites(); (others.Places > 0) != writes {
			t.Errorf("%s: written by others: %+v", name, others)
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
