package trace

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

const (
	longestWalk = 1 << 20 // rules looked at, over all branches
	deepestWalk = 64      // jumps within jumps
)

// walk is one Trace in progress.
type walk struct {
	saved    *netfilter.Saved
	others   Others
	packet   Packet
	budget   int
	problems []string
}

// flow is the packet in one of its possible states.
type flow struct {
	dst        netip.AddrPort
	in         string
	mark       uint32
	translated bool
	ipvs       bool // IPVS has forwarded it
	masquerade bool
	verdict    netfilter.Target // TargetDrop or TargetReject: it has ended
	weight     weight
	path       *walkedPath
}

func (f flow) end() EndVerdict {
	switch f.verdict {
	case netfilter.TargetDrop:
		return Dropped
	case netfilter.TargetReject:
		return Rejected
	default:
		return Accepted
	}
}

// walkedPath is one matched rule, and those before it.
type walkedPath struct {
	before *walkedPath
	step   Step
}

func (s *walkedPath) steps() []Step {
	var all []Step
	for ; s != nil; s = s.before {
		all = append(all, s.step)
	}
	slices.Reverse(all)
	return all
}

// hook sends flows through a built-in chain; those that have ended skip it.
func (w *walk) hook(t netfilter.Table, chain string, flows []flow) []flow {
	var ended, live []flow
	for _, f := range flows {
		if f.verdict == netfilter.TargetNone {
			live = append(live, f)
		} else {
			ended = append(ended, f)
		}
	}
	c := w.saved.Table(t).Chain(chain)
	if c == nil || len(live) == 0 {
		return flows
	}
	through, done := w.chain(t, c, live, 0)
	if c.Policy == netfilter.TargetDrop {
		for i := range through {
			through[i].verdict = netfilter.TargetDrop
		}
	}
	return append(append(ended, through...), done...)
}

// chain walks the rules of a chain. Flows either come through, at its end or by RETURN, or are
// done with the table. After too many rules it notes a problem and returns none.
func (w *walk) chain(t netfilter.Table, c *netfilter.SavedChain, live []flow, depth int) (through, done []flow) {
	for i := range c.Rules {
		if len(live) == 0 {
			break
		}
		if w.budget -= len(live); w.budget < 0 {
			w.problem("the walk ends at %s %s: it looked at more than %d rules", t, c.Name, longestWalk)
			return nil, nil
		}
		if c.Rules[i].Foreign {
			w.problem("%s %s rule %d is not understood and taken as not matching: %s", t, c.Name, i+1, c.Rules[i].Text)
			continue
		}
		rule := &c.Rules[i].Rule
		if !slices.ContainsFunc(live, func(f flow) bool { return w.matches(rule, f) }) {
			continue
		}
		var next []flow
		for _, f := range live {
			if !w.matches(rule, f) {
				next = append(next, f)
				continue
			}
			taken, rest := f.branch(rule.Probability)
			next = append(next, rest...)
			taken.path = &walkedPath{before: f.path, step: Step{Table: t, Chain: c.Name, Rule: i, Text: c.Rules[i].Text}}
			on, returned, over := w.apply(t, rule, taken, depth)
			next = append(next, on...)
			through = append(through, returned...)
			done = append(done, over...)
		}
		live = next
	}
	return append(through, live...), done
}

// branch splits a flow by a rule's Probability into the one that the rule takes and the one
// that it does not; rest is nil if it takes every packet.
func (f flow) branch(p uint32) (taken flow, rest []flow) {
	if p == 0 || p == 1<<31 {
		return f, nil
	}
	passed := f
	f.weight = f.weight.times(p)
	passed.weight = passed.weight.times(1<<31 - p)
	return f, []flow{passed}
}

