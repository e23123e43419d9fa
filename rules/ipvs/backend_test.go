package ipvs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

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
	for _, variant := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		t.Run(string(variant), func(t *testing.T) {
			enter(t)
			m := newMachine(t, BackendConfig{Tables: newTables(t, variant)})
			for i, rs := range changes(3, 4) {
				m.sync(rs, i == 2)
				m.expect(m.wants(rs), fmt.Sprintf("after change %d", i))
			}
			if saved := run(t, "", "iptables-"+string(variant)+"-save"); !strings.Contains(saved, "-m set --match-set "+netfilter.SetClusterIP) {
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
		lacking := m.Backend.config.Config
		lacking.Lacks = []string{"twos-such"}
		m.expect(new(Compiler).Compile(ruleset(&changed), lacking).State(), step.want)
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

// failingTables cannot be written.
type failingTables struct{ emptyTables }

func (failingTables) Sync(context.Context, rules.Ruleset, bool) (rules.Changes, error) {
	return rules.Changes{}, errors.New("the chains cannot be written")
}

// TestChainsFail: while the chains cannot be written everything is added, what leaves a
// server that stays gets nothing new, and no server goes.
func TestChainsFail(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	m.sync(ruleset(webService(1, "10.180.0.1:80"), webService(2, "10.180.0.1:80")), false)
	m.Backend.config.Tables = failingTables{}
	next := ruleset(webService(1, "10.180.0.2:80"))
	if _, err := m.Sync(t.Context(), next, false); err == nil || !strings.Contains(err.Error(), "the chains cannot be written") {
		t.Errorf("error %v", err)
	}
	m.expectWeights(webServer(1), map[string]int{"10.180.0.1:80": 0, "10.180.0.2:80": 1}, "without chains")
	m.expectWeights(webServer(2), map[string]int{"10.180.0.1:80": 1}, "without chains")
	m.Backend.config.Tables = emptyTables{}
	m.sync(next, false)
	m.expect(m.wants(next), "with chains")
}

// oneFamily stands for the chains of a machine without IPv6.
type oneFamily struct{ emptyTables }

func (oneFamily) Families() []netfilter.Family { return []netfilter.Family{netfilter.IPv4} }

// TestOneFamily: what the chains are not written for has no servers either.
func TestOneFamily(t *testing.T) {
	m := newMachine(t, BackendConfig{Tables: oneFamily{}})
	m.sync(ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80")), true)
	o := m.holds()
	if len(o.Servers) != 1 || len(o.Destinations) != 1 || len(o.Sets) != len(netfilter.SetTypes()) {
		t.Errorf("servers %v, destinations %v, sets %v", o.Servers, o.Destinations, o.Sets)
	}
}

func TestSettings(t *testing.T) {
	m := newMachine(t, BackendConfig{StrictARP: true, Timeouts: Timeouts{TCP: 20 * time.Minute, UDP: 7 * time.Second}})
	if told := run(t, "", "ipvsadm", "-l", "--timeout"); !strings.Contains(told, "1200 120 7") {
		t.Errorf("timeouts: %s", told)
	}
	for name, want := range map[string]string{
		"ipv4/vs/conntrack": "1", "ipv4/vs/expire_quiescent_template": "1", "ipv4/vs/expire_nodest_conn": "1",
		"ipv4/ip_forward": "1", "ipv4/conf/all/arp_ignore": "1", "ipv4/conf/all/arp_announce": "2",
	} {
		if is := strings.TrimSpace(run(t, "", "cat", "/proc/sys/net/"+name)); is != want {
			t.Errorf("%s is %s, want %s", name, is, want)
		}
	}
	if m.Status().Degraded || strings.Contains(m.log.String(), "level=WARN") {
		t.Errorf("%+v\n%s", m.Status(), m.log.String())
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

func TestSyncRunReportsSomeErrors(t *testing.T) {
	var u failures
	for i := range 20 {
		u.add(fmt.Errorf("error %d", i))
	}
	text := u.err().Error()
	if !strings.Contains(text, "error 4") || strings.Contains(text, "error 5") || !strings.Contains(text, "and 15 more") {
		t.Error(text)
	}
	if (&failures{}).err() != nil || (&syncRun{}).err() != nil {
		t.Error("nothing failed, yet there is an error")
	}
}
