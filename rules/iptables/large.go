package iptables

import (
	"context"
	"slices"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// chunks say how large Services are written: one whose change takes more than large chains comes
// behind the changes of all others, in chunks of so many chains.
type chunks struct{ large, size int }

// defaultChunks: a tenant who writes a Service with 1,000 ports and 100 endpoints makes
// 100,000 chains. iptables-nft-restore 1.8.9 takes 0.1 s for 1,000 chains, so a chunk takes
// about as long as others wait anyhow. iptables-legacy-restore copies the whole table each time,
// so its chunks are larger.
func defaultChunks(v netfilter.Variant) chunks {
	if v == netfilter.VariantLegacy {
		return chunks{large: 2_000, size: 20_000}
	}
	return chunks{large: 2_000, size: 5_000}
}

// endings say with which of its ports the last chunk of each large Service ended. The next chunk
// goes on behind it, so that the last ports of a Service that changes all the time are written too.
type endings map[types.NamespacedName]topology.ServicePortName

// towards is how far one chunk leads from one sorted list of Services to another: to the change of
// every Service that is not large, and of the large ones to whole ports, up to a budget of
// chains that they share evenly. A port that is left for later stays as it is in from, or is not
// there. left counts these ports. Of a budget above 0 each large Service gets one port at least.
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

// portsOfChunk are the ports of large Services that the next chunk changes, in order from where the
// last chunk ended: as many as a Service's share of chains allows, and one at least. A port that
// does not fit ends the chunk of its Service, so it comes first in the next.
func portsOfChunk(from, to []*rules.Service, f netfilter.Family, share int, large map[types.NamespacedName]bool, ended endings) (map[topology.ServicePortName]bool, endings) {
	taken, now := map[topology.ServicePortName]bool{}, endings{}
	spent, full := map[types.NamespacedName]int{}, map[types.NamespacedName]bool{}
	for _, around := range []bool{false, true} { // behind its last port a Service begins again
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

// largeServices are those whose change is large.
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

// nameOf is the name of a pair of which one may be nil.
func nameOf(a, b *rules.Service) topology.ServicePortName {
	if a != nil {
		return a.Name
	}
	return b.Name
}

// chainCost is about how many chains the change of a Service port writes at the most.
func chainCost(a, b *rules.Service, f netfilter.Family) int {
	return max(chainsOf(a, f), chainsOf(b, f))
}

// chainsOf is about how many chains a Service port has; 0 for nil.
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

// towards is want with the Services of the next chunk after what the kernel holds; see chunks.
func (k *familySyncer) towards(want desired, budget int) (step desired, left int, now endings) {
	step = want
	step.rules.Services, left, now = k.chunks.towards(k.last.rules.Services, want.rules.Services, want.options.Family, budget, k.ended)
	return step, left, now
}

// postpone takes out of the index the Service ports that are large and of which the kernel holds
// nothing, and returns what remains to be written at first. A large Service that the kernel
// holds already, as after a restart, is wanted at once: its chains are compared like any others,
// and none of them is stale.
func (ks *kernelState) postpone(w desired, p chunks) desired {
	large := p.largeServices(nil, w.rules.Services, w.options.Family)
	if len(large) == 0 {
		return w
	}
	first := w
	first.rules.Services = make([]*rules.Service, 0, len(w.rules.Services))
	var absent []Block
	for _, s := range w.rules.Services {
		if large[s.Name.NamespacedName] {
			if b := RenderService(s, w.options); ks.absent(b) {
				absent = append(absent, b)
				continue
			}
		}
		first.rules.Services = append(first.rules.Services, s)
	}
	for _, b := range absent {
		ks.leaveOut(b)
	}
	return first
}

// absent reports whether the kernel holds nothing of a Service port.
func (ks *kernelState) absent(b Block) bool {
	return !slices.ContainsFunc(b.Chains, func(c TableChain) bool { return ks.declared(c.id()) }) &&
		!slices.ContainsFunc(b.Entries, func(e Entry) bool {
			return e.Rule.NFAcct == "" && ks.chain(e.id()).missing[ks.hash(e.Rule)] == 0
		})
}

// leaveOut takes back that a Service port is wanted, of which the kernel holds nothing.
func (ks *kernelState) leaveOut(b Block) {
	for _, c := range b.Chains {
		delete(ks.at, c.id())
		ks.rules[c.Table] -= len(c.Rules)
	}
	for _, e := range b.Entries {
		if e.Rule.NFAcct != "" {
			ks.countersWanted--
			continue
		}
		ks.rules[e.Table]--
		missing, h := ks.chain(e.id()).missing, ks.hash(e.Rule)
		if missing[h]--; missing[h] <= 0 {
			delete(missing, h)
		}
	}
}

// dependenciesFirst puts the endpoints' chains of one Service port before those that lead to
// them, so that what a restore creates leads only to chains that it or an earlier one has
// created.
func dependenciesFirst(chains []TableChain, n netfilter.Naming) []TableChain {
	isEndpoint := func(c TableChain) int {
		if isEndpointChain(n, c.Name) {
			return 0
		}
		return 1
	}
	return slices.SortedStableFunc(slices.Values(chains), func(a, b TableChain) int { return isEndpoint(a) - isEndpoint(b) })
}

// isEndpointChain reports whether a chain leads to one endpoint of a Service.
func isEndpointChain(n netfilter.Naming, chain string) bool {
	return strings.HasPrefix(chain, n.Chain(netfilter.PrefixEndpoint))
}

// soon is in what time the next chunk is to be written: at once, but for what the caller puts
// first.
const soon = time.Nanosecond

// writeInChunks is write, but for large Services: those come when the kernel holds the changes
// of all others. If the keeper pauses, it writes one chunk of them and asks to be called again,
// so that changes of others that came meanwhile do not wait.
func (k *familySyncer) writeInChunks(ctx context.Context, want desired, verify bool, committed committedFunc) (rules.Changes, error) {
	first := want
	if k.last != nil { // else only the kernel can tell what it holds of them: see postpone
		first, _, _ = k.towards(want, 0)
	}
	total, err := k.write(ctx, first, verify, committed)
	for err == nil && !slices.Equal(k.last.rules.Services, want.rules.Services) {
		next, left, ended := k.towards(want, k.chunks.size)
		if !k.behind {
			k.log.Info("large Services are written in chunks, behind all others", "portsLeft", left)
		}
		k.behind = left > 0
		var c rules.Changes
		c, err = k.follow(ctx, next, committed)
		k.ended = ended
		total.Chains += c.Chains
		total.Rules += c.Rules
		total.Late = true
		if err == nil && left > 0 && k.pause {
			total.Again = soon
			break
		}
	}
	return total, err
}
