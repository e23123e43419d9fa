// Package trace walks the first packet of a connection through the rules of package netfilter,
// past ipsets and virtual servers, and says everything that can happen to it, with exact
// probabilities. It is pure, and it trusts nothing that it does not understand: such a rule is
// among the Problems of the Outcome.
package trace

import (
	"cmp"
	"math/big"
	"net/netip"
	"slices"

	"gridproxy/rules/netfilter"
)

// Packet is the first packet of a connection.
type Packet struct {
	Src, Dst    netip.Addr
	Proto       netfilter.Proto
	DstPort     uint16
	InInterface string // through which it arrived; "" = FromNode or not told

	FromNode bool         // a process of the node itself sends it
	Local    []netip.Addr // the node's own addresses; loopback ones need not be in it
}

// Outcome is where a Packet can end.
type Outcome struct {
	// Ends are all that can happen, each once, sorted. Their P add up to 1. Comparable
	// element by element with ==.
	Ends []End
	// Paths are, for each of the Ends, the rules that a packet matched on its way there:
	// one way of possibly many.
	Paths [][]Step
	// Problems say why the Ends cannot be trusted: a rule on the way that no Rule can
	// say (it is taken as not matching), a jump to a chain that is not there, or more
	// rules than a walk may take.
	Problems []string
}

// End is one thing that can happen to a Packet.
type End struct {
	Verdict    EndVerdict
	Dst        netip.AddrPort // where it was going last: behind DNAT, if it met one
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

// Float is the nearest float64.
func (p Probability) Float() float64 {
	r, ok := new(big.Rat).SetString(string(p))
	if !ok {
		return 0
	}
	f, _ := r.Float64()
	return f
}

// Step is one rule that a packet matched.
type Step struct {
	Table netfilter.Table
	Chain string
	Rule  int // from 0
	Text  string
}

// Trace walks a Packet through the tables: nat (PREROUTING or OUTPUT), routing, filter
// (INPUT, FORWARD or OUTPUT), nat POSTROUTING. What the node sends to itself passes
// filter INPUT after that, as the kernel delivers it through lo. Tables raw, mangle and
// security, and nat INPUT, are not looked at. Where IPVS stands is said at Others.
//
// The connection is NEW, and DNAT once it is translated; no -m recent list has its source.
// With probabilities, all that can happen is followed, each with its exact probability.
func Trace(s netfilter.Saved, p Packet) Outcome { return With(s, Others{}, p) }

// Others are what a packet meets beside the tables. The zero value is nothing.
//
// What arrives for a virtual server meets IPVS behind filter INPUT, still with the server's
// address as its destination, and leaves through filter OUTPUT and nat POSTROUTING; where
// the real server is the node itself, it has arrived. What the node sends meets IPVS between
// nat OUTPUT and filter OUTPUT. Nothing meets nat OUTPUT behind IPVS.
type Others struct {
	// InSet reports whether an ipset has what m takes from a packet; nil: no set is known.
	// The port of src is not told.
	InSet func(m netfilter.SetMatch, src, dst netip.AddrPort, proto netfilter.Proto) bool
	// Server finds a virtual server of IPVS, and its real servers that take new connections;
	// nil: there is none.
	Server func(dst netip.AddrPort, proto netfilter.Proto) (endpoints []netip.AddrPort, found bool)
}

// With is Trace where there are ipsets and virtual servers too.
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
		away[i].in = "" // there is no such thing in OUTPUT
	}
	away = w.hook(netfilter.NAT, "POSTROUTING", w.hook(netfilter.Filter, "OUTPUT", away))
	others = w.hook(netfilter.NAT, "POSTROUTING", w.hook(netfilter.Filter, "FORWARD", others))
	return slices.Concat(ends, here, away, others)
}

// fromNode takes packets of the node's own processes through the hooks.
func (w *walk) fromNode(flows []flow) []flow {
	for i := range flows {
		flows[i].in = "" // there is no such thing until lo hands it back
	}
	served, others := w.served(w.hook(netfilter.NAT, "OUTPUT", flows))
	flows = w.hook(netfilter.Filter, "OUTPUT", append(served, others...))
	local, ends := w.routed(w.hook(netfilter.NAT, "POSTROUTING", flows))
	for i := range local {
		local[i].in = "lo"
	}
	return append(ends, w.hook(netfilter.Filter, "INPUT", local)...)
}

// routed tells flows to the node itself from others.
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

// outcome merges what ends alike.
func (w *walk) outcome(flows []flow) Outcome {
	type key struct {
		verdict    EndVerdict
		dst        netip.AddrPort
		masquerade bool
	}
	merged := map[key]flow{}
	for _, f := range flows {
		k := key{f.end(), f.dst, f.masquerade}
		if m, ok := merged[k]; ok {
			m.weight = m.weight.plus(f.weight)
			f = m
		}
		merged[k] = f
	}
	type ended struct {
		end  End
		path *step
	}
	all := make([]ended, 0, len(merged))
	for k, f := range merged {
		all = append(all, ended{End{k.verdict, k.dst, k.masquerade, f.weight.probability()}, f.path})
	}
	slices.SortFunc(all, func(a, b ended) int { return compareEnds(a.end, b.end) })
	out := Outcome{Problems: w.problems}
	for _, e := range all {
		out.Ends = append(out.Ends, e.end)
		out.Paths = append(out.Paths, e.path.steps())
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
