package feed

import (
	"net/netip"
	"strings"

	"gridproxy/rules/names"
	"gridproxy/topology/dnsfeed"
	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// Contents are what is known. They never change: an update makes others.
type Contents struct {
	Hello dnsfeed.Hello
	Zone  *names.Zone
}

// newContents returns the Contents of a whole View. addrs are the server's own addresses.
func newContents(h dnsfeed.Hello, v dnsview.View, generation uint64, addrs []netip.Addr) *Contents {
	config := names.Config{Domain: h.Domain, TTL: names.DefaultTTL, NameServer: nameOf(h.Service), ServerAddrs: addrs}
	return &Contents{Hello: h, Zone: names.New(config, v, serial(generation))}
}

// keep returns c with the given Services as earlier has them. If earlier is nil, it returns c.
func (c *Contents) keep(earlier *Contents, services []types.NamespacedName) *Contents {
	if earlier == nil {
		return c
	}
	change := names.Change{Serial: c.Zone.Serial()}
	for _, name := range services {
		if svc := earlier.Zone.Service(name); svc != nil {
			change.Services = append(change.Services, svc)
		}
	}
	return &Contents{Hello: c.Hello, Zone: c.Zone.Update(change)}
}

// after returns c changed by an update that does not hold everything.
func (c *Contents) after(u dnsfeed.Update) *Contents {
	change := names.Change{Serial: serial(u.Generation), Services: u.Services, Removed: u.Removed}
	if u.NewNamespaces {
		change.Namespaces = append([]string{}, u.Namespaces...)
	}
	return &Contents{Hello: c.Hello, Zone: c.Zone.Update(change)}
}

// serial returns the serial number of the SOA record, which has 32 bits.
func serial(generation uint64) uint32 { return uint32(generation) } //nolint:gosec // it wraps

func nameOf(text string) types.NamespacedName {
	namespace, name, _ := strings.Cut(text, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}

// ClusterDNS returns what DNS says about the cluster's own DNS servers; nil = the cluster has
// no such Service.
func (c *Contents) ClusterDNS() *dnsview.Names {
	return c.Zone.Service(nameOf(c.Hello.Service))
}
