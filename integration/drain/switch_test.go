package drain

import (
	"slices"
	"testing"

	"gridproxy/integration/lab"
)

// everything are the callers and the flows of a switch: all routes to all Services, and connections
// that stay open to every Pod that may have one.
type everything struct {
	callers *callers
	flows   []*flow
}

func (w *world) start() everything {
	w.t.Helper()
	var routes []route
	for _, last := range []byte{plain, sticky, local} {
		routes = append(routes, w.routes(last)...)
	}
	e := everything{flows: w.hold(w.unit(), w.ways(plain)...)}
	e.flows = append(e.flows, w.hold([]*lab.Pod{w.endpoint(here)}, w.ways(local)[3:]...)...)
	e.flows = append(e.flows, w.hold(w.unit(), w.ways(local)[:2]...)...)
	for _, r := range w.ways(sticky)[:2] {
		e.flows = append(e.flows, w.open(r))
	}
	e.callers = w.call(routes...)
	w.more(e.callers, 2)
	return e
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
		e := w.start()
		w.change("ipvs")
		w.more(e.callers, 4)
		w.alive(e.flows)
		servers, skeleton := w.ipvs(), w.rules()
		w.flowsOf(&e) // more of them, that IPVS carries
		w.change("iptables")
		w.more(e.callers, 4)
		w.alive(e.flows)
		w.change("ipvs")
		w.more(e.callers, 4)
		w.alive(e.flows)
		w.settles(servers)
		w.must(same(w.rules(), skeleton))
		w.change("iptables")
		w.more(e.callers, 4)
		w.alive(e.flows)
		w.none(e.callers)
		end(e.flows)
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
func (w *world) flowsOf(e *everything) {
	w.t.Helper()
	e.flows = slices.Concat(e.flows, w.hold(w.unit(), w.ways(plain)...), w.hold([]*lab.Pod{w.endpoint(here)}, w.ways(local)[3:]...))
}
