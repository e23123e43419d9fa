package kernel

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// Rules of another program, which gridproxy may not touch.
const foreignNat = `*nat
:FOREIGN - [0:0]
-A FOREIGN -d 192.0.2.77/32 -p tcp -m tcp --dport 77 -j DNAT --to-destination 10.0.0.70:77
-A PREROUTING -j FOREIGN
COMMIT
`

const foreignFilter = `*filter
:FOREIGN - [0:0]
-A FOREIGN -s 192.0.2.66/32 -m comment --comment "KUBE-SERVICES is not mine" -j DROP
-A FORWARD -j FOREIGN
-A INPUT -j FOREIGN
COMMIT
`

func (w *world) addForeign(node string) {
	w.t.Helper()
	for _, f := range netns.Families() {
		for _, text := range []string{foreignNat, foreignFilter} {
			if f == netns.IPv6 {
				text = strings.NewReplacer("192.0.2.77/32", "2001:db8:f::77/128", "192.0.2.66/32", "2001:db8:f::66/128",
					"10.0.0.70:77", "[fd00:10:1::70]:77").Replace(text)
			}
			w.restore(node, f, text)
		}
	}
}

// first is the first rule of a save that has all of some words in it.
func first(t *testing.T, save []string, words ...string) string {
	t.Helper()
	for _, line := range save {
		if strings.HasPrefix(line, "-A ") && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(line, word) }) {
			return line
		}
	}
	t.Fatalf("no rule has all of %q", words)
	return ""
}

// chain is the chain that a rule is in.
func chain(rule string) string { return strings.Fields(rule)[1] }

// nat is a restore of one line, which may hold what a command line would have to quote.
func nat(line string) string { return "*nat\n" + line + "\nCOMMIT\n" }

func filter(line string) string { return "*filter\n" + line + "\nCOMMIT\n" }

// Every kind of damage to our rules is found and repaired, and others' rules are left as
// they are. Damage to nat and filter at once, and to both families, included.
func TestTampering(t *testing.T) {
	eachOf(t, func(t *testing.T, b backend) {
		for _, c := range damages {
			t.Run(c.name, func(t *testing.T) { tamper(t, b, c.damage) })
		}
	}, nft, legacy)
}

// elsewhere is an endpoint of another unit.
func elsewhere(f netns.Family) string {
	if f == netns.IPv4 {
		return "10.0.0.139:8080"
	}
	return "[fd00:10:5::139]:8080"
}

