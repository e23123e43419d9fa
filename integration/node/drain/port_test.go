package drain

import (
	"context"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// A limit of IPVS itself: if a client connects from one port to two virtual servers, and from both
// of them to the same real server, its bytes arrive on the newer connection only. IPVS tells a
// real server's answers apart by the client's address and port. (iptables gives the second
// connection another port.) If this fails the kernel has learnt better: tell docs/packet-path.md.
func TestSamePortTwoServers(t *testing.T) {
	w, services, _ := serving(t, nil, plain)
	w.serve(services[0], w.Endpoint("bj-3"))
	from := w.Client(here).Namespace
	ways := []traffic.Way{way(from, netns.VIP(netns.IPv4, plain)), way(from, netns.External(netns.IPv4, plain))}
	w.weigh(w.Endpoint(here), ways, "")
	const port = 9999
	var dialogues []*traffic.Dialogue
	for _, r := range ways {
		ctx := wait.Usual.Context(t)
		conn, err := r.Dial(ctx, port)
		w.Must(err)
		t.Cleanup(func() { conn.Close() })
		d := w.client.Over(conn)
		_, err = d.Ask(ctx)
		w.Must(err)
		dialogues = append(dialogues, d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), traffic.Deadline)
	defer cancel()
	if _, err := dialogues[1].Ask(ctx); err != nil {
		t.Errorf("the newer connection: %v", err)
	}
	if _, err := dialogues[0].Ask(ctx); err == nil {
		t.Error("the older connection is answered too")
	}
}
