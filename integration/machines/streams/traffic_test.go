package streams

import (
	"fmt"
	"os"
	"time"

	"gridproxy/integration/lab"
	"gridproxy/integration/stream"
)

// rate is how many short connections are made in a second, on all ways together.
const rate = 100

// mostResent is how many of the connections of one event may have to send a packet again, as some do on a busy
// machine. A Service that is gone for half a second makes as many do so.
const mostResent = rate / 2

// open lets connections go on: short ones on ways of every kind, to both variants, and open ones on some
// of these, one to every backend.
func (w *world) open() {
	w.t.Helper()
	v4, v6 := lab.IPv4, lab.IPv6
	held := []stream.Way{
		w.fromPod("bj-1", "plain", v4), w.fromPod("gz-2", "plain", v6), w.fromMachine("bj-2", "plain", v4),
		w.fromOutside("gz-1", "plain", v4), w.fromOutside("bj-2", "plain", v6),
	}
	short := append([]stream.Way{
		w.fromPod("bj-1", "plain", v6), w.fromPod("gz-2", "plain", v4), w.fromMachine("gz-1", "plain", v4),
		w.fromMachine("gz-1", "plain", v6), w.fromOutside("bj-1", "plain", v6), w.fromOutside("gz-2", "plain", v4),
		w.fromPod("bj-2", "closed", v4), w.fromPod("gz-1", "closed", v6), w.fromMachine("gz-2", "closed", v4),
		w.fromOutside("bj-1", "closed", v4), w.fromPod("bj-1", "closed-host", v4),
	}, held...)
	flows, err := w.client.Hold(w.backends(), held...)
	w.must(err)
	w.traffic = &stream.Traffic{Flows: flows, Calls: w.client.Call(rate, short...)}
	traffic := w.traffic
	w.t.Cleanup(func() { traffic.End() })
}

// openClosed holds connections to the closed Service too, to every backend of the caller's unit.
func (w *world) openClosed() {
	w.t.Helper()
	for _, f := range lab.Families() {
		beijing, err := w.client.Hold(w.backends("bj-1", "bj-2"), w.fromPod("bj-1", "closed", f), w.fromOutside("bj-2", "closed", f))
		w.must(err)
		guangzhou, err := w.client.Hold(w.backends("gz-1", "gz-2"), w.fromMachine("gz-2", "closed", f))
		w.must(err)
		w.traffic.Flows = append(append(w.traffic.Flows, beijing...), guangzhou...)
	}
}

// during lets something happen and wants that no connection was lost by it.
func (w *world) during(event string, happen func()) {
	w.t.Helper()
	ctx, cancel := w.within()
	defer cancel()
	begin := time.Now()
	a, err := w.traffic.During(ctx, event, func() error { happen(); return nil })
	w.accounts = append(w.accounts, a)
	w.t.Logf("%s: took %s, %d short and %d open connections, %d lost, %d sent a packet again, slowest %s", event, a.Took.Round(time.Millisecond), a.Short, a.Open, len(a.Lost), a.Resent, a.Slowest.Round(time.Millisecond))
	if err != nil {
		w.t.Errorf("%s: %v", event, err)
	}
	if a.Resent > mostResent {
		w.t.Errorf("%s: %d of %d connections had to send a packet again: for a while packets were dropped", event, a.Resent, a.Short)
	}
	for i, l := range a.Lost {
		if i < 10 {
			w.t.Errorf("%s, begun at %s: lost: %s", event, begin.Format("15:04:05.000"), l)
		}
	}
	if len(a.Lost) > 10 {
		w.t.Errorf("%s: %d connections were lost in all", event, len(a.Lost))
	}
}

// close ends all connections, and wants that none was lost between two events either.
func (w *world) close() {
	w.t.Helper()
	all := w.traffic.End()
	told := 0
	for _, a := range w.accounts {
		told += len(a.Lost)
	}
	if len(all.Lost) > told {
		w.t.Errorf("%d connections were lost in all, %d of them during an event; the first one: %s", len(all.Lost), told, all.Lost[0])
	}
	w.accounts = append(w.accounts, all)
	w.traffic = nil
}

// print prints what became of all connections, and what was noted.
func (w *world) print() {
	fmt.Fprintln(os.Stderr)
	stream.Print(os.Stderr, w.accounts...)
	fmt.Fprintln(os.Stderr)
	for _, n := range w.notes {
		fmt.Fprintln(os.Stderr, n)
	}
}
