package kernel

import (
	"context"
	"net/netip"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// dial opens a TCP connection that stays open to the end of the test.
func (w *world) dial(from *netns.Namespace, to netip.AddrPort) *traffic.Dialogue {
	w.t.Helper()
	conn, err := from.Dial(wait.Usual.Context(w.t), "tcp", to)
	w.Must(err)
	w.t.Cleanup(func() { conn.Close() })
	return (&traffic.Client{Who: traffic.OfLab}).Over(conn)
}

// still wants this Pod to answer on an open connection.
func (w *world) still(open *traffic.Dialogue, pod string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), answerDeadline)
	defer cancel()
	if now, err := open.Ask(ctx); err != nil || now != pod {
		w.t.Fatalf("on an open connection %q answers (%v), want %s as before", now, err, pod)
	}
}
