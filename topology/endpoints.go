package topology

// Endpoints returns all endpoints that a Snapshot holds for a Service port, before closure,
// readiness and hints: what explain has to account for. An address that two endpoints
// share appears once for each.
func Endpoints(s Snapshot, name ServicePortName) []Endpoint {
	return toEndpoints(candidates(s.Node, s.APIProxies, name, slicesByService(s.Slices, serviceOf)[name.NamespacedName]))
}

// Deciding returns of each address and port the endpoint that merge keeps, sorted by address. all
// are in the order of Endpoints.
func Deciding(all []Endpoint) []Endpoint {
	entries := make([]candidate, len(all))
	for i, e := range all {
		entries[i].Endpoint = e
	}
	return toEndpoints(merge(entries))
}