// damages are restore texts, made from what iptables-save prints in iptables mode.
var damages = []struct {
	name   string
	damage func(t *testing.T, f netns.Family, save []string) []string
}{
	{"nat flushed", func(*testing.T, netns.Family, []string) []string { return []string{"*nat\n-F\nCOMMIT\n"} }},
	{"filter flushed", func(*testing.T, netns.Family, []string) []string { return []string{"*filter\n-F\nCOMMIT\n"} }},
	{"all flushed, chains deleted", func(*testing.T, netns.Family, []string) []string {
		return []string{"*nat\n-F\nCOMMIT\n", "*nat\n-X\nCOMMIT\n", "*filter\n-F\nCOMMIT\n", "*filter\n-X\nCOMMIT\n"}
	}},
	{"one rule deleted", func(t *testing.T, _ netns.Family, save []string) []string {
		return []string{nat(strings.Replace(first(t, save, "-A KUBE-SEP-", "DNAT"), "-A", "-D", 1))}
	}},
	{"one entry deleted", func(t *testing.T, _ netns.Family, save []string) []string {
		return []string{nat(strings.Replace(first(t, save, "-A KUBE-SERVICES", "tamper:tcp cluster IP"), "-A", "-D", 1))}
	}},
	{"one rule led out of the unit", func(t *testing.T, f netns.Family, save []string) []string {
		rule := first(t, save, "-A KUBE-SEP-", "DNAT", "tamper:tcp")
		_, old, _ := strings.Cut(rule, "--to-destination ")
		return []string{nat(strings.Replace(rule, "-A", "-D", 1)), nat(strings.Replace(rule, old, elsewhere(f), 1))}
	}},
	{"one probability altered", func(t *testing.T, _ netns.Family, save []string) []string {
		rule := first(t, save, "-A KUBE-SVC-", "--probability 0.5")
		return []string{
			nat(strings.Replace(rule, "-A", "-D", 1)),
			nat(strings.Replace(strings.Replace(rule, "0.50000000000", "0.90000000000", 1), "-A "+chain(rule), "-I "+chain(rule)+" 1", 1)),
		}
	}},
	{"a rule put into our chain", func(t *testing.T, _ netns.Family, save []string) []string {
		c := chain(first(t, save, "-A KUBE-SVC-", "tamper:tcp"))
		return []string{nat("-I " + c + " 1 -m comment --comment \"somebody was here\" -j RETURN")}
	}},
	{"a rule we cannot read put into our chain", func(t *testing.T, _ netns.Family, save []string) []string {
		c := chain(first(t, save, "-A KUBE-SVC-", "tamper:tcp"))
		return []string{nat("-I " + c + " 1 -p tcp -m multiport --dports 1,80 -j RETURN")}
	}},
	{"jump from PREROUTING lost", func(t *testing.T, _ netns.Family, save []string) []string {
		return []string{nat(strings.Replace(first(t, save, "-A PREROUTING", "KUBE-SERVICES"), "-A", "-D", 1))}
	}},
	{"jump from FORWARD lost", func(t *testing.T, _ netns.Family, save []string) []string {
		return []string{filter(strings.Replace(first(t, save, "-A FORWARD", "KUBE-FORWARD"), "-A", "-D", 1))}
	}},
	{"jump from POSTROUTING lost", func(t *testing.T, _ netns.Family, save []string) []string {
		return []string{nat(strings.Replace(first(t, save, "-A POSTROUTING", "KUBE-POSTROUTING"), "-A", "-D", 1))}
	}},
	{"chain deleted", func(t *testing.T, _ netns.Family, save []string) []string {
		rule := first(t, save, "-A KUBE-SERVICES", "tamper:tcp cluster IP")
		c := rule[strings.LastIndex(rule, " ")+1:]
		var texts []string
		for _, line := range save {
			if strings.HasPrefix(line, "-A ") && strings.HasSuffix(line, " -j "+c) {
				texts = append(texts, nat(strings.Replace(line, "-A", "-D", 1)))
			}
		}
		return append(texts, "*nat\n-F "+c+"\nCOMMIT\n", "*nat\n-X "+c+"\nCOMMIT\n")
	}},
	{"a chain of ours that nobody wants", func(*testing.T, netns.Family, []string) []string {
		return []string{nat(":KUBE-SVC-AAAAAAAAAAAAAAAA - [0:0]\n-A KUBE-SVC-AAAAAAAAAAAAAAAA -j RETURN")}
	}},
	{"reject deleted", func(t *testing.T, _ netns.Family, save []string) []string {
		return []string{filter(strings.Replace(first(t, save, "-A KUBE-SERVICES", "elsewhere:tcp has no endpoints"), "-A", "-D", 1))}
	}},
	{"NodePort jump no longer last", func(t *testing.T, f netns.Family, save []string) []string {
		rule := first(t, save, "-A KUBE-SERVICES", "must be the last rule")
		return []string{nat(strings.Replace(rule, "-A", "-D", 1)), nat(strings.Replace(rule, "-A KUBE-SERVICES", "-I KUBE-SERVICES 1", 1))}
	}},
}

func tamper(t *testing.T, b backend, damage func(*testing.T, netns.Family, []string) []string) {
	w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
	s := newExposed("tamper", 100)
	w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
	w.Serve(netns.NewClosedService("elsewhere", 101), w.endpoints("gz-2")...)
	w.run([]string{"bj-1"}, append(detect(), "--verify-period", "1s")...)
	good := map[netns.Family][]string{}
	w.paused("bj-1", func() {
		for _, f := range netns.Families() {
			good[f] = w.Rules("bj-1", f)
			for _, text := range damage(t, f, good[f]) {
				w.restore("bj-1", f, text)
			}
		}
	})
	// Rules of another program come after the damage, so that a flush does not take them.
	w.addForeign("bj-1")
	for _, f := range netns.Families() {
		wait.Until(t, fmt.Sprintf("the rules are repaired, %s", f), func() error { return w.checkRepaired("bj-1", f, good[f]) })
		w.reaches(w.Client("bj-1").Namespace, "tcp", netns.VIP(f, 100), w.endpoints("bj-1", "bj-3")...)
		w.refused(w.Client("bj-1").Namespace, "udp", netns.VIP(f, 101))
	}
}

// checkRepaired compares a node's kernel with what it was before, besides the foreign rules,
// which must be there unharmed.
func (w *world) checkRepaired(node string, f netns.Family, good []string) error {
	var ours []string
	foreign := 0
	save := w.Rules(node, f)
	for _, line := range save {
		if strings.Contains(line, "FOREIGN") {
			foreign++
		} else {
			ours = append(ours, line)
		}
	}
	if foreign != 7 {
		return fmt.Errorf("%s: %d of 7 lines of somebody else's are left", f, foreign)
	}
	if err := netns.CompareLines(ours, good); err != nil {
		return fmt.Errorf("%s: %w", f, err)
	}
	return lastInServices(ours)
}

// lastInServices checks the one thing in a shared chain whose place matters.
func lastInServices(save []string) error {
	for i, line := range save {
		if strings.Contains(line, "must be the last rule") && strings.HasPrefix(save[i+1], "-A KUBE-SERVICES") {
			return fmt.Errorf("the jump to NodePorts is not the last rule: %s follows", save[i+1])
		}
	}
	return nil
}
