package ipvs

import (
	"bytes"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/rulestest"

	"pgregory.net/rapid"
)

// holding is a kernel that holds a State, with all sets and the link.
func holding(s State) kernelState {
	o := kernelState{State: cloned(s), Sets: map[string]string{}, Link: true}
	for _, set := range knownSets() {
		o.Sets[set.name] = set.kind
	}
	return o
}

// heldRun is a shadowRun on a kernel that holds fresh.
type heldRun struct{ *shadowRun }

func (r heldRun) read() error { r.observe(); return nil }

// compareWith is what a Shadow finds in a kernel that holds fresh.
func compareWith(fresh kernelState, rs rules.Ruleset, config BackendConfig) []Difference {
	config.Tables = emptyTables{}
	r := heldRun{&shadowRun{shadow: &Shadow{config: config}, ruleset: rs, fresh: fresh}}
	_ = runPhases(&r.planner, r) // no call fails
	return r.compare()
}

// A kernel that holds what is wanted has no difference, one that holds what was wanted before has
// exactly what the new text has and the old one has not, and others' servers are never in it.
func TestShadowParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sample := rulestest.Draw(t)
		config := BackendConfig{Config: drawConfig(t)}
		config.Retire, config.Families = false, bothFamilies()
		var compiler Compiler
		before := compiler.Compile(sample.Ruleset(), config.Config)
		if same := compareWith(holding(before.State()), sample.Ruleset(), config); len(same) > 0 {
			t.Fatalf("the same differs: %+v", same)
		}
		changed := sample.Change(t).Ruleset()
		after := compiler.Compile(changed, config.Config)
		fresh := holding(before.State())
		foreign := ServerKey{Addr: netip.MustParseAddrPort("203.0.113.99:4321"), Proto: netfilter.TCP}
		fresh.Servers[foreign] = Server{Scheduler: "wlc"}
		found := compareWith(fresh, changed, config)
		for _, f := range config.Families {
			for _, part := range Parts() {
				at := slices.IndexFunc(found, func(d Difference) bool { return d.Part == part.Name && d.Family == f })
				old, want := part.lines(withEverySet(before.State()), f), part.lines(withEverySet(after.State()), f)
				if at < 0 {
					if !slices.Equal(old, want) {
						t.Fatalf("%s %s: no difference, but there is\n%q\nand wanted is\n%q", f, part.Name, old, want)
					}
					continue
				}
				got := slices.DeleteFunc(slices.Clone(found[at].Desired), func(line string) bool { return strings.Contains(line, foreign.Addr.String()) })
				if !slices.Equal(got, want) {
					t.Fatalf("%s %s: desired\n%q\nwant\n%q", f, part.Name, got, want)
				}
				var text bytes.Buffer
				if _, err := found[at].WriteTo(&text); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(text.String()) {
					if line[0] != ' ' && strings.Contains(line, foreign.Addr.String()) {
						t.Fatalf("another program's server would be changed:\n%s", text.String())
					}
				}
			}
		}
	})
}

// A destination that drains is no difference; one that is missing is, and its Service is named.
func TestShadowNamesServices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := BackendConfig{Config: Config{Families: bothFamilies()}}
		rs := rulestest.Ruleset(t)
		want := new(Compiler).Compile(rs, config.Config).State()
		if len(want.Destinations) == 0 {
			return
		}
		fresh := holding(want)
		lost := slices.MinFunc(slices.Collect(maps.Keys(want.Destinations)), compareDestinations)
		drains := DestinationKey{Server: lost.Server, Addr: netip.MustParseAddrPort("10.9.9.9:9")}
		if lost.Server.Addr.Addr().Is6() {
			drains.Addr = netip.MustParseAddrPort("[fd09::9]:9")
		}
		fresh.Destinations[drains] = Destination{}
		if found := compareWith(fresh, rs, config); len(found) > 0 {
			t.Fatalf("what drains differs: %+v", found)
		}
		delete(fresh.Destinations, lost)
		found := compareWith(fresh, rs, config)
		if len(found) != 1 || found[0].Part != "ipvs" || len(found[0].Services()) == 0 {
			t.Fatalf("a destination is missing: %+v", found)
		}
	})
}

// A shadow sees what a Backend has written and what another program changes there, and it writes
// nothing, neither before the first Service nor after.
func TestShadowOfTheKernel(t *testing.T) {
	enter(t)
	theirs := newShadowTables(t, netfilter.VariantNFT, true)
	shadow, err := NewShadow(BackendConfig{Tables: theirs})
	must(t, err)
	t.Cleanup(shadow.kernel.close)
	rs := ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80"))
	look := func() []Difference {
		t.Helper()
		before := everything(t)
		c, err := shadow.Sync(t.Context(), rs, true)
		must(t, err)
		if want := (rules.Changes{Verified: true}); c != want {
			t.Errorf("a shadow says that it did %+v, want %+v", c, want)
		}
		if after := everything(t); after != before {
			t.Errorf("the shadow changed the kernel:\n%s\nbefore:\n%s", after, before)
		}
		return shadow.Differences()
	}
	if found := look(); len(found) != 6 || len(theirs.Differences()) == 0 {
		t.Errorf("of nothing: %+v", found)
	}
	m := newMachineHere(t, BackendConfig{Tables: newTables(t, netfilter.VariantNFT)})
	m.sync(rs, true)
	if found := look(); len(found) != 0 || len(theirs.Differences()) != 0 {
		t.Errorf("after a sync: %+v, %+v", found, theirs.Differences())
	}
	run(t, "", "ipvsadm", "-A", "-t", "203.0.113.99:4321")
	if found := look(); len(found) != 0 {
		t.Errorf("another program's server: %+v", found)
	}
	run(t, "", "ipset", "flush", netfilter.SetClusterIP)
	found := look()
	if len(found) != 1 || found[0].Part != "ipset" || found[0].Family != netfilter.IPv4 {
		t.Errorf("after a set was flushed: %+v", found)
	}
}

// A shadow that began where there was nothing of mode ipvs, nor IPVS itself, sees what comes later.
func TestShadowSeesIPVSCome(t *testing.T) {
	enter(t)
	shadow, err := NewShadow(BackendConfig{Config: Config{Retire: true}, Tables: newShadowTables(t, netfilter.VariantNFT, false)})
	must(t, err)
	t.Cleanup(shadow.kernel.close)
	shadow.kernel.servers.Close()
	shadow.kernel.servers = nil // as on a kernel that has not loaded IPVS yet
	rs := ruleset(webService(1, "10.180.0.1:80", "[fd00:180::1]:80"))
	_, err = shadow.Sync(t.Context(), ruleset(), true)
	must(t, err)
	if found := shadow.Differences(); len(found) != 0 {
		t.Errorf("of nothing: %+v", found)
	}
	m := newMachineHere(t, BackendConfig{Tables: newTables(t, netfilter.VariantNFT)})
	m.sync(rs, true)
	_, err = shadow.Sync(t.Context(), rs, true)
	must(t, err)
	found := shadow.Differences()
	if !slices.ContainsFunc(found, func(d Difference) bool { return d.Part == "ipvs" && d.Family == netfilter.IPv4 }) {
		t.Errorf("of what mode ipvs has written since: %+v", found)
	}
}

// everything is what the kernel holds, by other eyes than ours.
func everything(t *testing.T) string {
	t.Helper()
	return run(t, "", "sh", "-c", "ipvsadm -Sn; ipset save; ip -o address; nft list ruleset; grep -s . /proc/sys/net/ipv4/vs/*; true")
}
