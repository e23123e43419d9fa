package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/cmd/table"
	"gridproxy/topology"
	"gridproxy/topology/dnsview"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/types"
)

// DNSQuestion is a name in a question to DNS.
type DNSQuestion struct {
	text string     // the whole name, or the address
	name string     // relative to the cluster domain
	addr netip.Addr // whose names are asked for instead; invalid = none is
}

// ParseDNSQuestion reads a name below the cluster domain, which may be left out; or a name below
// in-addr.arpa or ip6.arpa; or an address, which stands for such a name.
func ParseDNSQuestion(text, domain string) (DNSQuestion, error) {
	name := strings.ToLower(strings.TrimSuffix(text, "."))
	if addr, err := netip.ParseAddr(name); err == nil && addr.Zone() == "" {
		return DNSQuestion{text: name, addr: addr.Unmap()}, nil
	}
	if strings.HasSuffix(name, ".arpa") {
		addr, ok := parseReverse(name)
		if !ok {
			return DNSQuestion{}, fmt.Errorf("%s spells no address: want a name such as 1.0.0.10.in-addr.arpa, or the address", excerpt.Quoted(text))
		}
		return DNSQuestion{text: name, addr: addr}, nil
	}
	if name == domain {
		return DNSQuestion{text: name}, nil
	}
	relative, found := strings.CutSuffix(name, "."+domain)
	last := relative[strings.LastIndexByte(relative, '.')+1:]
	if !found && last != "svc" && last != "pod" {
		return DNSQuestion{}, fmt.Errorf("%s is no name of the cluster: want one below %s, such as web.default.svc.%s; --cluster-domain names the domain",
			excerpt.Quoted(text), domain, domain)
	}
	return DNSQuestion{text: relative + "." + domain, name: relative}, nil
}

// parseReverse returns the address that a name below in-addr.arpa or ip6.arpa spells.
func parseReverse(name string) (addr netip.Addr, ok bool) {
	text, is4 := strings.CutSuffix(name, ".in-addr.arpa")
	text, is6 := strings.CutSuffix(text, ".ip6.arpa")
	labels := strings.Split(text, ".")
	slices.Reverse(labels)
	switch {
	case is4 && len(labels) == 4:
		text = strings.Join(labels, ".")
	case is6 && len(labels) == 32:
		var groups []string
		for group := range slices.Chunk(labels, 4) {
			groups = append(groups, strings.Join(group, ""))
		}
		text = strings.Join(groups, ":")
	default:
		return netip.Addr{}, false
	}
	addr, err := netip.ParseAddr(text)
	return addr, err == nil && addr.Is4() == is4 && addr.Zone() == ""
}

// serviceOfName returns the Service of a relative name, or nil, and the labels before it.
func serviceOfName(view topology.DNSView, name string) (svc *topology.DNSService, before []string) {
	labels := strings.Split(name, ".")
	n := len(labels)
	if n < 3 || labels[n-1] != "svc" {
		return nil, nil
	}
	of := types.NamespacedName{Namespace: labels[n-2], Name: labels[n-3]}
	i, found := slices.BinarySearchFunc(view.Services, of, func(svc *topology.DNSService, name types.NamespacedName) int {
		return topology.CompareServices(svc.Service, name)
	})
	if !found {
		return nil, nil
	}
	return view.Services[i], labels[:n-3]
}

// serviceOfAddr returns the first Service that has an address in a slice; nil = none has.
func serviceOfAddr(view topology.DNSView, addr netip.Addr) *topology.DNSService {
	hasAddr := func(e topology.SliceEndpoint) bool { return e.Addr == addr }
	lists := func(slice *topology.Slice) bool { return slices.ContainsFunc(slice.Endpoints, hasAddr) }
	i := slices.IndexFunc(view.Services, func(svc *topology.DNSService) bool { return slices.ContainsFunc(svc.Slices, lists) })
	if i < 0 {
		return nil
	}
	return view.Services[i]
}

// whyNoPort returns why the name of a port of a Service does not exist, and which ports have names.
func whyNoPort(svc *topology.DNSService) string {
	lists, owner := [][]dnsview.Port{svc.Ports}, "it has"
	switch {
	case svc.Kind == dnsview.ExternalName:
		return "a Service of type ExternalName has no ports"
	case svc.Kind == dnsview.ClusterIP && len(svc.ClusterIPs) == 0:
		return "the Service has no cluster IP"
	case svc.Kind == dnsview.Headless && len(svc.Endpoints) == 0:
		return "no endpoint of the Service has a name here"
	case svc.Kind == dnsview.Headless:
		lists, owner = listsOf(svc.Endpoints), "its EndpointSlices have"
	}
	named, unnamed := map[string]bool{}, map[string]bool{}
	for _, p := range slices.Concat(lists...) {
		switch {
		case p.Name != "":
			named[strings.ToLower("_"+p.Name+"._"+p.Protocol)] = true
		case p.Number > 0:
			unnamed[fmt.Sprintf("%d/%s", p.Number, p.Protocol)] = true
		}
	}
	var all []string
	if len(named) > 0 {
		all = append(all, table.List(slices.Sorted(maps.Keys(named))))
	}
	if len(unnamed) > 0 {
		all = append(all, table.List(slices.Sorted(maps.Keys(unnamed)))+" without a name")
	}
	return excerpt.Message("no port has this name and protocol; " + owner + " " + cmp.Or(strings.Join(all, ", and "), "no ports"))
}

// listsOf returns the lists of ports that endpoints share, each once.
func listsOf(endpoints []dnsview.Endpoint) (lists [][]dnsview.Port) {
	seen := map[*dnsview.Port]bool{}
	for i := range endpoints {
		if ports := endpoints[i].Ports; len(ports) > 0 && !seen[&ports[0]] {
			seen[&ports[0]], lists = true, append(lists, ports)
		}
	}
	return lists
}
