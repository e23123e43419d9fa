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
	probed  ProbedProxies
}

func newObserver(s Snapshot, c Config) observer {
	own, known := s.Nodes[s.Node]
	return observer{node: s.Node, known: known, labels: own, nodes: s.Nodes, noUnit: c.NodesWithoutUnit, watched: s.Watched, probed: s.APIProxies}
}

// hasUnit reports whether this node carries one of the keys. If the list ends in "*", every known
// node does.
func (o observer) hasUnit(c confinement) bool {
	if c.policy == PolicyOrdered && slices.Contains(c.keys, AnyEndpoint) {
		return true
	}
	return slices.ContainsFunc(c.keys, func(key string) bool { return o.labels[key] != "" })
}

// verdict is why closure leaves an endpoint out; "" = it does not. nil leaves none out.
type verdict func(candidate) Reason

// judge returns how a Service port with the endpoints all is closed here, without LeftOut, and
// the verdict that says why an endpoint is left out; nil = none is.
func (o observer) judge(c confinement, all []candidate) (Closure, verdict) {
	closure := Closure{Keys: c.keys, Policy: c.policy, Malformed: c.malformed, OwnOnly: c.ownOnly}
	if c.policy == "" {
		closure.Policy = PolicyAny
	}
	switch {
	case !closure.Closed():
		return closure, nil
	case c.ownOnly:
		return closure, notOwn
	case !o.known:
		return closure, func(candidate) Reason { return ReasonSelfUnknown }
	case !o.hasUnit(c) && o.noUnit == WithoutUnitOpen:
		return closure, nil
	case !o.hasUnit(c) && o.noUnit == WithoutUnitLocal:
		closure.OwnOnly = true
		return closure, notOwn
	case !o.hasUnit(c):
		return closure, func(candidate) Reason { return ReasonSelfNoUnit }
	case c.policy == PolicyOrdered:
		key, why := o.fallBack(c.keys[:o.usableKeys(c)], all)
		closure.KeyInUse = key
		return closure, why
	default:
		return closure, func(e candidate) Reason { return o.outside(c.keys, e) }
	}
}

func notOwn(e candidate) Reason {
	if e.Local {
		return ""
	}
	return ReasonNotOwn
}

// of returns the verdict on one endpoint; "" = it stays. Exempt ones always stay.
func (v verdict) of(e candidate) Reason {
	if v == nil || e.exempt {
		return ""
	}
	return v(e)
}

// close returns the endpoints that the node may use, and the Closure, which counts the others.
func (o observer) close(c confinement, all []candidate) ([]candidate, Closure) {
	closure, why := o.judge(c, all)
	if why == nil {
		return all, closure
	}
	var kept []candidate
	for _, e := range all {
		if reason := why.of(e); reason == "" {
			kept = append(kept, e)
		} else {
			closure.count(reason)
		}
	}
	return kept, closure
}

func (c *Closure) count(reason Reason) {
	i := slices.IndexFunc(c.LeftOut, func(r ReasonCount) bool { return r.Reason == reason })
	if i < 0 {
		i, c.LeftOut = len(c.LeftOut), append(c.LeftOut, ReasonCount{Reason: reason})
	}
	c.LeftOut[i].Count++
}

// drops returns what closure leaves out of a port, sorted by address, for View.Drops. It decides
// again from the same inputs.
func (o observer) drops(sp *ServicePort) []Drop {
	c := sp.Closure
	all, _ := splitUsable(candidates(o.node, o.probed, sp.Name, sp.Slices))
	_, why := o.judge(confinement{keys: c.Keys, policy: c.Policy, malformed: c.Malformed, ownOnly: c.OwnOnly}, all)
	var out []Drop
	for _, e := range all {
		if reason := why.of(e); reason != "" {
			out = append(out, Drop{Endpoint: e.Endpoint, Reason: reason})
		}
	}
	sortDrops(out)
	return out
}

// outside returns why an endpoint that is not exempt is not in this node's unit; "" = it is.
func (o observer) outside(keys []string, e candidate) Reason {
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

func sortDrops(all []Drop) {
	slices.SortFunc(all, func(a, b Drop) int {
		return cmp.Or(a.Endpoint.Addr.Compare(b.Endpoint.Addr), cmp.Compare(a.Endpoint.Node, b.Endpoint.Node))
	})
}
