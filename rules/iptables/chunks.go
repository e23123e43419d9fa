package iptables

import (
	"context"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// chunks say how large Services are written. A Service is large if its change takes more than large
// chains. It is written after all others, in chunks of size chains.
type chunks struct{ large, size int }

// defaultChunks returns bounds for how long others wait for a tenant's Service with 1,000 ports
// and 100 endpoints, which has 100,000 chains. iptables-nft-restore 1.8.9 takes 0.1 s for 1,000
// chains, so a chunk takes no longer than usual. iptables-legacy-restore copies the whole table
// each time, so its chunks are larger.
func defaultChunks(v netfilter.Variant) chunks {
	if v == netfilter.VariantLegacy {
		return chunks{large: 2_000, size: 20_000}
	}
	return chunks{large: 2_000, size: 5_000}
}

// endings say with which port the last chunk of each large Service ended. The next chunk continues
// after it, so that the last ports of a Service that changes all the time are written too.
type endings map[types.NamespacedName]topology.ServicePortName

// towards returns the Services after the next chunk from one sorted list to another. It
// includes the change of every Service that is not large. The large ones share a budget of
// chains evenly, in whole ports. A port that is left for later stays as it is in from, or
// absent. left counts these ports; now is what the next call gets as ended. With a budget above
// 0 each large Service gets at least one port.
func (p chunks) towards(from, to []*rules.Service, f netfilter.Family, budget int, ended endings) (step []*rules.Service, left int, now endings) {
	large := p.largeServices(from, to, f)
	if len(large) == 0 {
		return to, 0, nil
	}
	taken, now := portsOfChunk(from, to, f, budget/len(large), large, ended)
	step = make([]*rules.Service, 0, len(to))
	for a, b := range pairs(from, to) {
		if a != b && large[nameOf(a, b).NamespacedName] && (budget <= 0 || !taken[nameOf(a, b)]) {
			b, left = a, left+1
		}
		if b != nil {
			step = append(step, b)
		}
	}
	return step, left, now
}

// portsOfChunk returns the ports of large Services that the next chunk changes, in order from
// the end of the last one: as many as a Service's share of chains allows, and at least one. A
// port that does not fit ends the chunk of its Service, so it comes first in the next.
func portsOfChunk(
	from, to []*rules.Service, f netfilter.Family, share int, large map[types.NamespacedName]bool, ended endings,
) (taken map[topology.ServicePortName]bool, now endings) {
	taken, now = map[topology.ServicePortName]bool{}, endings{}
	spent, full := map[types.NamespacedName]int{}, map[types.NamespacedName]bool{}
	for _, around := range []bool{false, true} { // after its last port a Service starts over
		for a, b := range pairs(from, to) {
			port := nameOf(a, b)
			name := port.NamespacedName
			last, known := ended[name]
			if a == b || !large[name] || full[name] || around != (known && topology.CompareNames(port, last) <= 0) {
				continue
			}
			cost := chainCost(a, b, f)
			if spent[name] > 0 && spent[name]+cost > share {
				full[name] = true
				continue
			}
			spent[name] += cost
			taken[port], now[name] = true, port
		}
	}
	return taken, now
}

func (p chunks) largeServices(from, to []*rules.Service, f netfilter.Family) map[types.NamespacedName]bool {
	costs, large := map[types.NamespacedName]int{}, map[types.NamespacedName]bool{}
	for a, b := range pairs(from, to) {
		if a != b {
			name := nameOf(a, b).NamespacedName
			if costs[name] += chainCost(a, b, f); costs[name] > p.large {
				large[name] = true
			}
		}
	}
	return large
}

// nameOf returns the name of a pair. One of the two may be nil.
func nameOf(a, b *rules.Service) topology.ServicePortName {
	if a != nil {
		return a.Name
	}
	return b.Name
}

// chainCost estimates the most chains that the change of a Service port writes.
func chainCost(a, b *rules.Service, f netfilter.Family) int {
	return max(chainsOf(a, f), chainsOf(b, f))
}

// chainsOf estimates how many chains a Service port has; 0 for nil.
func chainsOf(s *rules.Service, f netfilter.Family) int {
	if s == nil {
		return 0
	}
	n := 1
	for _, set := range s.Sets {
		if len(set.Endpoints) > 0 && set.Endpoints[0].Addr().Is6() == (f == netfilter.IPv6) {
			n += 1 + len(set.Endpoints)
		}
	}
	return n
}

// towards returns want with the Services after the next chunk; see chunks.towards.
func (k *familySyncer) towards(want render.Desired, budget int) (step render.Desired, left int, now endings) {
	step = want
	step.Rules.Services, left, now = k.chunks.towards(k.last.Rules.Services, want.Rules.Services, want.Options.Family, budget, k.ended)
	return step, left, now
}

// postpone removes from the desired state the large Service ports that the kernel does not hold
// at all, and returns the rest. A large Service that the kernel holds already, as after a
// restart, stays desired: its chains are compared like any others, so that none of them is
// stale.
func (ks *kernelState) postpone(w render.Desired, p chunks) render.Desired {
	large := p.largeServices(nil, w.Rules.Services, w.Options.Family)
	if len(large) == 0 {
		return w
	}
	first := w
	first.Rules.Services = make([]*rules.Service, 0, len(w.Rules.Services))
	var absent []render.Block
	for _, s := range w.Rules.Services {
		if large[s.Name.NamespacedName] {
			if b := render.Service(s, w.Options); ks.absent(b) {
				absent = append(absent, b)
				continue
			}
		}
		first.Rules.Services = append(first.Rules.Services, s)
	}
	for _, b := range absent {
		ks.leaveOut(b)
	}
	return first
}

// absent reports whether the kernel holds nothing of a Service port.
func (ks *kernelState) absent(b render.Block) bool {
	return !slices.ContainsFunc(b.Chains, func(c render.TableChain) bool { return ks.declared(c.ID()) }) &&
		!slices.ContainsFunc(b.Entries, func(e render.Entry) bool {
			return e.Rule.NFAcct == "" && ks.chain(e.ID()).missing[ks.hash(e.Rule)] == 0
		})
}

// leaveOut reverts want for a Service port that is absent from the kernel.
func (ks *kernelState) leaveOut(b render.Block) {
	for _, c := range b.Chains {
		delete(ks.at, c.ID())
		ks.rules[c.Table] -= len(c.Rules)
	}
	for _, e := range b.Entries {
		if e.Rule.NFAcct != "" {
			ks.countersWanted--
			continue
		}
		ks.rules[e.Table]--
		missing, h := ks.chain(e.ID()).missing, ks.hash(e.Rule)
		if missing[h]--; missing[h] <= 0 {
			delete(missing, h)
		}
	}
}

// writeLarge writes what is left of want in chunks, after c. With pause it writes one chunk and
// asks to be called again, so that newer changes of others do not wait.
func (k *familySyncer) writeLarge(ctx context.Context, want render.Desired, c rules.Changes) (rules.Changes, error) {
	for !holdsServices(k.last, want) {
		next, left, ended := k.towards(want, k.chunks.size)
		if !k.behind {
			k.log.Info("writing large Services in chunks, after all others", "portsLeft", left)
		}
		k.behind = left > 0
		chunk, err := k.follow(ctx, next)
		k.ended = ended
		c.Chains += chunk.Chains
		c.Rules += chunk.Rules
		c.Late = true
		if err != nil {
			return c, err
		}
		if left > 0 && k.pause {
			c.Again = chunkDelay
			return c, nil
		}
	}
	return c, nil
}
