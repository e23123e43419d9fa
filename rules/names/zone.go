package names

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// Config is what a Zone says besides what is in the cluster.
type Config struct {
	Domain      string               // the cluster domain, with or without the dot at its end
	TTL         uint32               // of every record but the version, in seconds
	NameServer  types.NamespacedName // the Service that the domain names as its server
	ServerAddrs []netip.Addr         // named as ns.dns of the domain if there is no such Service
}

// Zone is the index of all names at one moment. It never changes.
type Zone struct {
	config     Config
	serial     uint32
	namespaces map[string]struct{}
	services   sharded[types.NamespacedName, *entry]
	clusterIPs sharded[netip.Addr, []*entry] // the Services with such a cluster IP, by name
	endpoints  sharded[netip.Addr, []*entry] // the Services with such an endpoint, by name
}

// entry is one Service of a Zone. Both orders are indexes of its Endpoints.
type entry struct {
	*dnsview.Names
	name       string             // NAME.NAMESPACE.svc
	clusterIPs []dnsview.Endpoint // without hostnames
	byHostname []int32            // in the order of hostnames
	byAddr     []int32            // in the order of addresses, then of hostnames
}

// Change is what differs between two Zones.
type Change struct {
	Serial     uint32           // of the new Zone
	Services   []*dnsview.Names // that are new or other than before
	Removed    []types.NamespacedName
	Namespaces []string // all that exist; nil means those of before
}

// New returns the Zone of a whole view.
func New(config Config, view dnsview.View, serial uint32) *Zone {
	config.Domain = strings.ToLower(strings.TrimSuffix(config.Domain, ".")) + "."
	empty := &Zone{
		config:     config,
		services:   newSharded[types.NamespacedName, *entry](),
		clusterIPs: newSharded[netip.Addr, []*entry](),
		endpoints:  newSharded[netip.Addr, []*entry](),
	}
	namespaces := view.Namespaces
	if namespaces == nil {
		namespaces = []string{}
	}
	return empty.Update(Change{Serial: serial, Services: view.Services, Namespaces: namespaces})
}

// Domain returns the cluster domain, in lower case and with the dot at its end.
func (z *Zone) Domain() string { return z.config.Domain }

// TTL returns the TTL of every record except the version, in seconds.
func (z *Zone) TTL() uint32 { return z.config.TTL }

// Serial returns the serial of the last Change.
func (z *Zone) Serial() uint32 { return z.serial }

// View returns the view that the Zone was made of, without the name of a node.
func (z *Zone) View() dnsview.View {
	v := dnsview.View{Namespaces: slices.Sorted(maps.Keys(z.namespaces))}
	for e := range z.services.values() {
		v.Services = append(v.Services, e.Names)
	}
	slices.SortFunc(v.Services, dnsview.Compare)
	return v
}

// Service returns the names of a Service; nil = the Zone has no Service of that name.
func (z *Zone) Service(name types.NamespacedName) *dnsview.Names {
	if e, found := z.services.get(name); found {
		return e.Names
	}
	return nil
}

// Update returns the Zone after a Change. Its cost does not depend on what stays as it is.
func (z *Zone) Update(c Change) *Zone {
	next := *z
	next.serial = c.Serial
	if c.Namespaces != nil {
		next.namespaces = make(map[string]struct{}, len(c.Namespaces))
		for _, namespace := range c.Namespaces {
			next.namespaces[namespace] = struct{}{}
		}
	}
	if len(c.Services)+len(c.Removed) == 0 {
		return &next
	}
	d := zoneDraft{z.services.edit(), z.clusterIPs.edit(), z.endpoints.edit()}
	for _, name := range c.Removed {
		d.replace(name, nil)
	}
	for _, svc := range c.Services {
		d.replace(svc.Service, newEntry(svc))
	}
	next.services, next.clusterIPs, next.endpoints = d.services.sharded, d.clusterIPs.sharded, d.endpoints.sharded
	return &next
}

func newEntry(svc *dnsview.Names) *entry {
	e := &entry{Names: svc, name: svc.Service.Name + "." + svc.Service.Namespace + "." + serviceTree}
	for _, addr := range svc.ClusterIPs {
		e.clusterIPs = append(e.clusterIPs, dnsview.Endpoint{Addr: addr, Ports: svc.Ports})
	}
	e.byHostname = make([]int32, len(svc.Endpoints))
	for i := range e.byHostname {
		e.byHostname[i] = int32(i)
	}
	slices.SortStableFunc(e.byHostname, func(a, b int32) int { return strings.Compare(e.hostname(a), e.hostname(b)) })
	e.byAddr = slices.Clone(e.byHostname)
	slices.SortStableFunc(e.byAddr, func(a, b int32) int { return e.addr(a).Compare(e.addr(b)) })
	return e
}

func (e *entry) hostname(i int32) string { return e.Endpoints[i].Hostname }

func (e *entry) addr(i int32) netip.Addr { return e.Endpoints[i].Addr.Unmap() }

type zoneDraft struct {
	services   *draft[types.NamespacedName, *entry]
	clusterIPs *draft[netip.Addr, []*entry]
	endpoints  *draft[netip.Addr, []*entry]
}

// replace puts the new entry of a Service in the place of the old one; nil takes the Service out.
func (d zoneDraft) replace(name types.NamespacedName, e *entry) {
	if old, found := d.services.get(name); found {
		old.eachAddr(func(addrs *draft[netip.Addr, []*entry], addr netip.Addr) { takeOut(addrs, addr, old) }, d)
	}
	d.services.put(name, e, e != nil)
	if e != nil {
		e.eachAddr(func(addrs *draft[netip.Addr, []*entry], addr netip.Addr) { insert(addrs, addr, e) }, d)
	}
}

// eachAddr calls f for each address of a Service, with the index that it belongs in. One that many
// endpoints have is one address.
func (e *entry) eachAddr(f func(*draft[netip.Addr, []*entry], netip.Addr), d zoneDraft) {
	for _, addr := range e.ClusterIPs {
		f(d.clusterIPs, addr.Unmap())
	}
	for n, i := range e.byAddr {
		if addr := e.addr(i); n == 0 || addr != e.addr(e.byAddr[n-1]) {
			f(d.endpoints, addr)
		}
	}
}

// insert adds a Service in its place, to a copy of those of an address.
func insert(d *draft[netip.Addr, []*entry], addr netip.Addr, e *entry) {
	all, _ := d.get(addr)
	i, found := slices.BinarySearchFunc(all, e, compareEntries)
	if !found {
		d.put(addr, slices.Concat(all[:i], []*entry{e}, all[i:]), true)
	}
}

// takeOut takes a Service out of a copy of those of an address.
func takeOut(d *draft[netip.Addr, []*entry], addr netip.Addr, e *entry) {
	all, _ := d.get(addr)
	if i, found := slices.BinarySearchFunc(all, e, compareEntries); found {
		d.put(addr, slices.Concat(all[:i], all[i+1:]), len(all) > 1)
	}
}

func compareEntries(a, b *entry) int {
	return cmp.Or(strings.Compare(a.Service.Namespace, b.Service.Namespace), strings.Compare(a.Service.Name, b.Service.Name))
}
