package topology

import "slices"

// hint is which of an endpoint's hints count.
type hint uint8

const (
	noHint hint = iota
	sameZone
	sameNode
)

// usable returns the usable endpoints of one family under each traffic policy, by kube-proxy's
// rules (KEP-1669, KEP-2433, KEP-4444): the ready ones that the hints allow, or else
// those that are terminating and still serve. Local endpoints ignore hints.
func usable(node, zone string, all []candidate) (cluster, local []candidate) {
	h := hintOf(node, zone, all)
	cluster = keep(all, func(e candidate) bool { return e.Ready && e.hinted(h, node, zone) })
	if len(cluster) == 0 {
		cluster = keep(all, draining)
	}
	local = keep(all, func(e candidate) bool { return e.Local && e.Ready })
	if len(local) == 0 {
		local = keep(all, func(e candidate) bool { return e.Local && draining(e) })
	}
	return cluster, local
}

func draining(e candidate) bool { return e.Serving && e.Terminating }

// hintOf decides from the ready endpoints which hints count: a kind counts only if all of them
// carry it, and at least one of them for this node.
func hintOf(node, zone string, all []candidate) hint {
	ready := keep(all, func(e candidate) bool { return e.Ready })
	every := func(hints func(candidate) []string) bool {
		return !slices.ContainsFunc(ready, func(e candidate) bool { return len(hints(e)) == 0 })
	}
	some := func(hints func(candidate) []string, name string) bool {
		return slices.ContainsFunc(ready, func(e candidate) bool { return slices.Contains(hints(e), name) })
	}
	nodes := func(e candidate) []string { return e.nodes }
	zones := func(e candidate) []string { return e.zones }
	switch {
	case every(nodes) && some(nodes, node):
		return sameNode
	case zone != "" && every(zones) && some(zones, zone):
		return sameZone
	default:
		return noHint
	}
}

func (e candidate) hinted(h hint, node, zone string) bool {
	switch h {
	case sameNode:
		return slices.Contains(e.nodes, node)
	case sameZone:
		return slices.Contains(e.zones, zone)
	default:
		return true
	}
}

func keep(all []candidate, ok func(candidate) bool) []candidate {
	var kept []candidate
	for _, e := range all {
		if ok(e) {
			kept = append(kept, e)
		}
	}
	return kept
}
