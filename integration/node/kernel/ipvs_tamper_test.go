package kernel

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
)

// A server and a set that another process made, in the syntax of ipvsadm -R and ipset restore.
const (
	foreignServer = "-A -t 192.0.2.99:99 -s wlc\n-a -t 192.0.2.99:99 -r 10.0.0.70:99 -m -w 7\n"
	foreignSet    = "create FOREIGN hash:ip family inet\nadd FOREIGN 192.0.2.55\n"
)

// ipvsDamage is what another process does to a node in IPVS mode.
type ipvsDamage struct {
	name string
	// rules are texts for iptables-restore, made from what iptables-save prints.
	rules func(t *testing.T, save []string) []string
	// commands, one a line. SERVER is a virtual server, ADDRESS is its own, HERE is its real
	// server on this node, THERE would be one in another unit; KUBE- is KUBE-6- for IPv6. One without
	// any of these is run once, else once for each family.
	commands string
}

func ipvsDamages() []ipvsDamage {
	texts := func(texts ...string) func(*testing.T, []string) []string {
		return func(*testing.T, []string) []string { return texts }
	}
	return []ipvsDamage{
		{"real server deleted", nil, "ipvsadm -d -t SERVER -r HERE"},
		{"real server drained", nil, "ipvsadm -e -t SERVER -r HERE -m -w 0"},
		{"real server weighed", nil, "ipvsadm -e -t SERVER -r HERE -m -w 9"},
		{"real server of another unit", nil, "ipvsadm -a -t SERVER -r THERE -m"},
		{"virtual server deleted", nil, "ipvsadm -D -t SERVER"},
		{"another scheduler", nil, "ipvsadm -E -t SERVER -s lc"},
		{"all virtual servers deleted", nil, "ipvsadm -C"},
		{"address removed", nil, "ip addr del ADDRESS dev kube-ipvs0"},
		{"all addresses removed", nil, "ip addr flush dev kube-ipvs0"},
		{"link deleted", nil, "ip link del kube-ipvs0"},
		{"entry deleted", nil, "ipset del KUBE-CLUSTER-IP ADDRESS,tcp:80"},
		{"entry added", nil, "ipset add KUBE-CLUSTER-IP ADDRESS,tcp:81"},
		{"sets flushed", nil, "ipset flush"},
		{"nat flushed", texts("*nat\n-F\nCOMMIT\n"), ""},
		{"filter flushed", texts("*filter\n-F\nCOMMIT\n"), ""},
		{"rule deleted", func(t *testing.T, save []string) []string {
			return []string{nat(strings.Replace(first(t, save, "-A KUBE-SERVICES", "KUBE-MARK-MASQ"), "-A", "-D", 1))}
		}, ""},
		{"rules in the wrong order", func(t *testing.T, save []string) []string {
			rule := first(t, save, "-A KUBE-IPVS-FILTER", "REJECT")
			return []string{filter(strings.Replace(rule, "-A", "-D", 1)), filter(strings.Replace(rule, "-A KUBE-IPVS-FILTER", "-I KUBE-IPVS-FILTER 1", 1))}
		}, ""},
		{
			"all that is ours", texts("*nat\n-F\nCOMMIT\n", "*nat\n-X\nCOMMIT\n", "*filter\n-F\nCOMMIT\n", "*filter\n-X\nCOMMIT\n"),
			"ipvsadm -C\nipset destroy\nip link del kube-ipvs0",
		},
	}
}

// words fills in what a command is about.
func (d ipvsDamage) words(f netns.Family) []string {
	server := netns.VIP(f, 100)
	pairs := []string{"SERVER", server.String(), "ADDRESS", server.Addr().String()}
	if f == netns.IPv4 {
		pairs = append(pairs, "HERE", "10.0.0.70:8080")
	} else {
		pairs = append(pairs, "HERE", "[fd00:10:1::70]:8080", "KUBE-", "KUBE-6-")
	}
	pairs = append(pairs, "THERE", elsewhere(f))
	return strings.Split(strings.NewReplacer(pairs...).Replace(d.commands), "\n")
}

