package names

import (
	"net/netip"

	"gridproxy/topology/dnsview"
)

// defaultServer is the name of a server that is no Service, relative to the cluster domain.
const defaultServer = "ns.dns"

// NameServer is a server of the cluster domain: one of its names with one of its addresses.
type NameServer struct {
	Name string // relative to the cluster domain
	Addr netip.Addr
}

// NameServers returns the servers of the cluster domain: the cluster IPs of the Service, or its
// endpoints if it is headless. Without the Service they are the server's own addresses.
func (z *Zone) NameServers() []NameServer {
	e, found := z.services.get(z.config.NameServer)
	if !found || e.Kind == dnsview.ExternalName {
		return serversAt(defaultServer, z.config.ServerAddrs)
	}
	if e.Kind != dnsview.Headless {
		return serversAt(e.name, e.ClusterIPs)
	}
	var servers []NameServer
	for _, endpoint := range e.Endpoints[:min(len(e.Endpoints), recordsMax)] {
		servers = append(servers, NameServer{endpoint.Hostname + "." + e.name, endpoint.Addr.Unmap()})
	}
	return servers
}

func serversAt(name string, addrs []netip.Addr) []NameServer {
	servers := make([]NameServer, len(addrs))
	for i, addr := range addrs {
		servers[i] = NameServer{name, addr.Unmap()}
	}
	return servers
}
