package streams

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/promise"
	"gridproxy/integration/env/traffic"
)

// rate is how many short connections are made in a second, on all ways together.
const rate = 100

// open lets connections go on: short ones on ways of every kind, to both variants, and open ones on some
// of these, one to every backend.
func (w *world) open() {
	w.t.Helper()
	v4, v6 := netns.IPv4, netns.IPv6
	held := []traffic.Way{
		w.fromPod("bj-1", "plain", v4), w.fromPod("gz-2", "plain", v6), w.fromMachine("bj-2", "plain", v4),
		w.fromOutside("gz-1", "plain", v4), w.fromOutside("bj-2", "plain", v6),
	}
	short := append([]traffic.Way{
		w.fromPod("bj-1", "plain", v6), w.fromPod("gz-2", "plain", v4), w.fromMachine("gz-1", "plain", v4),
		w.fromMachine("gz-1", "plain", v6), w.fromOutside("bj-1", "plain", v6), w.fromOutside("gz-2", "plain", v4),
		w.fromPod("bj-2", "closed", v4), w.fromPod("gz-1", "closed", v6), w.fromMachine("gz-2", "closed", v4),
		w.fromOutside("bj-1", "closed", v4), w.fromPod("bj-1", "closed-host", v4),
	}, held...)
	flows, err := w.client.Hold(w.backends(), held...)
	w.must(err)
	w.traffic = &traffic.Traffic{Flows: flows, Calls: w.client.Call(rate, short...)}
	traffic := w.traffic
	w.t.Cleanup(func() { traffic.End() })
}

// openClosed holds connections to the closed Service too, to every backend of the caller's unit.
func (w *world) openClosed() {
	w.t.Helper()
	for _, f := range netns.Families() {
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
	ctx, cancel := context.WithCancelCause(w.t.Context())
	defer cancel(nil)
	begin := time.Now()
	a, err := w.traffic.During(ctx, event, func() error {
		happen() // each of its steps has a timeout of its own
		over := time.AfterFunc(waitTimeout, func() { cancel(fmt.Errorf("not so within %s of the event", waitTimeout)) })
		w.t.Cleanup(func() { over.Stop() })
		return nil
	})
	w.accounts = append(w.accounts, a)
	w.t.Logf("%s: took %s, %d short and %d open connections, %d lost, %d sent a packet again, slowest %s", event, a.Took.Round(time.Millisecond), a.Short, a.Open, len(a.Lost), a.Resent, a.Slowest.Round(time.Millisecond))
	if err != nil {
		w.t.Errorf("%s: %v", event, err)
	}
	for _, o := range outages(w.traffic.Calls.Between(begin, time.Now())) {
		w.t.Errorf("%s: packets were dropped: %s", event, o)
	}
	w.tell(event+", begun at "+begin.Format("15:04:05.000"), a.Lost)
}

// tell fails the test with some of the connections that were lost.
func (w *world) tell(when string, lost []traffic.Loss) {
	w.t.Helper()
	for i, l := range lost {
		if i < 10 {
			promise.Broken(w.t, promise.Connection, "%s: lost: %s", when, l)
		}
	}
	if len(lost) > 10 {
		w.t.Errorf("%s: %d connections were lost in all", when, len(lost))
	}
}

// close ends all connections, and wants that none was lost between two events either.
func (w *world) close() {
	w.t.Helper()
	all := w.traffic.End()
	w.tell("between two events", untold(all, w.accounts))
	w.accounts = append(w.accounts, all)
	w.traffic = nil
}

// untold are the losses that are in none of some accounts. One that overlaps two events is in both.
func untold(all traffic.Account, accounts []traffic.Account) []traffic.Loss {
	type which struct {
		way   traffic.Way
		pod   string
		begin time.Time
	}
	told := map[which]bool{}
	for _, a := range accounts {
		for _, l := range a.Lost {
			told[which{l.Way, l.Pod, l.Begin}] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(all.Lost), func(l traffic.Loss) bool { return told[which{l.Way, l.Pod, l.Begin}] })
}

// TestUntold: a loss that two events share stands for itself alone.
func TestUntold(t *testing.T) {
	begin := time.Now()
	shared, between := traffic.Loss{Begin: begin}, traffic.Loss{Begin: begin.Add(time.Second)}
	both := []traffic.Account{{Lost: []traffic.Loss{shared}}, {Lost: []traffic.Loss{shared}}}
	all := traffic.Account{Lost: []traffic.Loss{shared, between}}
	if got := untold(all, both); len(got) != 1 || got[0].Begin != between.Begin {
		t.Errorf("between the events there was %v, want the second one", got)
	}
}

// print prints what became of all connections, and what was noted.
func (w *world) print() {
	fmt.Fprintln(os.Stderr)
	traffic.Print(os.Stderr, w.accounts...)
	fmt.Fprintln(os.Stderr)
	for _, n := range w.notes {
		fmt.Fprintln(os.Stderr, n)
	}
}
