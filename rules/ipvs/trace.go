package ipvs

import (
	"maps"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
)

// Tracer walks packets through one State.
type Tracer struct {
	entries   map[Entry]struct{}
	lengths   map[string][]int // by set: the lengths of its networks
	endpoints map[ServerKey][]netip.AddrPort
	addresses map[netip.Addr]struct{}
	local     []netip.Addr // the addresses, sorted
}

// NewTracer prepares a State for walks. The State must not change as long as the Tracer is used.
func NewTracer(state State) *Tracer {
	t := &Tracer{
		entries: state.Entries, addresses: state.Addresses,
		lengths:   map[string][]int{},
		endpoints: make(map[ServerKey][]netip.AddrPort, len(state.Servers)),
		local:     slices.SortedFunc(maps.Keys(state.Addresses), netip.Addr.Compare),
	}
	for e := range state.Entries {
		if n := e.Net.Bits(); !slices.Contains(t.lengths[e.Set], n) {
			t.lengths[e.Set] = append(t.lengths[e.Set], n)
		}
	}
	for key := range state.Servers {
		t.endpoints[key] = nil
	}
	for key, d := range state.Destinations {
		if _, found := t.endpoints[key.Server]; found && d.Weight > 0 {
			t.endpoints[key.Server] = append(t.endpoints[key.Server], key.Addr)
		}
	}
	for _, endpoints := range t.endpoints {
		slices.SortFunc(endpoints, netip.AddrPort.Compare)
	}
	return t
}

// Trace walks the first packet of a connection through the tables of one family. The addresses
// of the link are the node's own beside p.Local. Every real server that takes new connections
// is equally likely, whatever the scheduler; no client has a real server of its own yet. A
// packet of the node's own without a source gets the one that the kernel chooses: to an address
// of the link, that very address.
//
// A walk knows nothing of what routing refuses: a source that cannot be, like an address of
// the link from outside, and, from a loopback address, a real server on another machine.
func (t *Tracer) Trace(tables netfilter.Saved, p trace.Packet) trace.Outcome {
	p.Local = slices.Concat(p.Local, t.local)
	if _, onLink := t.addresses[p.Dst]; onLink && p.FromNode && !p.Src.IsValid() {
		p.Src = p.Dst
	}
	return trace.With(tables, trace.Others{InSet: t.inSet, Server: t.server}, p)
}

func (t *Tracer) server(dst netip.AddrPort, proto netfilter.Proto) (endpoints []netip.AddrPort, found bool) {
	endpoints, found = t.endpoints[ServerKey{Addr: dst, Proto: proto}]
	return endpoints, found
}

// inSet reports whether a set has what m takes from a packet, as an entry of any length of
// network: the kernel does the same. How many fields a match has says which type of set it is
// for.
func (t *Tracer) inSet(m netfilter.SetMatch, src, dst netip.AddrPort, proto netfilter.Proto) bool {
	side := func(field string) netip.AddrPort {
		if field == "src" {
			return src
		}
		return dst
	}
	fields := strings.Split(m.Fields, ",")
	e := Entry{Set: m.Name}
	if len(fields) > 1 {
		e.Proto, e.Port = proto, side(fields[1]).Port()
	}
	if len(fields) > 2 {
		e.Peer = side(fields[2]).Addr()
	}
	for _, length := range t.lengths[m.Name] {
		network, err := side(fields[0]).Addr().Prefix(length)
		if err != nil {
			continue // of the other family
		}
		e.Net = network
		if _, found := t.entries[e]; found {
			return true
		}
	}
	return false
}
