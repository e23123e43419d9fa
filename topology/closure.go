package topology

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// observer is the node that looks at the endpoints, and what it knows of the others.
type observer struct {
	node     string
	known    bool
	labels   labels.Set
	nodes    map[string]labels.Set
	fallback NodesWithoutUnit
}

func newObserver(s Snapshot, c Config) observer {
	own, known := s.Nodes[s.Node]
	return observer{node: s.Node, known: known, labels: own, nodes: s.Nodes, fallback: c.NodesWithoutUnit}
}

// hasUnit reports whether this node carries one of the keys. Where the list ends in "*"
// every known node does.
func (o observer) hasUnit(c confinement) bool {
	if c.policy == PolicyOrdered && slices.Contains(c.keys, AnyEndpoint) {
		return true
	}
	return slices.ContainsFunc(c.keys, func(key string) bool { return o.labels[key] != "" })
}

// close keeps the endpoints that the node may use, and says why it leaves out the others.
func (o observer) close(c confinement, all []candidate) ([]candidate, Closure) {
	closure := Closure{Keys: c.keys, Policy: c.policy, Malformed: c.malformed, OwnOnly: c.ownOnly}
	if c.policy == "" {
		closure.Policy = PolicyAny
	}
	switch {
	case !closure.Closed():
		return all, closure
	case c.ownOnly:
		return o.keepOwn(all, closure)
	case !o.known:
		return drop(all, closure, func(candidate) Reason { return ReasonSelfUnknown })
	case !o.hasUnit(c) && o.fallback == WithoutUnitOpen:
		return all, closure
	case !o.hasUnit(c) && o.fallback == WithoutUnitLocal:
		closure.OwnOnly = true
		return o.keepOwn(all, closure)
	case !o.hasUnit(c):
		return drop(all, closure, func(candidate) Reason { return ReasonSelfNoUnit })
	case c.policy == PolicyOrdered:
		return o.keepFirstRung(c.keys, all, closure)
	default:
		return drop(all, closure, func(e candidate) Reason { return o.outside(c.keys, e) })
	}
}

func (o observer) keepOwn(all []candidate, closure Closure) ([]candidate, Closure) {
	return drop(all, closure, func(e candidate) Reason {
		if e.Local {
			return ""
		}
		return ReasonNotOwn
	})
}

// keepFirstRung chooses the first key with a ready endpoint, else the first with one that
// is terminating but still serves. Chosen once, before readiness and traffic policies, so
// that every policy sees the same unit.
func (o observer) keepFirstRung(keys []string, all []candidate, closure Closure) ([]candidate, Closure) {
	usable := []func(candidate) bool{
		func(e candidate) bool { return e.Ready },
		func(e candidate) bool { return e.Serving && e.Terminating },
	}
	for _, use := range usable {
		for _, key := range keys {
			if slices.ContainsFunc(all, func(e candidate) bool { return use(e) && o.outsideRung(key, e) == "" }) {
				closure.Rung = key
				return drop(all, closure, func(e candidate) Reason { return o.belowRung(keys, key, e) })
			}
		}
	}
	return drop(all, closure, func(e candidate) Reason { return o.belowRung(keys, "", e) })
}

// outsideRung is outside for one entry of an Ordered list.
func (o observer) outsideRung(key string, e candidate) Reason {
	if key == AnyEndpoint || e.exempt {
		return ""
	}
	return o.outside([]string{key}, e)
}

// belowRung is why an endpoint is not in the rung that was chosen; rung "" holds nothing.
func (o observer) belowRung(keys []string, rung string, e candidate) Reason {
	if rung != "" && o.outsideRung(rung, e) == "" {
		return ""
	}
	for _, key := range keys {
		if o.outsideRung(key, e) == "" {
			return ReasonLowerRung
		}
	}
	return o.outside(keys, e)
}

// outside is why an endpoint is not in this node's unit; "" = it is.
func (o observer) outside(keys []string, e candidate) Reason {
	if e.exempt {
		return ""
	}
	if e.Node == "" {
		return ReasonNoNodeName
	}
	theirs, known := o.nodes[e.Node]
	switch {
	case !known:
		return ReasonUnknownEndpoint
	case Intersects(keys, o.labels, theirs):
		return ""
	case slices.ContainsFunc(keys, func(key string) bool { return theirs[key] != "" }):
		return ReasonOtherUnit
	default:
		return ReasonEndpointNoUnit
	}
}

// drop splits the candidates by why they are left out. What is exempt stays always.
func drop(all []candidate, closure Closure, why func(candidate) Reason) ([]candidate, Closure) {
	var kept []candidate
	for _, e := range all {
		if reason := why(e); reason == "" || e.exempt {
			kept = append(kept, e)
		} else {
			closure.Dropped = append(closure.Dropped, Drop{Endpoint: e.Endpoint, Reason: reason})
		}
	}
	sortDrops(closure.Dropped)
	return kept, closure
}

func sortDrops(all []Drop) {
	slices.SortFunc(all, func(a, b Drop) int {
		return cmp.Or(a.Endpoint.Addr.Compare(b.Endpoint.Addr), cmp.Compare(a.Endpoint.Node, b.Endpoint.Node))
	})
}
