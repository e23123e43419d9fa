package ipvs

import (
	"bytes"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules/iptables"
	"gridproxy/rules/rulestest"

	"pgregory.net/rapid"
)

// holding is a kernel that holds a State, with all sets and the link.
func holding(s State) Observed {
	o := Observed{State: cloned(s), Sets: map[string]string{}, Link: true}
	for _, set := range ourSets() {
		o.Sets[set.name] = set.kind
	}
	return o
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
		if same := compareParts(holding(before.State()), before, config); len(same) > 0 {
			t.Fatalf("the same differs: %+v", same)
		}
		after := compiler.Compile(sample.Change(t).Ruleset(), config.Config)
		fresh := holding(before.State())
		foreign := ServerKey{Addr: netip.MustParseAddrPort("203.0.113.99:4321"), Proto: iptables.TCP}
		fresh.Servers[foreign] = Server{Scheduler: "wlc"}
		found := compareParts(fresh, after, config)
		for _, f := range config.Families {
			for i, write := range []func() []string{
				func() []string { return linesOf(WriteIPVS, after.State(), f) },
				func() []string { return linesOf(WriteIPSet, after.State(), f) },
				func() []string { return linesOf(WriteAddresses, after.State(), f) },
			} {
				at := slices.IndexFunc(found, func(d Difference) bool { return d.Part == Parts()[i] && d.Family == f })
				want := write()
				if at < 0 {
					continue // the same as before, or the property below fails
				}
				got := slices.DeleteFunc(slices.Clone(found[at].Desired), func(line string) bool { return strings.Contains(line, foreign.Addr.String()) })
				if !slices.Equal(got, want) {
					t.Fatalf("%s %s: desired\n%q\nwant\n%q", f, Parts()[i], got, want)
				}
				var text bytes.Buffer
				if _, err := found[at].WriteTo(&text); err != nil {
					t.Fatal(err)
				}
				for line := range strings.Lines(text.String()) {
					if line[0] != ' ' && strings.Contains(line, foreign.Addr.String()) {
						t.Fatalf("somebody else's server would be changed:\n%s", text.String())
					}
				}
			}
		}
		if len(found) == 0 && !sameState(before.State(), after.State()) {
			t.Fatal("the States differ, and no difference is found")
		}
	})
}

func sameState(a, b State) bool {
	for _, f := range bothFamilies() {
		if !slices.Equal(linesOf(WriteIPVS, a, f), linesOf(WriteIPVS, b, f)) || !slices.Equal(linesOf(WriteIPSet, a, f), linesOf(WriteIPSet, b, f)) ||
			!slices.Equal(linesOf(WriteAddresses, a, f), linesOf(WriteAddresses, b, f)) {
			return false
		}
	}
	return true
}

// A destination that drains is no difference; one that is missing is, and its Service is named.
func TestShadowNamesServices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := BackendConfig{Config: Config{Families: bothFamilies()}}
		c := new(Compiler).Compile(rulestest.Ruleset(t), config.Config)
		want := c.State()
		if len(want.Destinations) == 0 {
			return
		}
		fresh := holding(want)
		lost := slices.SortedFunc(func(yield func(DestinationKey) bool) {
			for d := range want.Destinations {
				if !yield(d) {
					return
				}
			}
		}, compareDestinations)[0]
		drains := DestinationKey{Server: lost.Server, Addr: netip.MustParseAddrPort("10.9.9.9:9")}
		if lost.Server.Addr.Addr().Is6() {
			drains.Addr = netip.MustParseAddrPort("[fd09::9]:9")
		}
		fresh.Destinations[drains] = Destination{}
		if found := compareParts(fresh, c, config); len(found) > 0 {
			t.Fatalf("what drains differs: %+v", found)
		}
		delete(fresh.Destinations, lost)
		found := compareParts(fresh, c, config)
		if len(found) != 1 || found[0].Part != "ipvs" || len(found[0].Services()) == 0 {
			t.Fatalf("a destination is missing: %+v", found)
		}
	})
}
