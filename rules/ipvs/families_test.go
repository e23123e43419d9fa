package ipvs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"golang.org/x/sys/unix"
)

// TestHeldFamily: while the chains of one family cannot be written nothing of that family is taken
// away but what leaves a server that stays, and the other family is finished.
func TestHeldFamily(t *testing.T) {
	const v4, v6 = "10.180.0.1:80", "[fd00:180::1]:80"
	before := ruleset(webService(1, v4, v6), webService(2, v4, v6))
	after := ruleset(webService(1, "10.180.0.2:80", "[fd00:180::2]:80"))
	for _, failed := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		var failing rules.FamilySet
		failing[failed] = true
		k := newFakeKernel(t.Fatalf, kernelState{})
		p := &planner{}
		carry := func(rs rules.Ruleset, failing rules.FamilySet) {
			p.setObserved(k.copied())
			k.run(&fakeRun{fakeKernel: k, planner: p, compiled: new(Compiler).Compile(rs, Config{}), bounds: limits{now: time.Now()}, limit: -1, failing: failing})
		}
		carry(before, rules.FamilySet{})
		carry(after, failing)
		for key, d := range k.holds.Destinations {
			old := key.Addr.String() == v4 || key.Addr.String() == v6
			stays := has(p.desired.servers, key.Server)
			switch held := key.Server.family() == failed; {
			case !held && (old || !stays):
				t.Errorf("%s failed, yet %v of the other family is still there: %+v", failed, key, d)
			case held && old && d.Weight != 0 && stays:
				t.Errorf("%s failed, and %v, which left a server that stays, gets new connections", failed, key)
			case held && !stays && d.Weight != 1:
				t.Errorf("%s failed, yet %v, whose server goes once the chains are there, drains", failed, key)
			}
		}
		if n := len(k.holds.Servers); n != 3 {
			t.Errorf("%s failed: %d servers are left, want 2 of it and 1 of the other: %v", failed, n, k.holds.Servers)
		}
		carry(after, rules.FamilySet{})
		if len(k.holds.Servers) != 2 || len(k.holds.Destinations) != 2 {
			t.Errorf("nothing failed, yet %v %v is left", k.holds.Servers, k.holds.Destinations)
		}
	}
}

// TestHeldFamilyIsComparedLater: a Service goes while the chains of its family cannot be written,
// and comes back with another endpoint. The endpoint that it had before gets no new connections,
// although no sync in between has read the kernel.
func TestHeldFamilyIsComparedLater(t *testing.T) {
	k := newFakeKernel(t.Fatalf, kernelState{})
	p := &planner{}
	p.setObserved(k.copied())
	var c Compiler
	carry := func(rs rules.Ruleset, failing rules.FamilySet) {
		k.run(&fakeRun{fakeKernel: k, planner: p, compiled: c.Compile(rs, Config{}), bounds: limits{now: time.Now()}, limit: -1, failing: failing})
	}
	failing := rules.FamilySet{true, false}
	carry(ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80")), rules.FamilySet{})
	carry(ruleset(), failing)
	carry(ruleset(webService(1, "10.180.0.2:80", "[fd00:180::2]:80")), failing)
	old := 0
	for key, d := range k.holds.Destinations {
		if key.Addr.String() == "10.180.0.1:80" {
			old++
			if d.Weight != 0 {
				t.Errorf("%v, which left a server that stays, gets new connections", key)
			}
		}
	}
	if old != 1 {
		t.Errorf("%d destinations are the old endpoint, want 1: %v", old, k.holds.Destinations)
	}
}

// noTables can write no family yet.
type noTables struct{ oneFamily }

func (noTables) Families() []netfilter.Family { return nil }

// TestNoFamilyYet: while no family can be written there are no virtual servers, and not those of
// both.
func TestNoFamilyYet(t *testing.T) {
	c := BackendConfig{Tables: noTables{}}.complete()
	compiled := new(Compiler).Compile(ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80")), c.Config)
	if s := compiled.State(); len(s.Servers)+len(s.Addresses)+len(s.Entries) != 0 {
		t.Errorf("no family is in use, yet there are %+v", s)
	}
}

// TestOpFamily: every operation is of one family, those on kube-proxy's sets of ports included.
func TestOpFamily(t *testing.T) {
	for _, f := range bothFamilies() {
		for _, name := range netfilter.SetsOfKubeProxy() {
			op := operation{Kind: deleteEntry, Entry: Entry{Set: netfilter.SetName(f, name), Port: 30080}}
			if op.family() != f {
				t.Errorf("%s is of %s, want %s", op.Entry.Set, op.family(), f)
			}
		}
	}
}

// lateTables can write IPv6 only after a while.
type lateTables struct {
	emptyTables
	works *bool
}

func (l lateTables) Families() []netfilter.Family {
	if *l.works {
		return bothFamilies()
	}
	return []netfilter.Family{netfilter.IPv4}
}

func (l lateTables) Sync(_ context.Context, _ rules.Ruleset, verify bool) (c rules.Changes, err error) {
	if c.Verified = verify; !*l.works {
		c.Families[netfilter.IPv6].Err = errors.New("the xtables lock is held")
	}
	return c, c.Families.Err()
}

// TestFamilyComesLater: a family whose chains cannot be written at the start has no servers, and
// all of them as soon as they can. The other family is complete, and its removals are not put
// off.
func TestFamilyComesLater(t *testing.T) {
	works := false
	m := newMachine(t, BackendConfig{Tables: lateTables{works: &works}})
	both := ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80"), webService(2, "10.180.0.1:80", "[fd00:180::1]:80"))
	for _, rs := range []rules.Ruleset{both, ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80"))} {
		c, err := m.Sync(t.Context(), rs, false)
		if err == nil || !c.Families[rules.IPv4].Synced() || !strings.Contains(c.Families[rules.IPv6].Err.Error(), "lock is held") {
			t.Errorf("IPv6 cannot be written: %+v, %v", c.Families, err)
		}
		if o := m.holds(); len(o.Servers) != len(rs.Services) {
			t.Errorf("servers %v, want those of IPv4 of %d Services", o.Servers, len(rs.Services))
		}
		works = len(rs.Services) == 1
	}
	if c := m.sync(both, false); c.Families != (rules.Outcomes{}) {
		t.Errorf("both can be written: %+v", c.Families)
	}
	m.expect(m.wants(both), "both families")
}

// TestSettingThatCannotBeSetStopsNothing: where something has switched off what virtual servers
// need, and it cannot be set here, each sync fails and says so; changes are written all the same.
func TestSettingThatCannotBeSetStopsNothing(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	m.sync(ruleset(webService(1, "10.180.0.1:80")), true)
	setting, zero := "/proc/sys/net/ipv4/vs/conntrack", filepath.Join(t.TempDir(), "conntrack")
	must(t, os.WriteFile(zero, []byte("0"), 0o600))
	must(t, unix.Mount(zero, setting, "", unix.MS_BIND, ""))
	t.Cleanup(func() { must(t, unix.Unmount(setting, 0)) })
	must(t, unix.Mount("", setting, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	c, err := m.Sync(t.Context(), ruleset(webService(1, "10.180.0.1:80"), webService(2, "10.180.0.1:80")), true)
	if err == nil || !strings.Contains(err.Error(), "net.ipv4.vs.conntrack is 0 and cannot be set to 1") || c.Families[netfilter.IPv4].Err == nil {
		t.Errorf("error %v, want one that names the setting", err)
	}
	if _, written := m.holds().Servers[webServer(2)]; !written {
		t.Error("the change was not written")
	}
}
