package iptables

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gridproxy/rules/netfilter"
)

// TestSurplusJumpsAreRemoved: of several copies of a jump the first stays, and so does every rule
// of other programs in its place. A diff shows the other copies.
func TestSurplusJumpsAreRemoved(t *testing.T) {
	rs := ruleset(services(2, 2))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		mustSync(t, b, rs, true)
		tool := toolName(v, f, "") + " -w 5"
		run(t, tool+" -t nat -I OUTPUT -p tcp --dport 7 -j ACCEPT; "+tool+" -A FORWARD -p udp -j DROP")
		before := everything(t, v, f)
		for _, table := range []string{"filter", "nat"} {
			dump := run(t, toolName(v, f, "-save")+" -t "+table)
			var again strings.Builder
			for line := range strings.Lines(dump) {
				if rule, is := strings.CutPrefix(line, "-A "); is && !strings.HasPrefix(rule, "KUBE-") && strings.Contains(rule, "KUBE-") {
					again.WriteString("-A " + rule + "-A " + rule)
				}
			}
			if strings.Count(again.String(), "\n") < 6 {
				t.Fatalf("too few jumps in\n%s", dump)
			}
			run(t, "printf '%s' '*"+table+"\n"+again.String()+"COMMIT\n' | "+toolName(v, f, "-restore")+" -w 5 --noflush")
		}
		if diff := unified(t, shadowed(t, v, f, rs)); !strings.Contains(diff, "\n--A FORWARD") && !strings.Contains(diff, "\n--A OUTPUT") {
			t.Errorf("a diff does not show the copies:\n%s", diff)
		}
		if c := mustSync(t, b, rs, true); c.Repaired == 0 {
			t.Errorf("%+v, want the repair counted", c)
		}
		if diff := cmp.Diff(before, everything(t, v, f)); diff != "" {
			t.Errorf("(-before the copies +after their removal):\n%s", diff)
		}
		if c := mustSync(t, b, rs, true); c.Repaired > 0 {
			t.Errorf("the next verify finds something again: %+v", c)
		}
	})
}

// TestManySurplusJumps: more copies than one verify removes are removed by several syncs, although
// no other process writes.
func TestManySurplusJumps(t *testing.T) {
	private(t)
	rs := ruleset(services(1, 1))
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	mustSync(t, b, rs, true)
	want := jumpCount(t, netfilter.IPv4, "nat")
	jump := strings.TrimSpace(run(t, "iptables-nft -t nat -S PREROUTING | grep KUBE-SERVICES"))
	run(t, "(echo '*nat'; yes '"+jump+"' | head -n "+fmt.Sprint(2*copiesMax+copiesMax/2)+"; echo COMMIT) | iptables-nft-restore --noflush")
	for range 3 {
		mustSync(t, b, rs, true)
	}
	if n := jumpCount(t, netfilter.IPv4, "nat"); n != want {
		t.Errorf("%d jumps are left, want %d", n, want)
	}
}

// TestSurplusKeepsTheFirst: wherever copies are, the chain keeps everything except all but the
// first of each jump.
func TestSurplusKeepsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ours := []netfilter.Rule{leadingTo("A"), leadingTo("B"), leadingTo("C")}
		var chain []string
		var h jumpSet
		for _, r := range ours {
			h.want(r)
		}
		for i := range rapid.IntRange(0, 12).Draw(t, "rules") {
			r, name := netfilter.Rule{Target: netfilter.TargetAccept, Proto: netfilter.TCP, DstPort: uint16(i + 1)}, fmt.Sprint("-A X other", i)
			if n := rapid.IntRange(0, len(ours)).Draw(t, "which"); n < len(ours) {
				r, name = ours[n], "-A X "+string(ours[n].Append(nil, netfilter.IPv4))
			}
			chain = append(chain, name)
			h.read(netfilter.Line{Kind: netfilter.LineRule, Rule: r, Text: name})
		}
		want := slices.Clone(chain)
		met := map[string]bool{}
		want = slices.DeleteFunc(want, func(r string) bool {
			again := met[r] && !strings.Contains(r, "other")
			met[r] = true
			return again
		})
		for line := range strings.Lines(string(h.removeSurplus("X", netfilter.IPv4))) {
			line = strings.TrimSuffix(line, "\n")
			if rule, is := strings.CutPrefix(line, "-D "); is {
				at := slices.Index(chain, "-A "+rule)
				if at < 0 {
					t.Fatalf("%q deletes what is not there: %q", line, chain)
				}
				chain = slices.Delete(chain, at, at+1)
				continue
			}
			var at int
			if _, err := fmt.Sscanf(line, "-I X %d", &at); err != nil || at < 1 || at > len(chain)+1 {
				t.Fatalf("%q: %v, in a chain of %d", line, err, len(chain))
			}
			chain = slices.Insert(chain, at-1, "-A X "+strings.SplitN(line, " ", 4)[3])
		}
		if diff := cmp.Diff(want, chain); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
		for i, r := range ours {
			if at := slices.Index(want, "-A X "+string(r.Append(nil, netfilter.IPv4))) + 1; h.jumps[i].at != at {
				t.Fatalf("jump %d is believed at %d, and is at %d", i, h.jumps[i].at, at)
			}
		}
	})
}

// TestUnknownFormOfAJump: a jump that the tool prints in a form that we cannot parse, as another
// version may, is not inserted again and again.
func TestUnknownFormOfAJump(t *testing.T) {
	private(t)
	save, err := findTool("iptables-nft-save")
	if err != nil {
		t.Fatal(err)
	}
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	var log strings.Builder
	b.syncers[0].log = slog.New(slog.NewTextHandler(&log, nil))
	b.syncers[0].kernel.save.path = program(t, t.TempDir(), "save",
		"set -e\n"+save+` "$@" | sed 's/^-A OUTPUT .*-j KUBE-SERVICES/-A OUTPUT -m future --form 2 -j KUBE-SERVICES/'`)
	want := 0
	for i := range 5 {
		run(t, fmt.Sprint("iptables-nft -t nat -N OTHER", i)) // so that the kernel is read again
		mustSync(t, b, ruleset(services(1, 1)), true)
		if n := strings.Count(run(t, "nft list chain ip nat OUTPUT"), "jump KUBE-SERVICES"); want == 0 {
			want = n
		} else if n != want {
			t.Errorf("sync %d: %d jumps, there were %d", i, n, want)
		}
	}
	if want != 1 || !strings.Contains(log.String(), "chain=nat/OUTPUT") {
		t.Errorf("%d jumps, want 1, and a warning:\n%s", want, log.String())
	}
}
