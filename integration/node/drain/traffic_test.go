package drain

import (
	"fmt"
	"slices"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/promise"
	"gridproxy/integration/env/traffic"
	"gridproxy/integration/env/wait"
)

// call lets short connections be made, one after the other on each way.
func (w *world) call(ways ...traffic.Way) *traffic.Calls {
	c := w.client.CallInTurn(ways...)
	w.t.Cleanup(c.End)
	return c
}

// more waits until each way was asked n times more, from its begin to its end.
func (w *world) more(c *traffic.Calls, n int) {
	w.t.Helper()
	w.Must(c.More(wait.Usual.Context(w.t), n))
}

// none ends the calls and wants every connection answered. It tells how many there were, and of the
// slowest how many others were answered meanwhile.
func (w *world) none(c *traffic.Calls) {
	w.t.Helper()
	a := (&traffic.Traffic{Calls: c}).End()
	w.t.Logf("%d short connections, %d lost, %d sent a packet again, the slowest took %s: %s, while each way was answered %.1f times",
		a.Short, len(a.Lost), a.Resent, a.Slowest.Round(time.Millisecond), a.SlowestAt, a.Meanwhile)
	for _, l := range a.Lost[:min(len(a.Lost), mostShown)] {
		promise.Broken(w.t, promise.Connection, "lost: %s", l)
	}
	if len(a.Lost) > mostShown {
		w.t.Errorf("%d connections were lost in all", len(a.Lost))
	}
}

// mostShown is how many lost connections a slow console can carry.
const mostShown = 50

// answered are the short connections that began after a time and were answered.
func answered(c *traffic.Calls, after time.Time) []traffic.Attempt {
	return slices.DeleteFunc(c.Between(after, time.Now()), func(a traffic.Attempt) bool {
		return a.Begin.Before(after) || a.Err != nil
	})
}

// heard is who answered them, and how often.
func heard(c *traffic.Calls, after time.Time) map[string]int {
	count := map[string]int{}
	for _, a := range answered(c, after) {
		count[a.Pod]++
	}
	return count
}

// only wants that connections that began after a time were answered by some Pods only, and by each
// of them.
func (w *world) only(c *traffic.Calls, after time.Time, pods ...*netns.Pod) {
	w.t.Helper()
	count := map[string]int{}
	for _, a := range answered(c, after) {
		if count[a.Pod]++; !slices.Contains(netns.Names(pods), a.Pod) {
			w.t.Errorf("%s: %s answered a connection that began %s after; want one of %s", a.Way, a.Pod, a.Begin.Sub(after), netns.Names(pods))
		}
	}
	for _, name := range netns.Names(pods) {
		if count[name] == 0 {
			w.t.Errorf("%s did not answer once: %v", name, count)
		}
	}
}

// hold keeps a connection open on each way to every one of some Pods.
func (w *world) hold(pods []*netns.Pod, ways ...traffic.Way) []*traffic.Flow {
	w.t.Helper()
	flows, err := w.client.Hold(netns.Names(pods), ways...)
	w.Must(err)
	w.t.Cleanup(func() { traffic.End(flows) })
	return flows
}

func (w *world) open(way traffic.Way) *traffic.Flow {
	w.t.Helper()
	f, err := w.client.Open(way)
	w.Must(err)
	w.t.Cleanup(f.End)
	return f
}

// alive wants every open connection to have been answered by its Pod up to now, and twice more.
func (w *world) alive(flows []*traffic.Flow) {
	w.t.Helper()
	if err := traffic.Alive(wait.Usual.Context(w.t), 2, flows...); err != nil {
		w.t.Error(err)
	}
}

// over waits until an open connection is lost.
func (w *world) over(f *traffic.Flow) {
	w.t.Helper()
	wait.Until(w.t, fmt.Sprintf("the open connection, %s, to %s is lost", f.Way, f.Pod), func() error { return wait.Check(f.Lost() != nil, "it goes on") })
}

// to are the open connections to a Pod.
func to(pod string, flows []*traffic.Flow) []*traffic.Flow {
	return slices.DeleteFunc(slices.Clone(flows), func(f *traffic.Flow) bool { return f.Pod != pod })
}
