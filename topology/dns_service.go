package topology

import (
	"fmt"
	"slices"

	"gridproxy/topology/dnsview"
	"gridproxy/topology/excerpt"
)

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

	Slices     []*Slice // all of the Service: what it was decided from
	Closure    Closure  // how its endpoints were confined, and what that left out
	Unnamed    int      // endpoints that have no names, because DNS has at most namedMax
	Collisions []string // aliases that are not served, because the name is another endpoint's; sorted
	Ignored    []string // what of the annotations is ignored, if it is headless: else its ServicePorts say so
	Warnings   []string // what else of the Service, its slices and Grids is ignored
}

// namedMax is how many endpoints of one Service have names. They come from a tenant, and each node
// holds them twice.
const namedMax = 50_000

// UnnamedWarning returns a text if endpoints have no names; "" = all have. It does not change with
// their number, so an Event with it is not repeated.
func (s *DNSService) UnnamedWarning() string {
	if s.Unnamed == 0 {
		return ""
	}
	return fmt.Sprintf("DNS has at most %d endpoints of one Service, the first by host name; further ones have no names", namedMax)
}

// Doubts returns texts about what the Service's objects ask for and DNS does not serve.
func (s *DNSService) Doubts() []string {
	var all []string
	if s.Closure.Malformed != "" {
		all = append(all, s.Closure.Malformed+"; "+MalformedEffect(s.Closure.Keys))
	}
	all = slices.Concat(all, s.Warnings, s.Ignored)
	if warning := s.UnnamedWarning(); warning != "" {
		all = append(all, fmt.Sprintf("%s, here %d", warning, s.Unnamed))
	}
	for _, alias := range s.Collisions {
		all = append(all, fmt.Sprintf("the alias %s is not served: an endpoint has that name", excerpt.Of(alias)))
	}
	return all
}

// Names returns what a DNS server has to know. A Service that is the same pointer as before is
// so in the Names too.
func (v DNSView) Names() dnsview.View {
	names := dnsview.View{Node: v.Node, Services: make([]*dnsview.Names, len(v.Services)), Namespaces: v.Namespaces}
	for i, svc := range v.Services {
		names.Services[i] = &svc.Names
	}
	return names
}
