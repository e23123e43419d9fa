package topology

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// WaveWindow is how long after the end of a Cut endpoints belong to a wave.
const WaveWindow = 10 * time.Second

// Cut is a time in which the API server could not be read. The cloud could not read this site
// either: at its end the cloud may believe that all of the site is not ready, until the kubelets
// have reported (openyurt#1426).
type Cut struct {
	Before Snapshot  // what was in force when it began
	End    time.Time // zero = it goes on
}

// Over reports whether a Cut brings no wave any more.
func (c Cut) Over(now time.Time) bool { return !c.End.IsZero() && now.Sub(c.End) > WaveWindow }

// Waves are the endpoints that are held: they turned not ready in a wave, and are used as if they
// were ready. A wave is at least half of the ready endpoints of this node's unit in a Service that
// turn from ready to not ready, none of them terminating, from a Cut until WaveWindow after its
// end. The zero value holds none. Pure: Hold returns another value.
type Waves struct {
	held map[endpointID]time.Time // until when; a time that is over = it was held in this Cut
}

// endpointID names an endpoint: what is at another address or Node is another one.
type endpointID struct {
	group sliceGroup
	addr  netip.Addr
	node  string
}

// sliceGroup are slices of a Service that make up waves together: those that rules are made of, and
// apart from them those that only DNS reads. So names change nothing about rules.
type sliceGroup struct {
	service   types.NamespacedName
	onlyNames bool
}

// groupOf returns the group of a slice; false = it belongs to no Service.
func groupOf(slice *Slice) (sliceGroup, bool) {
	if service, counts := serviceOf(slice); counts {
		return sliceGroup{service: service}, true
	}
	service, counts := labelledService(slice)
	return sliceGroup{service: service, onlyNames: true}, counts
}

// HeldEndpoint is an endpoint that is used although it is not ready.
type HeldEndpoint struct {
	Service types.NamespacedName
	Addr    netip.Addr
	Node    string
	Until   time.Time // at the latest
}

// Held returns the endpoints that are held now, sorted by Service, address and Node.
func (w Waves) Held(now time.Time) []HeldEndpoint {
	var all []HeldEndpoint
	for e, until := range w.held {
		if now.Before(until) {
			all = append(all, HeldEndpoint{e.group.service, e.addr, e.node, until})
		}
	}
	slices.SortFunc(all, func(a, b HeldEndpoint) int {
		return cmp.Or(CompareServices(a.Service, b.Service), a.Addr.Compare(b.Addr), cmp.Compare(a.Node, b.Node))
	})
	return all
}

// Until returns when the next held endpoint is released; zero = no endpoint is held.
func (w Waves) Until(now time.Time) time.Time {
	var first time.Time
	for _, until := range w.held {
		if now.Before(until) && (first.IsZero() || until.Before(first)) {
			first = until
		}
	}
	return first
}

// Hold returns the Waves after next, and the Snapshot to enforce in its place: next, with the
// held endpoints ready. An endpoint becomes held only if next brings a wave, so only with a cut
// that is not over; it is released after grace, or when it is ready again, terminating or
// deleted.
func (w Waves) Hold(next Snapshot, cut *Cut, grace time.Duration, now time.Time) (Waves, Snapshot) {
	if cut != nil && cut.Over(now) {
		cut = nil
	}
	if len(w.held) == 0 && (cut == nil || grace <= 0) {
		return Waves{}, next
	}
	after := Waves{held: map[endpointID]time.Time{}}
	is := endpointStates(next.Slices)
	for e, until := range w.held {
		if state, found := is[e]; found && !state.Ready && !state.Terminating && (now.Before(until) || cut != nil) {
			after.held[e] = until
		}
	}
	if cut != nil {
		for _, e := range turnedNotReady(cut.Before, next, is) {
			if _, known := after.held[e]; !known {
				after.held[e] = now.Add(grace)
			}
		}
	}
	next.Slices = after.apply(next.Slices, now)
	return after, next
}

// turnedNotReady returns the endpoints of all waves from before to next. now holds the endpoints
// of next.
func turnedNotReady(before, next Snapshot, now map[endpointID]SliceEndpoint) []endpointID {
	o := newObserver(next, Config{})
	was := map[sliceGroup][]*Slice{}
	for _, slice := range before.Slices {
		if group, counts := groupOf(slice); counts {
			was[group] = append(was[group], slice)
		}
	}
	var all []endpointID
	for _, svc := range next.Services {
		confined := confine(svc, next.LastKeys[svc.UID])
		for _, onlyNames := range []bool{false, true} {
			all = append(all, o.wave(confined, endpointStates(was[sliceGroup{NameOf(svc), onlyNames}]), now)...)
		}
	}
	return all
}

// wave returns the endpoints of one group, before, that turned not ready, or nil if they are
// less than half of those that were ready in this node's unit.
func (o observer) wave(c confinement, before, now map[endpointID]SliceEndpoint) (turned []endpointID) {
	ready := 0
	for e, state := range before {
		if !state.Ready || !o.sharesUnit(c, e.node) {
			continue
		}
		ready++
		if is, found := now[e]; found && !is.Ready && !is.Terminating {
			turned = append(turned, e)
		}
	}
	if 2*len(turned) < ready {
		return nil
	}
	return turned
}

// sharesUnit reports whether a node's endpoints of a Service are for this node. All are if the
// Service is not closed.
func (o observer) sharesUnit(c confinement, node string) bool {
	switch {
	case c.ownOnly:
		return node == o.node
	case len(c.keys) == 0 || slices.Contains(c.keys, AnyEndpoint):
		return true
	default:
		return Intersects(c.keys, o.labels, o.nodes[node])
	}
}

// endpointStates returns the endpoints of slices by identity, without the API server's. One that
// is in several slices is ready if it is in any.
func endpointStates(all []*Slice) map[endpointID]SliceEndpoint {
	states := map[endpointID]SliceEndpoint{}
	for _, slice := range all {
		group, counts := groupOf(slice)
		if !counts || group.service == APIServer() {
			continue // API servers have no readiness of their own
		}
		for _, e := range slice.Endpoints {
			id := endpointID{group, e.Addr, e.Node}
			if state, found := states[id]; !found || !state.Ready {
				states[id] = e
			}
		}
	}
	return states
}

// apply returns slices in which what is held is ready and serves; others are the same pointers.
func (w Waves) apply(all []*Slice, now time.Time) []*Slice {
	var out []*Slice // nil = nothing is held in any slice
	for i, slice := range all {
		group, counts := groupOf(slice)
		if !counts {
			continue
		}
		for j, e := range slice.Endpoints {
			if !now.Before(w.held[endpointID{group, e.Addr, e.Node}]) {
				continue
			}
			if out == nil {
				out = slices.Clone(all)
			}
			if out[i] == slice {
				held := *slice
				held.Endpoints = slices.Clone(slice.Endpoints)
				out[i] = &held
			}
			out[i].Endpoints[j].Ready, out[i].Endpoints[j].Serving = true, true
		}
	}
	if out == nil {
		return all
	}
	return out
}
