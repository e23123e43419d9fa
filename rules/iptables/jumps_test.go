package iptables

import (
	"slices"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// Whichever jumps are missing, inserting them gives kube-proxy's order if the existing ones have
// it, and moves nothing else.
func TestInsertionsGiveTheOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 5).Draw(t, "jumps")
		want := make([]netfilter.Rule, n)
		for i := range want {
			want[i] = leadingTo(string(rune('A' + i)))
		}
		var chain []netfilter.Rule
		for i := range want {
			for range rapid.IntRange(0, 2).Draw(t, "others in front") {
				chain = append(chain, netfilter.Rule{Target: netfilter.TargetAccept, DstPort: uint16(len(chain) + 1), Proto: netfilter.TCP})
			}
			if rapid.Bool().Draw(t, "there") {
				chain = append(chain, want[i])
			}
		}
		before := slices.Clone(chain)
		var h jumpSet
		for _, r := range want {
			h.want(r)
		}
		for _, r := range chain {
			h.read(netfilter.Line{Kind: netfilter.LineRule, Rule: r})
		}
		for _, in := range h.insertions() {
			if in.at < 1 || in.at > len(chain)+1 {
				t.Fatalf("position %d in a chain of %d rules", in.at, len(chain))
			}
			chain = slices.Insert(chain, in.at-1, in.rule)
		}
		ours := func(r netfilter.Rule) bool { return r.Target == netfilter.TargetJump }
		got := slices.DeleteFunc(slices.Clone(chain), func(r netfilter.Rule) bool { return !ours(r) })
		if diff := cmp.Diff(names(want), names(got)); diff != "" {
			t.Fatalf("jumps (-want +got):\n%s", diff)
		}
		isOther := func(list []netfilter.Rule) []netfilter.Rule { return slices.DeleteFunc(slices.Clone(list), ours) }
		if !slices.Equal(isOther(before), isOther(chain)) {
			t.Fatal("rules of others moved")
		}
	})
}

func names(list []netfilter.Rule) string {
	var b strings.Builder
	for _, r := range list {
		b.WriteString(r.Jump)
	}
	return b.String()
}

func leadingTo(chain string) netfilter.Rule {
	return netfilter.Rule{Target: netfilter.TargetJump, Jump: chain}
}
