package topology

import "slices"

// usable returns the usable endpoints of one family under each traffic policy, by kube-proxy's
// rules (KEP-1669, KEP-2433, KEP-4444): the ready ones that the hints allow, or else
// those that are terminating and still serve. Local endpoints ignore hints.
func usable(node, zone string, all []candidate) (cluster, local []candidate) {
	if cluster = hinted(node, zone, keep(all, isReady)); len(cluster) == 0 {
		cluster = keep(all, isDraining)
	}
	here := keep(all, func(e candidate) bool { return e.Local })
	if local = keep(here, isReady); len(local) == 0 {
		local = keep(here, isDraining)
	}
	return cluster, local
}

func isReady(e candidate) bool    { return e.Ready }
func isDraining(e candidate) bool { return e.Serving && e.Terminating }

// hinted returns those of the ready endpoints that the hints allow. One kind of hint counts,
// that for nodes before that for zones, and only if all ready endpoints carry it and one is for
// here. If no kind counts, all are allowed.
func hinted(node, zone string, all []candidate) []candidate {
	for _, kind := range []struct {
		here  string
		hints func(candidate) []string
	}{
		{node, func(e candidate) []string { return e.nodes }},
		{zone, func(e candidate) []string { return e.zones }},
	} {
		allowed := keep(all, func(e candidate) bool { return slices.Contains(kind.hints(e), kind.here) })
		lacking := slices.ContainsFunc(all, func(e candidate) bool { return len(kind.hints(e)) == 0 })
		if kind.here != "" && len(allowed) > 0 && !lacking {
			return allowed
		}
	}
	return all
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
