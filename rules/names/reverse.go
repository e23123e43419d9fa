package names

import (
	"net/netip"
	"sort"
)

// Reverse returns the names of an address, each with the cluster domain: that of the Service with
// this cluster IP, else those of the endpoints with this address. If two Services claim a cluster
// IP, the one whose namespace and name sort first has it.
func (z *Zone) Reverse(addr netip.Addr) []string {
	addr = addr.Unmap()
	if claims, found := z.clusterIPs.get(addr); found {
		return []string{claims[0].name + "." + z.config.Domain}
	}
	var names []string
	for all, _ := z.endpoints.get(addr); len(all) > 0 && len(names) < recordsMax; {
		namespace, start := all[0].Service.Namespace, len(names)
		end := sort.Search(len(all), func(i int) bool { return all[i].Service.Namespace > namespace })
		for _, e := range all[:end] {
			if len(names) == start+namesOfNamespaceMax {
				break
			}
			names = e.appendNames(names, start+namesOfNamespaceMax, addr, z.config.Domain)
		}
		all = all[end:]
	}
	return names
}

// appendNames appends the names that the endpoints of a Service give an address, until there are
// limit names. Endpoints of one hostname are one name.
func (e *entry) appendNames(names []string, limit int, addr netip.Addr, domain string) []string {
	first := sort.Search(len(e.byAddr), func(n int) bool { return e.addr(e.byAddr[n]).Compare(addr) >= 0 })
	previous := ""
	for n, i := range e.byAddr[first:] {
		hostname := e.hostname(i)
		if len(names) >= limit || n >= stepsMax || e.addr(i) != addr {
			break
		}
		if n == 0 || hostname != previous {
			names = append(names, hostname+"."+e.name+"."+domain)
		}
		previous = hostname
	}
	return names
}
