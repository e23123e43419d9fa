package explain

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
)

// Server is one virtual server of the Service, in mode ipvs.
type Server struct {
	Address   string   `json:"address"` // ip:port/protocol
	Scheduler string   `json:"scheduler"`
	Affinity  string   `json:"affinity,omitempty"` // how long a client keeps its endpoint
	Endpoints []string `json:"endpoints"`          // none = it refuses
}

// InChains is what chains decide before any virtual server is asked, in mode ipvs.
type InChains struct {
	Address string `json:"address"` // ip:port/protocol, or network:port/protocol
	Packets string `json:"packets"` // which of them
}

const (
	allPackets = "all"
	ownPackets = "those of this node and its Pods; the virtual server has the others"
)

// AddServers says which addresses of the Service are virtual servers and which are written
// as chains. State is that of this Service alone.
func (e *Explanation) AddServers(s ipvs.State) {
	endpoints := map[ipvs.ServerKey][]string{}
	for d := range s.Destinations {
		endpoints[d.Server] = append(endpoints[d.Server], d.Addr.String())
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.Servers), compareServers) {
		server := Server{Address: key.String(), Scheduler: s.Servers[key].Scheduler, Endpoints: append([]string{}, endpoints[key]...)}
		slices.Sort(server.Endpoints)
		if affinity := s.Servers[key].Affinity; affinity > 0 {
			server.Affinity = affinity.String()
		}
		e.Servers = append(e.Servers, server)
	}
	for entry := range s.Entries {
		if entry.Set != netfilter.SetName(netfilter.IPv4, netfilter.SetChains) && entry.Set != netfilter.SetName(netfilter.IPv6, netfilter.SetChains) {
			continue
		}
		e.Chains = append(e.Chains, inChains(s, entry))
	}
	slices.SortFunc(e.Chains, func(a, b InChains) int { return cmp.Compare(a.Address, b.Address) })
}

func inChains(s ipvs.State, entry ipvs.Entry) InChains {
	if !entry.Net.IsSingleIP() {
		return InChains{Address: fmt.Sprintf("%s:%d/%s", entry.Net, entry.Port, entry.Proto), Packets: allPackets}
	}
	key := ipvs.ServerKey{Addr: netip.AddrPortFrom(entry.Net.Addr(), entry.Port), Proto: entry.Proto}
	if _, beside := s.Servers[key]; beside {
		return InChains{Address: key.String(), Packets: ownPackets}
	}
	return InChains{Address: key.String(), Packets: allPackets}
}

func compareServers(a, b ipvs.ServerKey) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Proto, b.Proto))
}
