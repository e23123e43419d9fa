package drain

import (
	"slices"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
)

// start is the traffic of a switch: short connections by all routes to all Services, and connections
// that stay open to every Pod that may have one.
func (w *world) start() *traffic.Traffic {
	w.t.Helper()
	var routes []traffic.Way
	for _, last := range []byte{plain, sticky, local} {
		routes = append(routes, w.routes(last)...)
	}
	running := &traffic.Traffic{Flows: w.hold(w.unit(), w.ways(plain)...)}
	running.Flows = append(running.Flows, w.hold([]*netns.Pod{w.Endpoint(here)}, w.ways(local)[3:]...)...)
	running.Flows = append(running.Flows, w.hold(w.unit(), w.ways(local)[:2]...)...)
	for _, r := range w.ways(sticky)[:2] {
		running.Flows = append(running.Flows, w.open(r))
	}
	running.Calls = w.call(routes...)
	w.more(running.Calls, 2)
	return running
}

// Switching a live node between the modes, both ways and back, loses nothing: every short connection
// is answered while the one mode is followed by the other, and connections that were opened in one go
// on in the next, until they end. Then nothing of IPVS is left in mode iptables, and the rules of each
// mode are those that it wrote the first time.
func TestSwitch(t *testing.T) {
	eachVariant(t, func(t *testing.T, variant string) {
		w := newWorld(t, variant)
		for _, last := range []byte{plain, sticky, local} {
			w.Serve(newService(last), w.all()...)
		}
		w.run("iptables")
		chains := w.rules()
		w.clean()
		running := w.start()
		w.change("ipvs")
		w.more(running.Calls, 4)
		w.alive(running.Flows)
		servers, skeleton := w.IPVSState(here), w.rules()
		w.flowsOf(running) // more of them, that IPVS carries
		w.change("iptables")
		w.more(running.Calls, 4)
		w.alive(running.Flows)
		w.change("ipvs")
		w.more(running.Calls, 4)
		w.alive(running.Flows)
		w.settles(servers)
		w.Must(netns.CompareLines(w.rules(), skeleton))
		w.change("iptables")
		w.more(running.Calls, 4)
		w.alive(running.Flows)
		w.none(running.Calls)
		traffic.End(running.Flows)
		w.clean()
		w.Must(netns.CompareLines(w.rules(), chains))
	})
}

// change replaces the daemon by one of another mode, as a rollout does.
func (w *world) change(mode string) {
	w.t.Helper()
	w.Stop(here, false)
	w.run(mode)
}

func (w *world) flowsOf(running *traffic.Traffic) {
	w.t.Helper()
	running.Flows = slices.Concat(running.Flows, w.hold(w.unit(), w.ways(plain)...), w.hold([]*netns.Pod{w.Endpoint(here)}, w.ways(local)[3:]...))
}
