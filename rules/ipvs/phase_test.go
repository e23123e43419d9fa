package ipvs

import (
	"errors"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/rulestest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// phaseNames are the names of all phases, in order.
func phaseNames() []string {
	var names []string
	for _, ph := range phases() {
		names = append(names, ph.name)
	}
	return names
}

// TestPhasesInTheDesign: docs/design.md describes the phases in the order of the code.
func TestPhasesInTheDesign(t *testing.T) {
	text, err := os.ReadFile("../../docs/design.md")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("docs/design.md is not here: this is not the repository")
	}
	must(t, err)
	_, section, _ := strings.Cut(string(text), "\n## The IPVS backend\n")
	section, _, _ = strings.Cut(section, "\n## ")
	_, table, _ := strings.Cut(section, "| phase |")
	var described []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.HasPrefix(line, "| ") {
			described = append(described, strings.TrimSpace(cells[1]))
		}
	}
	if diff := cmp.Diff(phaseNames(), described); diff != "" {
		t.Errorf("phases (-code +docs/design.md):\n%s", diff)
	}
}

// TestOrderOfPhases: what must come before what, whatever else is added in between.
func TestOrderOfPhases(t *testing.T) {
	names := phaseNames()
	for _, c := range []struct{ first, then, because string }{
		{"read", "grow", "plans compare with what was read"},
		{"create", "grow", "entries need their sets, and addresses the link"},
		{"grow", "move to chains", "grow finds out what the kernel refuses"},
		{"move to chains", "chains", "chains serve what the kernel refuses"},
		{"grow", "chains", "virtual servers take the place of chains that go"},
		{"grow", "quiesce", "new real servers take the place of those that drain"},
		{"source", "chains", "chains translate from then on"},
		{"quiesce", "chains", "closure does not wait for chains"},
		{"chains", "quiesce servers", "chains take the place of virtual servers that go"},
		{"quiesce servers", "connections", "no connection comes after it was counted"},
		{"connections", "shrink", "only what has no connections is deleted"},
		{"chains", "shrink", "chains take the place of virtual servers that go"},
		{"shrink", "discard", "a virtual server is deleted before the set that makes it ours"},
	} {
		first, then := slices.Index(names, c.first), slices.Index(names, c.then)
		if first < 0 || then < 0 || first > then {
			t.Errorf("phase %q must come before %q: %s; the order is %q", c.first, c.then, c.because, names)
		}
	}
}

// TestServedAtEveryMoment: where a Service moves between virtual servers and chains, one of the two
// serves it after every operation. The fake kernel checks that.
func TestServedAtEveryMoment(t *testing.T) {
	web := one("10.180.0.1:80", "10.180.0.2:80")
	served, excluded := Config{}, Config{Exclude: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/24")}}
	for _, c := range []struct {
		name          string
		before, after Config
		chainsFirst   bool // before anything is taken away; else virtual servers first
	}{
		{"to chains", served, excluded, true},
		{"to iptables mode", served, Config{Retire: true}, true},
		{"to a virtual server", excluded, served, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := newPlanned(t)
			p.config = c.before
			p.want(web)
			compiled := p.compiler.Compile(ruleset(web), c.after)
			r := &fakeRun{fakeKernel: p.fakeKernel, planner: &p.planner, compiled: compiled, bounds: limits{now: p.now}, limit: -1}
			p.run(r)
			added := slices.IndexFunc(r.steps, func(step string) bool { return strings.HasSuffix(step, "weight 1") })
			removed := slices.IndexFunc(r.steps, func(step string) bool { return strings.HasPrefix(step, "delete") })
			chains := slices.Index(r.steps, "chains")
			if len(p.usable) != 1 || chains > removed || !c.chainsFirst && (added < 0 || added > chains) {
				t.Errorf("served before: %v; steps: %q", p.usable, r.steps)
			}
			p.expectEqual(compiled.State(), "in the end")
		})
	}
}

// TestClosureDoesNotWaitForChains: an endpoint that left the unit gets no new connections from
// before the chains are written, even if they cannot be written.
func TestClosureDoesNotWaitForChains(t *testing.T) {
	for _, failing := range []rules.FamilySet{{}, {true, true}} {
		p := newPlanned(t)
		p.want(one("10.180.0.1:80", "10.180.0.2:80"))
		p.open[destinationAt(serverAt("10.96.0.1:80", 6), "10.180.0.2:80")] = 1
		r := &fakeRun{
			fakeKernel: p.fakeKernel, planner: &p.planner, compiled: p.compiler.Compile(ruleset(one("10.180.0.1:80")), Config{}),
			bounds: limits{now: p.now, drain: time.Hour}, open: p.open, limit: -1, failing: failing,
		}
		p.run(r)
		if got := p.weights(); got != "1 [10.180.0.1=1 10.180.0.2=0]" || slices.Index(r.steps, "chains") != 1 {
			t.Errorf("chains fail %t: %s after %q", failing[0], got, r.steps)
		}
	}
}

// TestShadowGoesThroughThePhases: in the end a shadow's picture of the kernel is what the kernel
// holds after the same phases, and the shadow left what it was given alone.
func TestShadowGoesThroughThePhases(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		cfg := drawConfig(t)
		rs := rulestest.Ruleset(t)
		compiled := new(Compiler).Compile(rs, cfg)
		k := drawLeftovers(t, compiled.State(), cfg)
		r := heldRun{&shadowRun{
			shadow:  &Shadow{config: BackendConfig{Config: cfg, Tables: emptyTables{}}},
			ruleset: rs, fresh: k.copied(), planner: planner{exclude: cfg.Exclude},
		}}
		before := cloned(r.fresh.State)
		_ = runPhases(&r.planner, r) // no call fails
		p := &planner{exclude: cfg.Exclude}
		p.setObserved(k.copied())
		k.sync(p, compiled, time.Unix(1e9, 0), limits{noDrain: true}, nil, -1)
		if diff := cmp.Diff(k.holds.State, r.planner.observed.State, equateAddrs); diff != "" {
			t.Fatalf("(-kernel +shadow):\n%s", diff)
		}
		if !maps.Equal(before.Servers, r.fresh.Servers) || !maps.Equal(before.Destinations, r.fresh.Destinations) || !maps.Equal(before.Entries, r.fresh.Entries) {
			t.Fatal("the shadow changed what it was given")
		}
	})
}
