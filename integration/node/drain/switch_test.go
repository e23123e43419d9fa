package drain

import (
	"slices"
	"testing"

	"gridproxy/integration/lab"
	"gridproxy/integration/stream"
)

// start is the traffic of a switch: short connections by all routes to all Services, and connections
// that stay open to every Pod that may have one.
func (w *world) start() *stream.Traffic {
	w.t.Helper()
	var routes []stream.Way
	for _, last := range []byte{plain, sticky, local} {
		routes = append(routes, w.routes(last)...)
	}
	traffic := &stream.Traffic{Flows: w.hold(w.unit(), w.ways(plain)...)}
	traffic.Flows = append(traffic.Flows, w.hold([]*lab.Pod{w.endpoint(here)}, w.ways(local)[3:]...)...)
	traffic.Flows = append(traffic.Flows, w.hold(w.unit(), w.ways(local)[:2]...)...)
	for _, r := range w.ways(sticky)[:2] {
		traffic.Flows = append(traffic.Flows, w.open(r))
	}
	traffic.Calls = w.call(routes...)
	w.more(traffic.Calls, 2)
	return traffic
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
		traffic := w.start()
		w.change("ipvs")
		w.more(traffic.Calls, 4)
		w.alive(traffic.Flows)
		servers, skeleton := w.ipvs(), w.rules()
		w.flowsOf(traffic) // more of them, that IPVS carries
		w.change("iptables")
		w.more(traffic.Calls, 4)
		w.alive(traffic.Flows)
		w.change("ipvs")
		w.more(traffic.Calls, 4)
		w.alive(traffic.Flows)
		w.settles(servers)
		w.must(same(w.rules(), skeleton))
		w.change("iptables")
		w.more(traffic.Calls, 4)
		w.alive(traffic.Flows)
		w.none(traffic.Calls)
		stream.End(traffic.Flows)
		w.clean()
		w.must(same(w.rules(), chains))
	})
}

// change replaces the daemon by one of another mode, as a rollout does.
func (w *world) change(mode string) {
	w.t.Helper()
	w.stop(false)
	w.run(mode)
}

// flowsOf opens more flows.
func (w *world) flowsOf(traffic *stream.Traffic) {
	w.t.Helper()
	traffic.Flows = slices.Concat(traffic.Flows, w.hold(w.unit(), w.ways(plain)...), w.hold([]*lab.Pod{w.endpoint(here)}, w.ways(local)[3:]...))
}
