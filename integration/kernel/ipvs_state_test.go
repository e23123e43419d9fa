package kernel

import (
	"context"
	"strings"
)

// ipvsText is what people look at on a node where Services do not work as they should: servers,
// connections, addresses and sets.
func (w *world) ipvsText(node string) string {
	var b strings.Builder
	for _, command := range [][]string{
		{"ipvsadm", "-Ln"},
		{"ipvsadm", "-Lnc"},
		{"ip", "addr", "show", "dev", ipvsLink},
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

// ipvsLink is the link that holds the addresses of virtual servers.
const ipvsLink = "kube-ipvs0"
