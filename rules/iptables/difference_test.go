package iptables

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// compared are the differences of a text of iptables-save to a Ruleset.
func compared(t fataler, text string, rs rules.Ruleset, f netfilter.Family) []Difference {
	o := render.Options{Family: f, MasqueradeBit: 14, RandomFully: true, DropInvalid: true}
	c, err := newRecordedState(context.Background(), render.Desired{Rules: rs, Options: o.For(rs)})
	if err != nil {
		t.Fatalf("%v", err)
	}
	for line, err := range netfilter.Scan(strings.NewReader(text), f) {
		if err != nil {
			t.Fatalf("%v", err)
		}
		c.read(line)
	}
	return c.differences()
}

func unified(t fataler, all []Difference) string {
	var b bytes.Buffer
	for _, d := range all {
		if _, err := d.WriteTo(&b); err != nil {
			t.Fatalf("%v", err)
		}
	}
	return b.String()
}

func renderedText(t fataler, rs rules.Ruleset, f netfilter.Family) string {
	return rendered(t, rs, render.Options{Family: f, MasqueradeBit: 14, RandomFully: true, DropInvalid: true})
}

func rendered(t fataler, rs rules.Ruleset, o render.Options) string {
	var b bytes.Buffer
	if _, err := render.Ruleset(rs, o).WriteTo(&b); err != nil {
		t.Fatalf("%v", err)
	}
	return b.String()
}

// It shows the effect of closure on one Service, and two changes by another process. Other words in
// a comment are no difference. A chain of ours that another program uses is only emptied.
func TestUnifiedDiff(t *testing.T) {
	want := takenOver("10.180.0.3:80")
	kernel := strings.NewReplacer(
		"-A KUBE-FORWARD -m comment --comment \"kubernetes forwarding rules\" -m mark --mark 0x4000/0x4000 -j ACCEPT\n", "",
		`--comment "ns1/plain:p80 cluster IP" -d`, `--comment "another comment" -d`,
		"-A OUTPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n", "-A OUTPUT -j DOCKER\n",
		"*nat\n", "*nat\n:KUBE-SVC-USED - [0:0]\n:THEIRS - [0:0]\n-A KUBE-SVC-USED -j KUBE-MARK-MASQ\n-A THEIRS -j KUBE-SVC-USED\n",
	).Replace(renderedText(t, takenOver("10.180.0.1:80", "10.180.0.3:80"), netfilter.IPv4))
	all := compared(t, kernel, want, netfilter.IPv4)
	const expected = `--- kernel/IPv4/filter/KUBE-FORWARD
+++ desired/IPv4/filter/KUBE-FORWARD
@@ -1,3 +1,4 @@
 :KUBE-FORWARD - [0:0]
 -A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
+-A KUBE-FORWARD -m comment --comment "kubernetes forwarding rules" -m mark --mark 0x4000/0x4000 -j ACCEPT
 -A KUBE-FORWARD -m comment --comment "kubernetes forwarding conntrack rule" -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT
--- kernel/IPv4/nat/KUBE-SEP-I4PPHSV5TTTU6NZS
+++ /dev/null
@@ -1,3 +0,0 @@
-:KUBE-SEP-I4PPHSV5TTTU6NZS - [0:0]
--A KUBE-SEP-I4PPHSV5TTTU6NZS -s 10.180.0.1/32 -m comment --comment "ns1/closed:p80" -j KUBE-MARK-MASQ
--A KUBE-SEP-I4PPHSV5TTTU6NZS -p tcp -m comment --comment "ns1/closed:p80" -m tcp -j DNAT --to-destination 10.180.0.1:80
--- kernel/IPv4/nat/KUBE-SVC-6GJB6ODC7CEZFIQT
+++ desired/IPv4/nat/KUBE-SVC-6GJB6ODC7CEZFIQT
@@ -1,4 +1,3 @@
 :KUBE-SVC-6GJB6ODC7CEZFIQT - [0:0]
 -A KUBE-SVC-6GJB6ODC7CEZFIQT ! -s 10.0.0.0/8 -d 172.30.0.41/32 -p tcp -m comment --comment "ns1/closed:p80 cluster IP" -m tcp --dport 80 -j KUBE-MARK-MASQ
--A KUBE-SVC-6GJB6ODC7CEZFIQT -m comment --comment "ns1/closed:p80 -> 10.180.0.1:80" -m statistic --mode random --probability 0.50000000000 -j KUBE-SEP-I4PPHSV5TTTU6NZS
 -A KUBE-SVC-6GJB6ODC7CEZFIQT -m comment --comment "ns1/closed:p80 -> 10.180.0.3:80" -j KUBE-SEP-VSKEJXXZUVBA6XXT
--- kernel/IPv4/nat/KUBE-SVC-USED
+++ desired/IPv4/nat/KUBE-SVC-USED
@@ -1,2 +1,1 @@
 :KUBE-SVC-USED - [0:0]
--A KUBE-SVC-USED -j KUBE-MARK-MASQ
--- kernel/IPv4/nat/OUTPUT
+++ desired/IPv4/nat/OUTPUT
@@ -0,0 +1,1 @@
+-A OUTPUT -m comment --comment "kubernetes service portals" -j KUBE-SERVICES
`
	if diff := cmp.Diff(expected, unified(t, all)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := all[2].Services(); !slices.Equal(got, []string{"ns1/closed"}) {
		t.Errorf("the Services of KUBE-SVC: %v", got)
	}
}

// A Service that loses its last endpoint is rejected instead. It is the only one named.
func TestDifferenceNamesServices(t *testing.T) {
	all := compared(t, renderedText(t, takenOver("10.180.0.1:80"), netfilter.IPv4), takenOver(), netfilter.IPv4)
	var chains []string
	for _, d := range all {
		chains = append(chains, render.ChainID{Table: d.Table, Chain: d.Chain}.String())
		if got := d.Services(); !slices.Equal(got, []string{"ns1/closed"}) {
			t.Errorf("%s/%s is about %v", d.Table, d.Chain, got)
		}
	}
	want := []string{"filter/KUBE-SERVICES", "nat/KUBE-SEP-I4PPHSV5TTTU6NZS", "nat/KUBE-SERVICES", "nat/KUBE-SVC-6GJB6ODC7CEZFIQT"}
	if diff := cmp.Diff(want, chains); diff != "" {
		t.Errorf("chains (-want +got):\n%s", diff)
	}
}

// The kernel has nothing of ours, or only rules of other programs.
func TestDifferencesOfNothing(t *testing.T) {
	const theirs = "*nat\n:PREROUTING ACCEPT [0:0]\n:DOCKER - [0:0]\n-A PREROUTING -j DOCKER\n-A DOCKER -j RETURN\nCOMMIT\n"
	for _, kernel := range []string{"", theirs} {
		text := unified(t, compared(t, kernel, takenOver("10.180.0.1:80"), netfilter.IPv4))
		for line := range strings.Lines(text) {
			if line[0] == ' ' || line[0] == '-' && !strings.HasPrefix(line, "--- ") {
				t.Errorf("kernel %q: line %q is not of what is wanted alone", kernel, line)
			}
		}
		if missing := strings.Count(text, "--- /dev/null\n"); missing != 6+4+5 { // the fixed chains of filter and nat, and those of two Services
			t.Errorf("%d chains are missing:\n%s", missing, text)
		}
		if strings.Contains(text, "DOCKER") {
			t.Errorf("others' rules are shown:\n%s", text)
		}
	}
}

// Whatever changes in the text, replacing the shown chains by their desired form makes the states
// equal. Every chain that the kernel state calls different is shown.
func TestDifferencesAreWhole(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := rapid.SampledFrom([]netfilter.Family{netfilter.IPv4, netfilter.IPv6}).Draw(rt, "family")
		rs := ruleset(append(services(rapid.IntRange(0, 4).Draw(rt, "services"), 3), nodePortService(4), service(5, 0, 0)))
		if same := compared(rt, renderedText(rt, rs, f), rs, f); len(same) > 0 {
			rt.Fatalf("the same text differs:\n%s", unified(rt, same))
		}
		text := tamper(rt, renderedText(rt, rs, f))
		all := compared(rt, text, rs, f)
		for _, d := range all {
			if !strings.Contains(unified(rt, []Difference{d}), "@@") {
				rt.Fatalf("nothing to be seen of %s/%s: %q", d.Table, d.Chain, d.Kernel)
			}
			text = replaceChain(text, d)
		}
		if left := compared(rt, text, rs, f); len(left) > 0 {
			rt.Fatalf("with all that is desired put in place these are left:\n%s\nof\n%s", unified(rt, left), unified(rt, all))
		}
	})
}

