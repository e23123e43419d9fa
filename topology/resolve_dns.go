package topology

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/topology/dnsview"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
)

// ResolveDNS decides what DNS says about every Service to the clients of the Snapshot's node. The
// endpoints are closed as those of a ServicePort are. Then those count that are ready, as in
// CoreDNS, and whose address is ready by merge, as in rules. No other rule of kube-proxy counts: no
// hints, no traffic policies, no unusable addresses. Every Service has names, whatever
// LabelServiceProxyName says: that label is about rules. It reads only Slices with names.
//
// Under policy Ordered one key is in use for the Service as a whole, and not for each port: a name
// has no port.
func ResolveDNS(s Snapshot, c Config) DNSView {
	d := dnsInputs{observer: newObserver(s, c), children: newGridChildren(s.Grids), addrs: newAddrHolders(s.Services)}
	view := DNSView{Node: s.Node, Services: make([]*DNSService, len(s.Services)), Namespaces: s.Namespaces}
	byService := slicesByService(s.Slices, labelledService)
	for i, svc := range s.Services {
		view.Services[i] = d.resolve(svc, byService[NameOf(svc)], confine(svc, s.LastKeys[svc.UID]))
	}
	return view
}

// dnsInputs are what the decisions about all Services share.
type dnsInputs struct {
	observer
	children *gridChildren
	addrs    addrHolders
}

// resolve decides about one Service. It is a pure function of exactly what DNSMemo compares: change
// the one with the other.
func (d dnsInputs) resolve(svc *corev1.Service, own []*Slice, confined confinement) *DNSService {
	out := &DNSService{Names: dnsview.Names{Service: NameOf(svc), Kind: kindOfNames(svc)}}
	if out.Kind == dnsview.ExternalName {
		out.ExternalName, out.Warnings = externalName(svc)
		return out
	}
	out.Slices = own
	out.readPorts(svc)
	if out.Kind == dnsview.ClusterIP {
		out.readClusterIPs(svc, d.addrs)
	} else {
		out.Ignored = slices.Concat(keyWarnings(svc), misspelled(svc))
	}
	var lists portLists
	all := d.namedCandidates(own, &lists)
	var why verdict
	out.Closure, why = d.judge(confined, candidatesOf(all))
	var open []namedCandidate
	for _, e := range all {
		if reason := why.of(e.candidate); reason != "" {
			out.Closure.count(reason)
			continue
		}
		open = append(open, e)
	}
	refused := refusedAddrs(open)
	for _, e := range open {
		if e.Ready && !refused[e.Addr] {
			out.Endpoints = append(out.Endpoints, dnsview.Endpoint{Hostname: e.hostname, Addr: e.Addr.Addr(), Node: e.Node, Ports: e.ports})
		}
	}
	slices.SortFunc(out.Endpoints, compareDNSEndpoints)
	out.Endpoints = slices.CompactFunc(out.Endpoints, func(a, b dnsview.Endpoint) bool { return compareDNSEndpoints(a, b) == 0 })
	if out.Unnamed = max(0, len(out.Endpoints)-namedMax); out.Unnamed > 0 {
		out.Endpoints = slices.Clone(out.Endpoints[:namedMax])
	}
	out.Warnings = slices.Concat(out.Warnings, sliceWarnings(own), nameWarnings(own), lists.warnings)
	d.addAliases(out, confined.keys, open)
	return out
}

func kindOfNames(svc *corev1.Service) dnsview.Kind {
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return dnsview.ExternalName
	case clusterIPsOf(svc)[0] == corev1.ClusterIPNone:
		return dnsview.Headless
	default:
		return dnsview.ClusterIP
	}
}

// externalName returns the name that a Service is an alias of; "" with a warning = it is not a
// DNS name.
func externalName(svc *corev1.Service) (name string, warnings []string) {
	name = strings.TrimSuffix(svc.Spec.ExternalName, ".")
	if isHostName(name) {
		return name, nil
	}
	return "", []string{fmt.Sprintf("externalName %s is not a DNS name; the Service has no records", excerpt.Quoted(svc.Spec.ExternalName))}
}

// isHostName reports whether a text can be the target of a CNAME record. An IP address cannot.
func isHostName(name string) bool {
	const longest = 253
	if _, err := netip.ParseAddr(name); err == nil || len(name) > longest {
		return false
	}
	for label := range strings.SplitSeq(name, ".") {
		if len(label) < 1 || len(label) > 63 {
			return false
		}
		if strings.ContainsFunc(label, func(r rune) bool { return !isAlphanumeric(r) && r != '-' && r != '_' }) {
			return false
		}
	}
	return true
}

func (s *DNSService) readPorts(svc *corev1.Service) {
	var left ignored
	for _, p := range svc.Spec.Ports {
		if !ValidPort(p.Port) {
			left.add(fmt.Errorf("%s: %d %s", excerpt.Quoted(p.Name), p.Port, wantPort))
			continue
		}
		s.Ports = append(s.Ports, dnsview.Port{Name: p.Name, Protocol: string(cmp.Or(p.Protocol, corev1.ProtocolTCP)), Number: p.Port})
	}
	s.Warnings = append(s.Warnings, left.warning("port")...)
}

func (s *DNSService) readClusterIPs(svc *corev1.Service, holders addrHolders) {
	var left ignored
	for _, text := range clusterIPsOf(svc) {
		if text == "" {
			continue // not allocated yet
		}
		addr, err := ParseAddr(text)
		if err != nil {
			left.add(err)
			continue
		}
		if holder := holders.holder(addr); holder != svc {
			left.add(fmt.Errorf("%s is that of Service %s too, which is older or sorts first by name", addr, NameOf(holder)))
			continue
		}
		s.ClusterIPs = append(s.ClusterIPs, addr)
	}
	s.Warnings = append(s.Warnings, left.warning("clusterIPs")...)
}

