package topologytest

import (
	"gridproxy/topology"
	"gridproxy/topology/dnsview"
)

// Decided returns a DNSView with the names of v and no reasons for them.
func Decided(v dnsview.View) topology.DNSView {
	decided := topology.DNSView{Node: v.Node, Namespaces: v.Namespaces}
	for _, n := range v.Services {
		decided.Services = append(decided.Services, &topology.DNSService{Names: *n})
	}
	return decided
}
