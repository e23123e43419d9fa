package ipvs

import (
	"net/netip"
	"reflect"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// Config is what the operator and the kernel decide about virtual servers.
type Config struct {
	Scheduler string         // as ipvsadm(8) names it; "" = DefaultScheduler
	Exclude   []netip.Prefix // addresses on which there is never a virtual server of ours
	Lacks     []string       // schedulers of Services that the kernel lacks: Scheduler takes their place
	Refused   []ServerKey    // virtual servers that the kernel refused, sorted: chains take their place
	Retire    bool           // chains serve everything: there are no virtual servers

	// Families are those in use; nil = both. The other ones have no virtual servers, no addresses
	// and no set entries. What their chains hold is not decided here.
	Families []netfilter.Family
}

// Compiler remembers what each Service came to. The zero value is ready for use. One goroutine uses
// it.
type Compiler struct {
	facts    facts
	taken    []rules.ClaimKey // see rules.Ruleset.NodePortsTaken
	plans    []*servicePlan
	residual int // how many Services the last Residual had
}

// Compiled is a Ruleset in IPVS mode, split between virtual servers and the chains of the iptables
// backend.
type Compiled struct {
	plans    []*servicePlan // one for each Service, sorted by its Name; equal pointers are equal plans
	Residual rules.Ruleset  // for the chains; a Service whose chains did not change keeps its pointer
}

// servicePlan is how one Service is served. It is never changed.
type servicePlan struct {
	service  *rules.Service
	residual *rules.Service // what is left to the chains
	server   Server         // what its virtual servers are like
	slots    []serverSlot
}

// facts are what the plan of every Service depends on beside the Service itself. Compiler compares
// them, so they hold everything that splitter reads, and nothing else. What only a few Services
// depend on is compared elsewhere: see changedNodePorts.
type facts struct {
	config     Config
	nodePorts  rules.NodePortScope
	host       []netip.Addr   // sorted
	networks   []netip.Prefix // of the machine's interfaces
	apiServers []netip.AddrPort
}

// newFacts returns what plans depend on, without the machine's loopback and link-local IPv6
// addresses: no server is ever on them, and each new Pod brings one.
func newFacts(rs rules.Ruleset, cfg Config) facts {
	f := facts{config: cfg, nodePorts: rs.NodePorts, networks: rs.HostNetworks, apiServers: rs.APIServers}
	f.nodePorts.IPv6.Addrs = withoutPrivate6(rs.NodePorts.IPv6.Addrs)
	f.host = withoutPrivate6(rs.HostAddrs)
	return f
}

// withoutPrivate6 returns addrs without loopback and link-local IPv6 addresses. It returns nil
// if nothing is left: to reflect.DeepEqual, an empty slice would be another fact.
func withoutPrivate6(addrs []netip.Addr) []netip.Addr {
	var rest []netip.Addr
	for _, a := range addrs {
		if !isPrivate6(a) {
			rest = append(rest, a)
		}
	}
	return rest
}

func isPrivate6(a netip.Addr) bool { return a.Is6() && (a.IsLoopback() || a.IsLinkLocalUnicast()) }

// Compile splits a Ruleset. Services that did not change cost a comparison of pointers.
func (c *Compiler) Compile(rs rules.Ruleset, cfg Config) Compiled {
	f := newFacts(rs, cfg)
	same := reflect.DeepEqual(f, c.facts)
	changed := changedNodePorts(c.taken, rs.NodePortsTaken)
	c.facts, c.taken = f, rs.NodePortsTaken
	split := splitter{facts: f, taken: rs.NodePortsTaken}
	out := Compiled{plans: make([]*servicePlan, len(rs.Services)), Residual: rs}
	out.Residual.Services = make([]*rules.Service, 0, c.residual)
	old := c.plans
	for i, s := range rs.Services {
		for len(old) > 0 && old[0].service != s && topology.CompareNames(old[0].service.Name, s.Name) < 0 {
			old = old[1:]
		}
		var before *servicePlan
		if len(old) > 0 && (old[0].service == s || old[0].service.Name == s.Name) {
			before, old = old[0], old[1:]
		}
		plan := before
		if !same || before == nil || before.service != s || changed.concern(s) {
			plan = split.service(s)
			if before != nil && reflect.DeepEqual(plan.residual, before.residual) {
				plan.residual = before.residual // the backend of the chains sees that nothing changed
			}
		}
		out.plans[i] = plan
		if plan.residual != nil {
			out.Residual.Services = append(out.Residual.Services, plan.residual)
		}
	}
	c.plans, c.residual = out.plans, len(out.Residual.Services)
	return out
}

// nodePortSet holds NodePorts by the ClaimKey of their Frontend. Its address is the unspecified
// one.
type nodePortSet map[rules.ClaimKey]struct{}

// changedNodePorts returns the NodePorts that answer on an address in only one of two states.
// Any tenant can change that with an external IP, so no other Service may be split again for it.
func changedNodePorts(before, now []rules.ClaimKey) nodePortSet {
	changed := nodePortSet{}
	differ := func(some, others []rules.ClaimKey) {
		for _, key := range some {
			if _, both := slices.BinarySearchFunc(others, key, rules.ClaimKey.Compare); !both {
				key.Addr = netip.AddrPortFrom(rules.FamilyOf(key.Addr.Addr()).Unspecified(), key.Addr.Port())
				changed[key] = struct{}{}
			}
		}
	}
	differ(before, now)
	differ(now, before)
	return changed
}

// concern reports whether a Service has one of the NodePorts.
func (n nodePortSet) concern(s *rules.Service) bool {
	return len(n) > 0 && slices.ContainsFunc(s.Frontends, func(f rules.Frontend) bool {
		return f.Kind == rules.NodePort && has(n, rules.ClaimKey{Addr: f.Addr, Protocol: s.Name.IPProtocol()})
	})
}

// State returns what all Services together need of the kernel beside chains.
func (c Compiled) State() State {
	d := newDesiredServers()
	d.update(c.plans, touched{})
	return d.state()
}
