package render

import (
	"net/netip"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// Options are what rendering needs beside a Service. They are comparable: an equal Service with
// equal Options has equal rules.
type Options struct {
	Family        netfilter.Family
	MasqueradeBit uint8 // of the packet mark, 0..31; kube-proxy's default is 14
	RandomFully   bool  // MASQUERADE --random-fully: iptables 1.6.2 or newer
	DropInvalid   bool  // unless nf_conntrack_tcp_be_liberal is set
	NFAcct        bool  // the nfacct objects exist; never in the command render
	Names         netfilter.Naming
	IPVS          bool // the fixed chains of IPVS mode: entries of Services come after a match of SetChains

	// What this kernel lacks.
	WithoutRecent bool // xt_recent: Services have no affinity
	WithoutSCTP   bool // xt_sctp: SCTP to a Service's addresses is refused on all ports
	WithoutIPVS   bool // xt_ipvs, in IPVS mode: packets of this machine to itself are masqueraded too
	WithoutSet    bool // xt_set: there are no rules of LocalDNS

	// Settings of a Ruleset for all of its Services; For fills them in.
	Pods               PodMatch
	LocalhostNodePorts bool
	LocalDNS           netip.Addr // see rules.LocalDNS
	FewComments        bool       // rules about single endpoints have none, because there are over MaxCommented
}

// MaxCommented is how many endpoints have rules with comments, kube-proxy's threshold for a
// large cluster. The kernel stores a comment in 256 bytes and iptables-legacy rewrites all of a
// table for each change: with 10,000 endpoints that takes half as long again where all rules
// have one. Comments are never compared, so nothing is written again when the number is passed.
const MaxCommented = 1000

// The kernel's packet counters, named as kube-proxy names them.
const (
	AcctInvalidDropped    = "ct_state_invalid_dropped_pkts"
	AcctLocalhostAccepted = "localhost_nps_accepted_pkts"
)

// For returns o with the Ruleset's settings for all of its Services.
func (o Options) For(rs rules.Ruleset) Options {
	o.Pods = PodMatch{}
	switch {
	case rs.Local.Bridge != "":
		o.Pods.InInterface = rs.Local.Bridge
	case rs.Local.InterfacePrefix != "":
		o.Pods.InInterface = rs.Local.InterfacePrefix + "+"
	default:
		o.Pods.Prefix = rs.Local.Prefix(o.Family == netfilter.IPv6)
	}
	o.LocalhostNodePorts = rs.NodePorts.Localhost && o.Family == netfilter.IPv4
	if o.LocalDNS = (netip.Addr{}); !o.WithoutSet {
		o.LocalDNS = rs.LocalDNS.Addr(o.Family == netfilter.IPv6)
	}
	o.FewComments = moreEndpoints(rs.Services, MaxCommented)
	return o
}

// serviceChain returns the name of the nat chain with the Services' entries.
func (o Options) serviceChain() string {
	if o.IPVS {
		return o.Names.Chain(netfilter.ChainIPVSChains)
	}
	return o.Names.Chain(netfilter.ChainServices)
}

// LacksMatch reports whether the kernel cannot match packets to this Service by their port.
func (o Options) LacksMatch(s *rules.Service) bool {
	return o.WithoutSCTP && netfilter.Proto(s.Name.IPProtocol()) == netfilter.SCTP
}

// moreEndpoints reports whether the Services have more endpoints than n. One of both families
// counts once, and one with two policies too.
func moreEndpoints(services []*rules.Service, n int) bool {
	for _, s := range services {
		largest := 0
		for _, set := range s.Sets {
			largest = max(largest, len(set.Endpoints))
		}
		if n -= largest; n < 0 {
			return true
		}
	}
	return false
}

// PodMatch matches packets of this node's Pods in one family, if it can tell them apart.
type PodMatch struct {
	Prefix      netip.Prefix // source
	InInterface string       // else: as Rule.InInterface
}
