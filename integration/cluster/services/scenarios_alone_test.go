package services

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"
)

func afterProxyRestart(w *world) {
	w.join(bjA, bjB)
	first := w.service()
	w.reaches("tcp", w.client(gz), vips(first, 80), bjA, bjB)
	w.restartProxy(w.TB)
	w.reaches("tcp", w.client(gz), vips(first, 80), bjA, bjB)
	w.join(gzA)
	second := w.service()
	w.reaches("tcp", w.client(gz), append(vips(first, 80), vips(second, 80)...), bjA, bjB, gzA)
	w.deleteService(first)
	w.down("tcp", w.client(gz), vips(first, 80))
}

func afterAPIServerRestart(w *world) {
	w.join(bjA, bjB)
	first := w.service()
	w.reaches("tcp", w.client(gz), vips(first, 80), bjA, bjB)
	w.StopAPIServer()
	w.reaches("tcp", w.client(gz), vips(first, 80), bjA, bjB)
	w.StartAPIServer(w.TB)
	w.reaches("tcp", w.client(gz), vips(first, 80), bjA, bjB)
	w.join(gzA)
	second := w.service()
	w.reaches("tcp", w.client(gz), append(vips(first, 80), vips(second, 80)...), bjA, bjB, gzA)
}

// rulesDeleted: another process deletes every chain of the proxy and of the kubelet on a machine.
func rulesDeleted(w *world) {
	w.join(shared()...)
	s := w.service(nodePort)
	to := append(vips(s, 80), w.nodePorts(s, "http", bj)...)
	w.reaches("tcp", w.client(bj), to, shared()...)
	for _, tool := range []string{"iptables", "ip6tables"} {
		wait.Until(w.TB, "deleting the chains of "+tool, func() error {
			save, err := w.Machine(bj).Run(w.Context(), nil, tool+"-save")
			if err != nil {
				return err
			}
			script := deletion(string(save))
			if !strings.Contains(script, "-X KUBE-SERVICES\n") {
				return fmt.Errorf("%s-save shows no chain KUBE-SERVICES", tool)
			}
			_, err = w.Machine(bj).Run(w.Context(), []byte(script), tool+"-restore", "--noflush", "-w", "5")
			return err
		})
	}
	w.reaches("tcp", w.client(bj), to, shared()...)
	w.reaches("tcp", w.host(bj), to, shared()...)
}

// deletion is a script for iptables-restore that deletes all chains that begin with KUBE-, and the jumps
// to them.
func deletion(save string) string {
	var script, flush, remove strings.Builder
	for line := range strings.Lines(save) {
		switch chain, _, _ := strings.Cut(strings.TrimPrefix(line, ":"), " "); {
		case strings.HasPrefix(line, "*"):
			flush.Reset()
			remove.Reset()
			script.WriteString(line)
		case strings.HasPrefix(line, ":KUBE-"):
			fmt.Fprintf(&flush, "-F %s\n", chain)
			fmt.Fprintf(&remove, "-X %s\n", chain)
		case strings.HasPrefix(line, "-A ") && !strings.HasPrefix(line, "-A KUBE-") && strings.Contains(line, "-j KUBE-"):
			script.WriteString("-D" + strings.TrimPrefix(line, "-A"))
		case strings.HasPrefix(line, "COMMIT"):
			script.WriteString(flush.String() + remove.String() + line)
		}
	}
	return script.String()
}

// What deletes rules must leave others' rules alone, and delete a chain only when nothing leads to
// it.
func TestDeletion(t *testing.T) {
	const save = `# a save
*nat
:PREROUTING ACCEPT [1:2]
:KUBE-SERVICES - [0:0]
:KUBE-SVC-A - [0:0]
:MINE - [0:0]
-A PREROUTING -m comment --comment "service portals" -j KUBE-SERVICES
-A PREROUTING -j MINE
-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A
COMMIT
*mangle
:KUBE-IPTABLES-HINT - [0:0]
COMMIT
`
	const want = `*nat
-D PREROUTING -m comment --comment "service portals" -j KUBE-SERVICES
-F KUBE-SERVICES
-F KUBE-SVC-A
-X KUBE-SERVICES
-X KUBE-SVC-A
COMMIT
*mangle
-F KUBE-IPTABLES-HINT
-X KUBE-IPTABLES-HINT
COMMIT
`
	if got := deletion(save); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
}
