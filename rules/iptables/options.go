package iptables

import (
	"net/netip"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// Options are what spelling needs to know beyond a Service. They are comparable: an equal
// Service under equal Options is spelled equally.
type Options struct {
	Family        netfilter.Family
	MasqueradeBit uint8 // of the packet mark, 0..31; kube-proxy's default is 14
	RandomFully   bool  // MASQUERADE --random-fully: iptables 1.6.2 or newer
	DropInvalid   bool  // unless nf_conntrack_tcp_be_liberal is set
	NFAcct        bool  // the counters' kernel objects exist; never in render
	Names         netfilter.Naming
	IPVS          bool // the skeleton of IPVS mode: what a Service needs stands behind the set SetChains

	// What this kernel lacks.
	WithoutRecent bool // xt_recent: Services are served without affinity
	WithoutSCTP   bool // xt_sctp: SCTP to every address of a Service is refused, whatever its port

	withoutIPVSMatch bool // IPVS mode without -m ipvs, for tests where the kernel has none

	// What a Ruleset says for all of its Services; For fills it in.
	Pods               PodMatch
	LocalhostNodePorts bool
}

// For is o with what rs says for all of its Services.
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

// PodMatch is how packets of this node's Pods are matched in one family. The zero value
// is no way to tell.
type PodMatch struct {
	Prefix      netip.Prefix // source
	InInterface string       // else: as Rule.InInterface
}