// Every kind of damage to virtual servers, addresses, sets and to the rules around them is found and
// repaired; servers and sets of another process stay as they are.
func TestIPVSTampering(t *testing.T) {
	eachOf(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := newExposed("tamper", 100)
		w.Serve(s, w.endpoints("bj-1", "bj-3", "gz-2")...)
		w.Serve(netns.NewClosedService("elsewhere", 101), w.endpoints("gz-2")...)
		w.addForeignIPVS("bj-1")
		w.run([]string{"bj-1"}, append(detect(), "--verify-period", "1s")...)
		state, rules := w.IPVSState("bj-1"), map[netns.Family][]string{}
		for _, f := range netns.Families() {
			rules[f] = w.Rules("bj-1", f)
		}
		w.changing = true
		for _, d := range ipvsDamages() {
			t.Logf("damage: %s", d.name)
			w.paused("bj-1", func() {
				w.inflict(d, rules)
				w.addForeignIPVS("bj-1")
			})
			wait.Until(t, "virtual servers and rules are repaired after "+d.name, func() error {
				errs := []error{netns.CompareLines(w.IPVSState("bj-1"), state)}
				for _, f := range netns.Families() {
					errs = append(errs, inOrder(w.Rules("bj-1", f), rules[f]))
				}
				return errors.Join(errs...)
			})
			for _, f := range netns.Families() {
				w.reaches(w.Client("bj-1").Namespace, "tcp", netns.VIP(f, 100), w.endpoints("bj-1", "bj-3")...)
				w.refused(w.Client("bj-1").Namespace, "udp", netns.VIP(f, 101))
			}
		}
	}, ipvs)
}

func (w *world) inflict(d ipvsDamage, rules map[netns.Family][]string) {
	w.t.Helper()
	for _, f := range netns.Families() {
		if d.rules != nil {
			for _, text := range d.rules(w.t, rules[f]) {
				w.restore("bj-1", f, text)
			}
		}
	}
	if d.commands == "" {
		return
	}
	v4, v6 := d.words(netns.IPv4), d.words(netns.IPv6)
	for i := range v4 {
		w.Command("bj-1", "", strings.Fields(v4[i])...)
		if v6[i] != v4[i] {
			w.Command("bj-1", "", strings.Fields(v6[i])...)
		}
	}
}

// addForeignIPVS adds the server and the set of another process, where they are not there.
func (w *world) addForeignIPVS(node string) {
	w.t.Helper()
	state := strings.Join(w.IPVSState(node), "\n")
	if !strings.Contains(state, "192.0.2.99:99") {
		w.Command(node, foreignServer, "ipvsadm", "-R")
	}
	if !strings.Contains(state, "add FOREIGN ") {
		w.Command(node, foreignSet, "ipset", "-exist", "restore")
	}
}

// inOrder compares two saves as sets of lines, and chains of fixed order as lists.
func inOrder(got, want []string) error {
	if err := netns.CompareLines(got, want); err != nil {
		return err
	}
	for _, chain := range []string{"-A KUBE-SERVICES ", "-A KUBE-IPVS-FILTER ", "-A KUBE-POSTROUTING "} {
		others := func(line string) bool { return !strings.HasPrefix(line, chain) }
		a, b := slices.DeleteFunc(slices.Clone(got), others), slices.DeleteFunc(slices.Clone(want), others)
		// filter's KUBE-SERVICES, which comes first, holds entries in any order.
		if chain == "-A KUBE-SERVICES " {
			entry := func(line string) bool { return strings.Contains(line, "has no") }
			a, b = slices.DeleteFunc(a, entry), slices.DeleteFunc(b, entry)
		}
		if !slices.Equal(a, b) {
			return fmt.Errorf("the order of %s is\n%s\nwant\n%s", chain, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	}
	return nil
}
