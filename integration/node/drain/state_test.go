package drain

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/integration/env/wait"
)

// command runs a program on the node.
func (w *world) command(name string, args ...string) (string, error) {
	out, err := w.node.Run(w.t.Context(), nil, name, args...)
	return string(out), err
}

// weights are the weights of the real servers behind an address over TCP, by real server.
func (w *world) weights(server netip.AddrPort) (map[netip.AddrPort]string, error) {
	text, err := w.command("ipvsadm", "-Sn")
	if err != nil {
		return nil, err
	}
	found := map[netip.AddrPort]string{}
	for line := range strings.Lines(text) {
		// -a -t 172.16.33.10:80 -r 10.0.0.70:8080 -m -w 1
		words := strings.Fields(line)
		if len(words) < 8 || words[0] != "-a" || words[1] != "-t" || words[2] != server.String() {
			continue
		}
		real, err := netip.ParseAddrPort(words[4])
		if err != nil {
			return nil, fmt.Errorf("reading %q of ipvsadm: %w", line, err)
		}
		found[real] = words[7]
	}
	return found, nil
}

// weighs waits until the real server at an address has a weight; "" = it is gone.
func (w *world) weighs(server, real netip.AddrPort, want string) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("%s of server %s has weight %q", real, server, want), func() error {
		all, err := w.weights(server)
		return errors.Join(err, wait.Check(all[real] == want, "it has %q (all: %v)", all[real], all))
	})
}

// ipvs is all that IPVS mode keeps outside of iptables, as sorted lines: servers, the addresses of the
// link, sets with their entries.
func (w *world) ipvs() []string {
	w.t.Helper()
	servers, err := w.command("ipvsadm", "-Sn")
	w.must(err)
	sets, err := w.command("ipset", "save")
	w.must(err)
	addresses, err := w.command("ip", "-o", "addr", "show")
	w.must(err)
	var lines []string
	for line := range strings.Lines(servers) {
		lines = append(lines, strings.TrimSpace(line))
	}
	for line := range strings.Lines(sets) {
		// What a set was made with is its maker's: sizes, and a seed that is drawn.
		if words := strings.Fields(line); words[0] == "create" {
			line = strings.Join(words[:3], " ")
		}
		lines = append(lines, strings.TrimSpace(line))
	}
	for line := range strings.Lines(addresses) {
		if words := strings.Fields(line); words[1] == "kube-ipvs0" {
			lines = append(lines, "address "+words[3])
		}
	}
	links, err := w.command("ip", "-o", "link", "show")
	w.must(err)
	if strings.Contains(links, "kube-ipvs0") {
		lines = append(lines, "link kube-ipvs0")
	}
	slices.Sort(lines)
	return lines
}

// settles waits until what IPVS mode keeps is what it was once.
func (w *world) settles(want []string) {
	w.t.Helper()
	wait.Until(w.t, "IPVS is what it was once", func() error { return same(w.ipvs(), want) })
}

// clean waits until nothing of IPVS mode is left.
func (w *world) clean() {
	w.t.Helper()
	w.settles(nil)
}

// rules are the node's iptables rules of both families, sorted, without comments and counters; the
// order of rules in the chains of ours that many Services share decides nothing.
func (w *world) rules() []string {
	w.t.Helper()
	var lines []string
	for _, tool := range []string{"iptables", "ip6tables"} {
		text, err := w.command(tool + "-" + w.variant + "-save")
		w.must(err)
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(strings.TrimSpace(line), " [")
			if !strings.HasPrefix(line, "#") {
				lines = append(lines, tool+" "+line)
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// same compares two sorted lists of lines.
func same(got, want []string) error {
	if slices.Equal(got, want) {
		return nil
	}
	var diff []string
	for _, line := range want {
		if !slices.Contains(got, line) {
			diff = append(diff, "missing: "+line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			diff = append(diff, "too much: "+line)
		}
	}
	return fmt.Errorf("%d lines, want %d:\n%s", len(got), len(want), strings.Join(diff, "\n"))
}

// cleanup runs gridproxy's.
func (w *world) cleanup(mode string) {
	w.t.Helper()
	_, err := w.command(w.program, "cleanup", "--proxy-mode", mode, "--iptables-variant", w.variant)
	w.must(err)
}

// noForeignSets says whether a set of kube-proxy's is left that gridproxy has no use for.
func (w *world) noForeignSets() error {
	for _, line := range w.ipvs() {
		for _, foreign := range []string{"LOAD-BALANCER", "NODE-PORT", "HEALTH-CHECK"} {
			if strings.Contains(line, foreign) {
				return fmt.Errorf("kube-proxy's set is still there: %s", line)
			}
		}
	}
	return nil
}