// nameWarnings returns warnings of what only DNS ignores of slices, all read with names.
func nameWarnings(own []*Slice) []string {
	var all ignoredNames
	for _, slice := range own {
		all.hostnames.merge(slice.names.ignored.hostnames)
		all.addresses.merge(slice.names.ignored.addresses)
		all.slices.merge(slice.names.ignored.slices)
	}
	return slices.Concat(all.hostnames.warning("host names of EndpointSlice"),
		all.addresses.warning("further addresses of EndpointSlice"), all.slices.warning("EndpointSlice"))
}

// namedCandidate is a candidate with what DNS says about it. A name is for all ports, so instead of
// one port it has the number of its list of ports.
type namedCandidate struct {
	candidate
	hostname string
	ports    []dnsview.Port
}

// namedCandidates returns the candidates of a Service as a whole, and adds their ports to
// lists. The port of each Addr is an index of lists.
func (o observer) namedCandidates(own []*Slice, lists *portLists) []namedCandidate {
	var all []namedCandidate
	add := func(e candidate, addr netip.Addr, hostname string, list int) {
		e.Addr = netip.AddrPortFrom(addr, uint16(list)) //nolint:gosec // at most dnsview.MaxPorts lists, and one without ports
		all = append(all, namedCandidate{e, cmp.Or(hostname, addrHostname(addr)), lists.all[list]})
	}
	for _, slice := range own {
		if o.probed.replaces(slice) {
			proxy := *slice.apiProxy
			name := ServicePortName{Port: "https", Protocol: corev1.ProtocolTCP}
			for _, e := range localAPIServer(name, proxy) {
				list := lists.number([]dnsview.Port{{Name: name.Port, Protocol: string(name.Protocol), Number: int32(proxy.Port())}})
				add(e, proxy.Addr(), "", list)
			}
			continue
		}
		list := lists.number(slice.dnsPorts())
		for i := range slice.Endpoints {
			add(newCandidate(o.node, &slice.Endpoints[i], 0), slice.Endpoints[i].Addr, slice.names.hostname(i), list)
		}
		for _, f := range slice.names.further {
			add(newCandidate(o.node, &slice.Endpoints[f.endpoint], 0), f.addr, slice.names.hostname(f.endpoint), list)
		}
	}
	return all
}

// portLists are the different lists of ports of a Service. Each frame of the feed repeats those of
// its endpoints, so together they have at most dnsview.MaxPorts ports.
type portLists struct {
	all      [][]dnsview.Port
	ports    int
	warnings []string // at most one
}

// number returns the index in l.all of a list, which it adds unless an equal one is there. If
// that makes too many ports, it notes a warning and returns the index of an empty list.
func (l *portLists) number(list []dnsview.Port) int {
	i := slices.IndexFunc(l.all, func(before []dnsview.Port) bool { return slices.Equal(before, list) })
	switch {
	case i >= 0:
		return i
	case l.ports+len(list) > dnsview.MaxPorts:
		l.warnings = []string{fmt.Sprintf("its EndpointSlices have more than %d different ports: endpoints of the last ones have no SRV records", dnsview.MaxPorts)}
		return l.number(nil)
	}
	l.all, l.ports = append(l.all, list), l.ports+len(list)
	return len(l.all) - 1
}

// refusedAddrs returns the addresses, with the index of a list of ports, that have no name,
// because merge leaves each of them to an endpoint that is not ready. An address that merge
// leaves to a ready endpoint has the host names of all that are ready: Pods of the Node's own
// network share it.
func refusedAddrs(open []namedCandidate) map[netip.AddrPort]bool {
	refused := map[netip.AddrPort]bool{}
	if !slices.ContainsFunc(open, func(e namedCandidate) bool { return e.Ready && e.Terminating }) {
		return refused // merge prefers each ready endpoint
	}
	for _, e := range merge(candidatesOf(open)) {
		if !e.Ready {
			refused[e.Addr] = true
		}
	}
	return refused
}

func candidatesOf(all []namedCandidate) []candidate {
	out := make([]candidate, len(all))
	for i := range all {
		out[i] = all[i].candidate
	}
	return out
}

// dnsPorts returns all ports of a slice, also those without a name or number.
func (s *Slice) dnsPorts() []dnsview.Port {
	ports := make([]dnsview.Port, 0, len(s.Ports)+len(s.names.ports))
	for _, p := range s.Ports {
		ports = append(ports, dnsview.Port{Name: p.Name, Protocol: string(p.Protocol), Number: int32(p.Number)})
	}
	return append(ports, s.names.ports...)
}

// addrHostname returns the name of an endpoint that has no host name, made of its address as
// CoreDNS makes it: dashes for dots and colons, and a 0 behind a dash at the end.
func addrHostname(addr netip.Addr) string {
	name := strings.NewReplacer(".", "-", ":", "-").Replace(addr.String())
	if strings.HasSuffix(name, "-") {
		return name + "0"
	}
	return name
}

// compareDNSEndpoints orders Endpoints by host name, address, node, and last by ports: cmp.Or
// would evaluate all of its arguments.
func compareDNSEndpoints(a, b dnsview.Endpoint) int {
	order := cmp.Or(cmp.Compare(a.Hostname, b.Hostname), a.Addr.Compare(b.Addr), cmp.Compare(a.Node, b.Node))
	if order != 0 {
		return order
	}
	return slices.CompareFunc(a.Ports, b.Ports, func(a, b dnsview.Port) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Number, b.Number))
	})
}
