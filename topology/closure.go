package topology

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/labels"
)

// observer is this node, with what it knows of the other nodes.
type observer struct {
	node   string
	known  bool
	labels labels.Set
	nodes  map[string]labels.Set
	noUnit NodesWithoutUnit

	watched map[string]bool // as of the Snapshot
}

func newObserver(s Snapshot, c Config) observer {
	own, known := s.Nodes[s.Node]
	return observer{node: s.Node, known: known, labels: own, nodes: s.Nodes, noUnit: c.NodesWithoutUnit, watched: s.Watched}
}

// hasUnit reports whether this node carries one of the keys. If the list ends in "*", every known
// node does.
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
		return keepUnless(all, closure, func(candidate) Reason { return ReasonSelfUnknown })
	case !o.hasUnit(c) && o.noUnit == WithoutUnitOpen:
		return all, closure
	case !o.hasUnit(c) && o.noUnit == WithoutUnitLocal:
		closure.OwnOnly = true
		return o.keepOwn(all, closure)
	case !o.hasUnit(c):
		return keepUnless(all, closure, func(candidate) Reason { return ReasonSelfNoUnit })
	case c.policy == PolicyOrdered:
		return o.fallBack(c.keys[:o.usableKeys(c)], all, closure)
	default:
		return keepUnless(all, closure, func(e candidate) Reason { return o.outside(c.keys, e) })
	}
}

func (o observer) keepOwn(all []candidate, closure Closure) ([]candidate, Closure) {
	return keepUnless(all, closure, func(e candidate) Reason {
		if e.Local {
			return ""
		}
		return ReasonNotOwn
	})
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
		return o.whyUnknown()
	case Intersects(keys, o.labels, theirs):
		return ""
	case slices.ContainsFunc(keys, func(key string) bool { return theirs[key] != "" }):
		return ReasonOtherUnit
	default:
		return ReasonEndpointNoUnit
	}
}

// keepUnless leaves out the candidates for which there is a reason. Exempt candidates always stay.
func keepUnless(all []candidate, closure Closure, why func(candidate) Reason) ([]candidate, Closure) {
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
