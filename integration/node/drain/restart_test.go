package drain

import (
	"testing"

	"gridproxy/integration/env/traffic"
)

// Drains survive gridproxy: killed or asked to end in the middle of one, it finds it again, ends it
// when its connections have ended, and takes it back when the endpoint is back. No connection is lost
// meanwhile, and what was ended while it was away goes.
func TestRestartInMidDrain(t *testing.T) {
	w, services, before := serving(t, nil, plain)
	gone := w.Endpoint("bj-3")
	rest := without(w.unit(), gone.Name)
	flows := w.hold(w.unit(), w.ways(plain)...)
	c := w.call(w.routes(plain)...)
	w.serve(services[0], rest...)
	since := w.drains(gone, w.ways(plain))
	for _, kill := range []bool{true, false} {
		w.more(c, 3)
		w.Stop(here, kill)
		w.more(c, 3)
		w.run("ipvs")
		w.weigh(gone, w.ways(plain), "0")
		w.alive(flows)
	}
	w.only(c, since, rest...)
	w.Stop(here, true)
	w.Serve(services[0], w.unit()...)
	w.run("ipvs")
	w.weigh(gone, w.ways(plain), "1")
	w.alive(flows)

	w.serve(services[0], rest...)
	w.drains(gone, w.ways(plain))
	w.Stop(here, true)
	traffic.End(to(gone.Name, flows))
	w.none(c)
	w.run("ipvs")
	w.weigh(gone, w.ways(plain), "")
	traffic.End(flows)
	w.serve(services[0], w.all()...)
	w.settles(before)
}