// apply executes a rule's target: the flow goes on in the chain, returns from it, or is done with
// the table.
func (w *walk) apply(t netfilter.Table, r *netfilter.Rule, f flow, depth int) (on, returned, done []flow) {
	switch r.Target {
	case netfilter.TargetJump:
		on, done = w.jump(t, r, f, depth)
		return on, nil, done
	case netfilter.TargetMark:
		f.mark = f.mark&^r.Set.Mask ^ r.Set.Value
		return []flow{f}, nil, nil
	case netfilter.TargetReturn:
		return nil, []flow{f}, nil
	case netfilter.TargetNone:
		return []flow{f}, nil, nil
	case netfilter.TargetDrop, netfilter.TargetReject:
		f.verdict = r.Target
	case netfilter.TargetDNAT:
		f.dst, f.translated = r.DNAT, true
	case netfilter.TargetMasquerade:
		f.masquerade = true
	}
	return nil, nil, []flow{f}
}

func (w *walk) jump(t netfilter.Table, r *netfilter.Rule, f flow, depth int) (on, done []flow) {
	c := w.saved.Table(t).Chain(r.Jump)
	switch {
	case c == nil:
		w.problem("%s %s is jumped to but is not there", t, r.Jump)
		return []flow{f}, nil
	case depth == deepestWalk:
		w.problem("%s %s is reached by more than %d jumps within each other", t, r.Jump, deepestWalk)
		return nil, nil
	}
	return w.chain(t, c, []flow{f}, depth+1)
}

func (w *walk) problem(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(w.problems, text) {
		w.problems = append(w.problems, text)
	}
}

// matches reports whether a flow meets every match of a rule except a random one.
func (w *walk) matches(r *netfilter.Rule, f flow) bool {
	p := &w.packet
	switch {
	case r.Proto != netfilter.AnyProto && r.Proto != p.Proto,
		r.DstPort != 0 && r.DstPort != f.dst.Port(),
		r.Dst.IsValid() && r.Dst.Contains(f.dst.Addr()) == r.NotDst,
		r.Src.IsValid() && r.Src.Contains(p.Src) == r.NotSrc,
		r.InInterface != "" && interfaceMatches(r.InInterface, f.in) == r.NotInInterface,
		r.SrcLocal && !w.isLocal(p.Src),
		r.DstLocal && !w.isLocal(f.dst.Addr()),
		r.CTState != 0 && (r.CTState&f.ctState() != 0) == r.NotCTState,
		r.Mark != netfilter.Mark{} && (f.mark&r.Mark.Mask == r.Mark.Value) == r.NotMark,
		r.Recent.Op == netfilter.RecentCheck,
		r.IPVS && !f.ipvs:
		return false
	}
	return r.MatchSet == netfilter.SetMatch{} || w.inSet(r.MatchSet, f)
}

func interfaceMatches(pattern, name string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "+"); ok {
		return strings.HasPrefix(name, prefix)
	}
	return pattern == name
}

func (f flow) ctState() netfilter.CTState {
	if f.translated {
		return netfilter.CTNew | netfilter.CTDNAT
	}
	return netfilter.CTNew
}

// served hands flows to the virtual servers: one flow for each real server, all equally likely. A
// virtual server without real servers refuses. others are the flows that met no virtual server or
// have ended.
func (w *walk) served(flows []flow) (served, others []flow) {
	for _, f := range flows {
		endpoints, found := w.server(f)
		switch {
		case !found:
			others = append(others, f)
		case len(endpoints) == 0:
			f.verdict = netfilter.TargetReject
			others = append(others, f)
		default:
			f.ipvs = true
			f.weight = f.weight.among(len(endpoints))
			for _, e := range endpoints {
				f.dst = e
				served = append(served, f)
			}
		}
	}
	return served, others
}

func (w *walk) server(f flow) (endpoints []netip.AddrPort, found bool) {
	if w.others.Server == nil || f.verdict != netfilter.TargetNone {
		return nil, false
	}
	return w.others.Server(f.dst, w.packet.Proto)
}

func (w *walk) inSet(m netfilter.SetMatch, f flow) bool {
	if w.others.InSet == nil {
		w.problem("set %s is not known and taken as empty", m.Name)
		return false
	}
	return w.others.InSet(m, netip.AddrPortFrom(w.packet.Src, 0), f.dst, w.packet.Proto)
}
