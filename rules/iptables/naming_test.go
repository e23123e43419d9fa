package iptables

import (
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
)

// Two backends with different names coexist: whatever one writes, verifies or cleans up, the rules
// of the other and of all other programs stay byte for byte.
func TestSideBySide(t *testing.T) {
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		tool := toolName(v, f, "") + " -w 5"
		run(t, strings.NewReplacer("$T", tool, "$N", tool+" -t nat", "$M", tool+" -t mangle").Replace(others))
		nobodys := withoutOurs(everything(t, v, f))
		theirs, _ := newBackend(t, v, f)
		all := append(services(4, 2), nodePortService(4))
		theirRules, ourRules := ruleset(all[:3]), ruleset(all[2:])
		theirRules.NodePorts.Localhost, ourRules.NodePorts.Localhost = false, false // KUBE-FIREWALL belongs to the kubelet alone
		mustSync(t, theirs, theirRules, false)
		before := linesOf(everything(t, v, f), netfilter.KubeNames)

		ours, sent := newBackend(t, v, f)
		ours.config.Names = netfilter.GridNames
		mustSync(t, ours, ourRules, false)
		expect := func(what string) {
			t.Helper()
			text := everything(t, v, f)
			if diff := cmp.Diff(before, linesOf(text, netfilter.KubeNames)); diff != "" {
				t.Errorf("%s changed the other's rules (-before +after):\n%s", what, diff)
			}
			if diff := cmp.Diff(nobodys, withoutOurs(text)); diff != "" {
				t.Errorf("%s changed rules of others (-before +after):\n%s", what, diff)
			}
		}
		expect("the first sync")
		for range 2 {
			for _, b := range []*Backend{ours, theirs} {
				rs := ourRules
				if b == theirs {
					rs = theirRules
				}
				if c := mustSync(t, b, rs, true); c.Repaired > 0 || c.Chains > 0 || c.Rules > 0 {
					t.Errorf("%s: %+v, though no other process touched its rules", b.config.Names.Prefix(), c)
				}
			}
		}
		wantTrial(t, true, theirs, v, f, theirRules)
		wantTrial(t, false, ours, v, f, ourRules)
		run(t, strings.ReplaceAll("$N -F GRID-SERVICES; $N -F GRID-MARK-MASQ; "+
			"$N -D PREROUTING -m comment --comment \"kubernetes service portals\" -j GRID-SERVICES", "$N", tool+" -t nat"))
		if c := mustSync(t, ours, ourRules, true); c.Repaired != 3 {
			t.Errorf("three chains were tampered with: %+v", c)
		}
		wantEqual(t, t, ours, ourRules)
		expect("a repair")
		sent.take()
		cleanup(t, ours)
		expect("cleaning up")
		if left := linesOf(everything(t, v, f), netfilter.GridNames); len(left) > 0 {
			t.Errorf("cleaning up has left:\n%s", strings.Join(left, "\n"))
		}
		mustSync(t, theirs, theirRules, true)
		wantTrial(t, false, theirs, v, f, theirRules)
		mustSync(t, ours, ourRules, false)
		cleanup(t, theirs) // under every Naming
		if diff := cmp.Diff(nobodys, linesIn(everything(t, v, f))); diff != "" {
			t.Errorf("cleaning up everything left or took (-before +after):\n%s", diff)
		}
	})
}

// wantTrial checks what a Backend, and a Shadow in its place, report about a trial's chains.
func wantTrial(t *testing.T, want bool, b *Backend, v netfilter.Variant, f netfilter.Family, rs rules.Ruleset) {
	t.Helper()
	s, err := NewShadow(t.Context(), Config{Variant: v, Families: []netfilter.Family{f}, MasqueradeBit: 14, Names: b.config.Names, Log: b.config.Log})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sync(t.Context(), rs, true); err != nil {
		t.Fatal(err)
	}
	if b.Trial() != want || s.Trial() != want {
		t.Errorf("for %s there are a trial's chains: %v for a Backend, %v for a Shadow; want %v", b.config.Names.Prefix(), b.Trial(), s.Trial(), want)
	}
}

func linesIn(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
}

// linesOf are the lines of a save that are about chains of a Naming.
func linesOf(text string, n netfilter.Naming) []string {
	return slices.DeleteFunc(linesIn(text), func(line string) bool { return !concerns(line, n) })
}

// withoutOurs are the lines about no chain of any Naming.
func withoutOurs(text string) []string {
	return slices.DeleteFunc(linesIn(text), func(line string) bool {
		return slices.ContainsFunc(netfilter.Namings(), func(n netfilter.Naming) bool { return concerns(line, n) })
	})
}

func concerns(line string, n netfilter.Naming) bool {
	return slices.ContainsFunc(strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ':' }), func(word string) bool {
		return n.IsOurs(netfilter.NAT, word) || n.IsOurs(netfilter.Filter, word)
	})
}
