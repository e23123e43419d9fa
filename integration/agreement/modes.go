package agreement

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// modes are the two ways in which gridproxy spells what it enforces for one Cluster.
type modes struct {
	cluster Cluster
	ruleset rules.Ruleset
	exclude []netip.Prefix // --ipvs-exclude-cidrs

	chains [2]netfilter.Saved // iptables mode, by family

	state    ipvs.State         // IPVS mode: both families,
	skeleton [2]netfilter.Saved // and beside it, by family
	residual rules.Ruleset      // what the skeleton was made of

	facts facts
}

func spellModes(c Cluster, o render.Options) (*modes, error) {
	m := &modes{cluster: c, exclude: prefixes(c.Flags.IPVSExclude), ruleset: compile(c, hostOf(c), topology.Resolve)}
	var err error
	if m.chains, err = spellChains(m.ruleset, o); err != nil {
		return nil, fmt.Errorf("spelling iptables mode: %w", err)
	}
	m.facts = newFacts(m)
	return m, m.spellIPVS(m.ruleset, o)
}

// spellIPVS spells a Ruleset as IPVS mode: the Cluster's own, or what a test puts in its
// place.
func (m *modes) spellIPVS(rs rules.Ruleset, o render.Options) error {
	var compiler ipvs.Compiler
	compiled := compiler.Compile(rs, ipvs.Config{Scheduler: "rr", Exclude: m.exclude})
	m.state, m.residual = compiled.State(), compiled.Residual
	o.IPVS = true
	var err error
	if m.skeleton, err = spellChains(compiled.Residual, o); err != nil {
		return fmt.Errorf("spelling IPVS mode: %w", err)
	}
	return nil
}

// spellChains is what a kernel that takes the rules would print.
func spellChains(rs rules.Ruleset, o render.Options) ([2]netfilter.Saved, error) {
	var all [2]netfilter.Saved
	for family := range all {
		o.Family = netfilter.Family(family)
		var b bytes.Buffer
		if _, err := render.Ruleset(rs, o).WriteTo(&b); err != nil {
			return all, fmt.Errorf("writing rules: %w", err)
		}
		var err error
		if all[family], err = netfilter.Parse(&b, o.Family); err != nil {
			return all, fmt.Errorf("reading rules: %w", err)
		}
	}
	return all, nil
}

// hostOf is the machine as gridproxy would read it.
func hostOf(c Cluster) topology.Host {
	addrs := append([]netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}, c.HostAddrs...)
	slices.SortFunc(addrs, netip.Addr.Compare)
	return topology.Host{Addrs: addrs, IPv4: true, IPv6: true}
}
