package kernel

import (
	"bytes"
	"context"
	"slices"
	"strings"
)

// ipvsLink is the link that holds the addresses of virtual servers.
const ipvsLink = "kube-ipvs0"

// A server and a set of somebody else's, in the words of ipvsadm -R and ipset restore.
const (
	foreignServer = "-A -t 192.0.2.99:99 -s wlc\n-a -t 192.0.2.99:99 -r 10.0.0.70:99 -m -w 7\n"
	foreignSet    = "create FOREIGN hash:ip family inet\nadd FOREIGN 192.0.2.55\n"
)

// command runs a program on a node and returns what it prints.
func (w *world) command(node, input string, args ...string) string {
	w.t.Helper()
	out, err := w.Lab.Node(node).Run(w.t.Context(), bytes.NewBufferString(input), args[0], args[1:]...)
	w.must(err)
	return string(out)
}

// ipvsState is what a node holds besides iptables rules, sorted: servers with their real servers, sets
// with their entries, and the link with its addresses.
func (w *world) ipvsState(node string) []string {
	w.t.Helper()
	lines := strings.Split(w.command(node, "", "ipvsadm-save", "-n"), "\n")
	for line := range strings.Lines(w.command(node, "", "ipset", "save")) {
		// How large the table of a set is says nothing, and its seed is random.
		line, _, _ = strings.Cut(line, " hashsize ")
		lines = append(lines, line)
	}
	for line := range strings.Lines(w.command(node, "", "ip", "-o", "addr", "show")) {
		if fields := strings.Fields(line); fields[1] == ipvsLink {
			lines = append(lines, strings.Join(fields[1:4], " "))
		}
	}
	if strings.Contains(w.command(node, "", "ip", "-o", "link", "show"), ipvsLink) {
		lines = append(lines, "link "+ipvsLink)
	}
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// ipvsText is what people look at on a node where Services do not work as they should.
func (w *world) ipvsText(node string) string {
	var b strings.Builder
	for _, command := range [][]string{
		{"ipvsadm", "-Ln"},
		{"ipvsadm", "-Lnc"},
		{"ip", "addr", "show"},
		{"ipset", "list"},
	} {
		b.WriteString("$ " + strings.Join(command, " ") + "\n")
		out, err := w.Lab.Node(node).Run(context.Background(), nil, command[0], command[1:]...)
		b.Write(out)
		if err != nil {
			b.WriteString(err.Error() + "\n")
		}
	}
	return b.String()
}
