package driver

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
)

// explainServers adds which addresses of a Service are virtual servers, and which are chains.
func explainServers(e *explain.Explanation, want rules.Ruleset, o options.Options) {
	s := compile(want, o).State()
	endpoints := map[ipvs.ServerKey][]string{}
	for d := range s.Destinations {
		endpoints[d.Server] = append(endpoints[d.Server], d.Addr.String())
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.Servers), compareKeys) {
		server := explain.Server{Address: key.String(), Scheduler: s.Servers[key].Scheduler, Endpoints: append([]string{}, endpoints[key]...)}
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
	slices.SortFunc(e.Chains, func(a, b explain.InChains) int { return cmp.Compare(a.Address, b.Address) })
}

func inChains(s ipvs.State, entry ipvs.Entry) explain.InChains {
	if !entry.Net.IsSingleIP() {
		return explain.InChains{Address: fmt.Sprintf("%s:%d/%s", entry.Net, entry.Port, entry.Proto), Packets: explain.AllPackets}
	}
	key := ipvs.ServerKey{Addr: netip.AddrPortFrom(entry.Net.Addr(), entry.Port), Proto: entry.Proto}
	if _, beside := s.Servers[key]; beside {
		return explain.InChains{Address: key.String(), Packets: explain.OwnPackets}
	}
	return explain.InChains{Address: key.String(), Packets: explain.AllPackets}
}

func compareKeys(a, b ipvs.ServerKey) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Proto, b.Proto))
}
