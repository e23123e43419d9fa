package netns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
)

// World is a lab for one test, the manifests that describe it, and the daemons on its nodes.
type World struct {
	*Lab
	*Manifests
	Variant string // of iptables
	Program string // gridproxy
	Daemons map[string]*Gridproxy

	t *testing.T
}

// NewWorld builds a lab without any Service and without any daemon.
func NewWorld(t *testing.T, variant string, layout Layout) *World {
	t.Helper()
	w := &World{
		Lab: ForTest(t, layout), Manifests: NewManifests(t.TempDir(), layout), Variant: variant,
		Program: program.ForTest(t, program.Gridproxy), Daemons: map[string]*Gridproxy{}, t: t,
	}
	t.Cleanup(func() {
		if t.Failed() {
			w.dump()
		}
	})
	return w
}

// dump logs what explains a failure.
func (w *World) dump() {
	for name, d := range w.Daemons {
		w.t.Logf("log of gridproxy on %s:\n%s", name, Tail(d.Log().String()))
		for _, command := range [][]string{
			{w.Tool(IPv4, "-save"), "-c"}, {w.Tool(IPv6, "-save"), "-c"},
			{"ipvsadm", "-Ln"}, {"ipvsadm", "-Lnc"}, {"ip", "-o", "addr", "show"}, {"ipset", "save"},
		} {
			out, err := w.Lab.Node(name).Run(context.Background(), nil, command[0], command[1:]...)
			w.t.Logf("%s, %s: %v\n%s", name, command, err, Tail(string(out)))
		}
	}
}

// Tail returns the end of a text, as much as a slow console can carry.
func Tail(text string) string {
	const most = 12_000
	return text[max(0, len(text)-most):]
}

// Must ends the test on an error.
func (w *World) Must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// Run starts a program that runs gridproxy on nodes, and waits until each has written its rules. Of
// a flag that is given twice the last one counts.
func (w *World) Run(program string, nodes []string, flags ...string) {
	w.t.Helper()
	w.Must(w.Write())
	flags = slices.Concat([]string{"-v", "4", NoStatusSocket}, flags)
	for _, name := range nodes {
		d, err := w.Lab.Node(name).RunGridproxy(program, w.Dir, flags...)
		w.Must(err)
		w.Daemons[name] = d
	}
	for _, name := range nodes {
		w.Must(w.Daemons[name].Ready(wait.Usual.Context(w.t)))
	}
}

// Stop ends the daemon of a node: with SIGKILL, or with SIGTERM.
func (w *World) Stop(node string, kill bool) {
	w.t.Helper()
	if kill {
		w.Daemons[node].Kill()
		return
	}
	w.Must(w.Daemons[node].Stop(wait.Usual.Context(w.t)))
}

// Tool returns the name of an iptables program: ip6tables-nft-save for IPv6 and "-save".
func (w *World) Tool(f Family, suffix string) string {
	if f == IPv6 {
		return "ip6tables-" + w.Variant + suffix
	}
	return "iptables-" + w.Variant + suffix
}

// Command runs a program on a node and returns what it prints.
func (w *World) Command(node, input string, args ...string) string {
	w.t.Helper()
	var out []byte
	w.Must(wait.Usual.Do(w.t.Context(), func(ctx context.Context) (err error) {
		out, err = w.Lab.Node(node).Run(ctx, strings.NewReader(input), args[0], args[1:]...)
		return err
	}))
	return string(out)
}

// Rules returns what iptables-save prints on a node, without comments and counters.
func (w *World) Rules(node string, f Family) (lines []string) {
	w.t.Helper()
	for line := range strings.Lines(w.Command(node, "", w.Tool(f, "-save"))) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		if strings.HasPrefix(line, ":") {
			line, _, _ = strings.Cut(line, " [") // built-in chains count packets
		}
		lines = append(lines, line)
	}
	return lines
}

// IPVSLink is the link that holds the addresses of virtual servers.
const IPVSLink = "kube-ipvs0"

// IPVSState returns what a node holds besides iptables rules, sorted: servers with their real
// servers, sets with their entries, and the link with its addresses.
func (w *World) IPVSState(node string) []string {
	w.t.Helper()
	lines := slices.Collect(strings.Lines(w.Command(node, "", "ipvsadm-save", "-n")))
	for line := range strings.Lines(w.Command(node, "", "ipset", "save")) {
		// Who makes a set chooses the size of its table, and its seed is random.
		line, _, _ = strings.Cut(line, " hashsize ")
		lines = append(lines, line)
	}
	for line := range strings.Lines(w.Command(node, "", "ip", "-o", "addr", "show")) {
		if fields := strings.Fields(line); fields[1] == IPVSLink {
			lines = append(lines, strings.Join(fields[1:4], " "))
		}
	}
	if strings.Contains(w.Command(node, "", "ip", "-o", "link", "show"), IPVSLink) {
		lines = append(lines, "link "+IPVSLink)
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// CompareLines returns an error unless both have the same lines, in any order: the order of rules
// inside a chain of ours that Services share decides nothing.
func CompareLines(got, want []string) error {
	got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
	var errs []error
	for _, line := range want {
		if !slices.Contains(got, line) {
			errs = append(errs, fmt.Errorf("missing: %s", line))
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			errs = append(errs, fmt.Errorf("too much: %s", line))
		}
	}
	if len(errs) == 0 && !slices.Equal(got, want) {
		errs = append(errs, errors.New("a line is there twice"))
	}
	return errors.Join(errs...)
}
