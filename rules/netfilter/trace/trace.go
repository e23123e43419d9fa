// Package trace walks the first packet of a connection through the rules of package netfilter, past
// ipsets and virtual servers. It returns everything that can happen to the packet, with exact
// probabilities. It is pure. A rule that it does not understand is among the Problems of the
// Outcome.
package trace

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"gridproxy/rules/netfilter"
)

// Packet is the first packet of a connection.
type Packet struct {
	Src, Dst    netip.Addr
	Proto       netfilter.Proto
	DstPort     uint16
	InInterface string // through which it arrived; "" = FromNode or unknown

	FromNode bool         // sent by a process of the node itself
	Local    []netip.Addr // the node's own addresses; loopback ones are optional
}

// Outcome is where a Packet can end.
type Outcome struct {
	// Ends are everything that can happen, each once, sorted. Their P add up to 1. Elements are
	// comparable with ==.
	Ends []End
	// Paths are, for each of the Ends, the rules that a packet matched on its way: one way of
	// possibly many.
	Paths [][]Step
	// Problems say why the Ends cannot be trusted: a rule on the way that no Rule can express (it
	// is taken as not matching), a jump to a missing chain, or more rules than a walk may take.
	Problems []string
}

// End is one thing that can happen to a Packet.
type End struct {
	Verdict    EndVerdict
	Dst        netip.AddrPort // its last destination: after DNAT, if any
	Masquerade bool           // it leaves with the node's address
	P          Probability
}

// EndVerdict is how a walk ends.
type EndVerdict string

// The verdicts of a walk.
const (
	Accepted EndVerdict = "accept"
	Rejected EndVerdict = "reject"
	Dropped  EndVerdict = "drop"
)

// Probability is an exact fraction in lowest terms: "1", "715827883/2147483648".
type Probability string

// Step is one rule that a packet matched.
type Step struct {
	Table netfilter.Table
	Chain string
	Rule  int // from 0
	Text  string
}

// Trace walks a Packet through the tables: nat (PREROUTING or OUTPUT), routing, filter (INPUT,
// FORWARD or OUTPUT), nat POSTROUTING. What the node sends to itself then passes filter INPUT, as
// the kernel delivers it through lo. Tables raw, mangle and security, and nat INPUT, are ignored.
// For IPVS see Others.
//
// The connection is NEW, and DNAT once it is translated; no -m recent list has its source. Every
// random outcome is followed, with its exact probability.
func Trace(s netfilter.Saved, p Packet) Outcome { return With(s, Others{}, p) }

// Others are what a packet meets beside the tables. The zero value is nothing.
//
// What arrives for a virtual server meets IPVS after filter INPUT, still with the server's address
// as its destination. It leaves through filter OUTPUT and nat POSTROUTING, or has arrived if the
// real server is the node itself. What the node sends meets IPVS between nat OUTPUT and filter
// OUTPUT. Nothing passes nat OUTPUT after IPVS.
type Others struct {
	// InSet reports whether an ipset has what m takes from a packet; nil: no set is known. The
	// source port is unknown.
	InSet func(m netfilter.SetMatch, src, dst netip.AddrPort, proto netfilter.Proto) bool
	// Server finds a virtual server of IPVS, and its real servers that take new connections; nil:
	// no virtual server exists.
	Server func(dst netip.AddrPort, proto netfilter.Proto) (endpoints []netip.AddrPort, found bool)
}

// With does what Trace does, with ipsets and virtual servers.
func With(s netfilter.Saved, o Others, p Packet) Outcome {
	w := walk{saved: &s, others: o, packet: p, budget: longestWalk}
	flows := []flow{{dst: netip.AddrPortFrom(p.Dst, p.DstPort), in: p.InInterface, weight: certain()}}
	if p.FromNode {
		return w.outcome(w.fromNode(flows))
	}
	return w.outcome(w.arriving(flows))
}

// arriving takes packets from the network through the hooks.
func (w *walk) arriving(flows []flow) []flow {
	local, others := w.routed(w.hook(netfilter.NAT, "PREROUTING", flows))
	served, ends := w.served(w.hook(netfilter.Filter, "INPUT", local))
	here, away := w.routed(served)
	for i := range away {
		away[i].in = "" // OUTPUT has no input interface
	}
	away = w.hook(netfilter.NAT, "POSTROUTING", w.hook(netfilter.Filter, "OUTPUT", away))
	others = w.hook(netfilter.NAT, "POSTROUTING", w.hook(netfilter.Filter, "FORWARD", others))
	return slices.Concat(ends, here, away, others)
}

// fromNode takes packets of the node's own processes through the hooks.
func (w *walk) fromNode(flows []flow) []flow {
	for i := range flows {
		flows[i].in = "" // none until lo delivers it
	}
	served, others := w.served(w.hook(netfilter.NAT, "OUTPUT", flows))
	flows = w.hook(netfilter.Filter, "OUTPUT", append(served, others...))
	local, ends := w.routed(w.hook(netfilter.NAT, "POSTROUTING", flows))
	for i := range local {
		local[i].in = "lo"
	}
	return append(ends, w.hook(netfilter.Filter, "INPUT", local)...)
}

// routed separates flows to the node itself from others.
func (w *walk) routed(flows []flow) (local, others []flow) {
	for _, f := range flows {
		if w.isLocal(f.dst.Addr()) {
			local = append(local, f)
		} else {
			others = append(others, f)
		}
	}
	return local, others
}

func (w *walk) isLocal(a netip.Addr) bool {
	return a.IsLoopback() || slices.Contains(w.packet.Local, a)
}

// outcome merges flows with the same end.
func (w *walk) outcome(flows []flow) Outcome {
	merged := map[End]flow{} // by End without P
	for _, f := range flows {
		end := End{Verdict: f.end(), Dst: f.dst, Masquerade: f.masquerade}
		if m, ok := merged[end]; ok {
			m.weight = m.weight.plus(f.weight)
			f = m
		}
		merged[end] = f
	}
	out := Outcome{Problems: w.problems}
	ends := slices.AppendSeq(make([]End, 0, len(merged)), maps.Keys(merged))
	slices.SortFunc(ends, compareEnds)
	for _, end := range ends {
		f := merged[end]
		end.P = f.weight.probability()
		out.Ends = append(out.Ends, end)
		out.Paths = append(out.Paths, f.path.steps())
	}
	return out
}

func compareEnds(a, b End) int {
	masquerade := 0
	if a.Masquerade != b.Masquerade {
		masquerade = 1
		if b.Masquerade {
			masquerade = -1
		}
	}
	return cmp.Or(cmp.Compare(a.Verdict, b.Verdict), a.Dst.Compare(b.Dst), masquerade)
}
