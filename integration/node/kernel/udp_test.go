package kernel

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// flow is one UDP socket that keeps asking: to the kernel, one flow, which keeps its
// endpoint for as long as it is tracked.
type flow struct {
	w    *world
	conn net.Conn
	f    netns.Family
}

func (w *world) newFlow(from *netns.Namespace, f netns.Family, last byte) *flow {
	w.t.Helper()
	conn, err := from.Dial(w.t.Context(), "udp", netns.VIP(f, last))
	w.Must(err)
	w.t.Cleanup(func() { conn.Close() })
	return &flow{w: w, conn: conn, f: f}
}

func (u *flow) ask(ctx context.Context) (string, error) {
	// A datagram may be lost while rules change; the next question tells.
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	a, err := netns.Ask(ctx, u.conn)
	return a.Pod, err
}

// movesTo waits until one of some Pods answers this flow.
func (u *flow) movesTo(want ...*netns.Pod) string {
	u.w.t.Helper()
	var pod string
	wait.Until(u.w.t, fmt.Sprintf("one of %s answers the flow, %s", netns.Names(want), u.f), func() (err error) {
		pod, err = u.ask(u.w.t.Context())
		for _, p := range want {
			if err == nil && p.Name == pod {
				return nil
			}
		}
		return fmt.Errorf("%q answered (%w)", pod, err)
	})
	return pod
}

// A UDP flow that goes on follows what becomes of its Service: its endpoint goes, all
// endpoints go, they come back, and closure tightens around it. Its old endpoint would
// answer all the time, and does while the flow is tracked; so a flow that moves was swept.
func TestUDPFlowFollows(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := netns.NewClosedService("flow", 90)
		w.Serve(s, w.endpoints("bj-1", "bj-3")...)
		w.run([]string{"bj-1"}, detect()...)
		var flows []*flow
		for _, f := range netns.Families() {
			flows = append(flows, w.newFlow(w.Client("bj-1").Namespace, f, 90))
		}
		for _, u := range flows {
			u.movesTo(w.endpoints("bj-1", "bj-3")...)
		}

		for _, node := range []string{"bj-1", "bj-3"} {
			w.Serve(s, w.Endpoint(node))
			w.apply()
			for _, u := range flows {
				u.movesTo(w.Endpoint(node))
			}
		}

		w.Serve(s)
		w.apply()
		for _, u := range flows {
			u.ends()
		}

		netns.Confine(s, "")
		w.Serve(s, w.Endpoint("gz-2"))
		w.apply()
		for _, u := range flows {
			u.movesTo(w.Endpoint("gz-2"))
		}
		w.Serve(s, w.endpoints("gz-2", "bj-3")...)
		w.apply()
		netns.Confine(s, `["location"]`)
		w.apply()
		for _, u := range flows {
			u.movesTo(w.Endpoint("bj-3"))
		}
	})
}

// An open TCP connection is left alone when closure tightens around it: only new ones are
// confined.
func TestTCPConnectionIsLeftAlone(t *testing.T) {
	eachBackend(t, func(t *testing.T, b backend) {
		w := newWorld(t, b, "bj-1", "bj-3", "gz-2")
		s := netns.NewClosedService("open", 91)
		netns.Confine(s, "")
		w.Serve(s, w.Endpoint("gz-2"))
		w.run([]string{"bj-1"}, detect()...)
		from := w.Client("bj-1").Namespace
		var open []*traffic.Dialogue
		for _, f := range netns.Families() {
			open = append(open, w.dial(from, netns.VIP(f, 91)))
		}
		for _, conn := range open {
			w.still(conn, w.Endpoint("gz-2").Name)
		}

		netns.Confine(s, `["location"]`)
		w.Serve(s, w.endpoints("gz-2", "bj-3")...)
		w.apply()
		for _, f := range netns.Families() {
			w.reaches(from, "tcp", netns.VIP(f, 91), w.Endpoint("bj-3"))
		}
		for _, conn := range open {
			w.still(conn, w.Endpoint("gz-2").Name)
		}
	})
}
