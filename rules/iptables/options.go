package iptables

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
	NFAcct        bool  // the nfacct objects exist; never in render
	Names         netfilter.Naming
	IPVS          bool // the fixed chains of IPVS mode: entries of Services come after a match of SetChains

	// What this kernel lacks.
	WithoutRecent bool // xt_recent: Services have no affinity
	WithoutSCTP   bool // xt_sctp: SCTP to a Service's addresses is refused on all ports
	WithoutIPVS   bool // xt_ipvs, in IPVS mode: packets of this machine to itself are masqueraded too

	// Settings of a Ruleset for all of its Services; For fills them in.
	Pods               PodMatch
	LocalhostNodePorts bool
}

// For is o with the Ruleset's settings for all of its Services.
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
	return o
}

// PodMatch matches packets of this node's Pods in one family, if it can tell them apart.
type PodMatch struct {
	Prefix      netip.Prefix // source
	InInterface string       // else: as Rule.InInterface
}