// tamper deletes, doubles, moves and adds lines of rules.
func tamper(t *rapid.T, text string) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for range rapid.IntRange(0, 5).Draw(t, "deeds") {
		at := rapid.IntRange(0, len(lines)-1).Draw(t, "line")
		if !strings.HasPrefix(lines[at], "-A ") {
			continue
		}
		chain := strings.Fields(lines[at])[1]
		switch rapid.IntRange(0, 4).Draw(t, "deed") {
		case 0:
			lines = slices.Delete(lines, at, at+1)
		case 1:
			lines = slices.Insert(lines, at, lines[at])
		case 2:
			if next := lines[at+1]; strings.HasPrefix(next, "-A "+chain+" ") {
				lines[at], lines[at+1] = next, lines[at]
			}
		case 3:
			lines = slices.Insert(lines, at, "-A "+chain+" -m length --length 100 -j RETURN")
		default:
			lines = slices.Insert(lines, at, "-A "+chain+` -s 192.0.2.1/32 -m comment --comment "a/b" -j DROP`)
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// replaceChain replaces the observed chain by the desired one.
func replaceChain(text string, d Difference) string {
	var out []string
	table := ""
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, "*") {
			table = line[1:]
		}
		if table == d.Table.String() && line == "COMMIT" {
			out = append(out, d.Desired...)
		}
		if at := slices.Index(d.Kernel, line); at >= 0 && table == d.Table.String() {
			d.Kernel = slices.Delete(slices.Clone(d.Kernel), at, at+1)
			continue
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n") + "\n"
}

// TestMisplacedJumpIsShown: a jump to a stale chain is removed from any built-in chain, also from
// one in which no jump of ours is desired, so the diff shows it.
func TestMisplacedJumpIsShown(t *testing.T) {
	const jump = "-A INPUT -j KUBE-NODE-PORT"
	kernel := "*nat\n:INPUT ACCEPT [0:0]\n:KUBE-NODE-PORT - [0:0]\n" + jump + "\nCOMMIT\n"
	for _, d := range compared(t, kernel, ruleset(services(1, 1)), netfilter.IPv4) {
		if d.Table == netfilter.NAT && d.Chain == "INPUT" {
			if diff := cmp.Diff([]string{jump}, d.Kernel); diff != "" || len(d.Desired) > 0 {
				t.Errorf("(-want +got):\n%s\ndesired: %q", diff, d.Desired)
			}
			return
		}
	}
	t.Error("no difference of nat/INPUT")
}
