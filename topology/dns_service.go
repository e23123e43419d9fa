package topology

import "gridproxy/topology/dnsview"

// DNSView is what DNS says about Services to the clients of one node, and why: closure first, then
// readiness.
type DNSView struct {
	Node       string
	Services   []*DNSService // sorted by Service; never changed in place, so a pointer identifies a result
	Namespaces []string      // those that exist, sorted
}

// DNSService is what DNS says about one Service, and why.
type DNSService struct {
	dnsview.Names

	Closure    Closure  // how its endpoints were confined, and what that left out
	Collisions []string // aliases that are not served, because the name is another endpoint's; sorted
	Warnings   []string // what of the Service, its slices and Grids is ignored
}

// Names are what a DNS server has to know. A Service that is the same pointer as before is so in
// the Names too.
func (v DNSView) Names() dnsview.View {
	names := dnsview.View{Node: v.Node, Services: make([]*dnsview.Names, len(v.Services)), Namespaces: v.Namespaces}
	for i, svc := range v.Services {
		names.Services[i] = &svc.Names
	}
	return names
}
