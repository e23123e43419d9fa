package netfilter

import (
	"slices"
	"strings"
)

// The fixed chains, named as kube-proxy names them; see Naming.
const (
	ChainServices         = "KUBE-SERVICES"          // filter, nat
	ChainExternalServices = "KUBE-EXTERNAL-SERVICES" // filter
	ChainForward          = "KUBE-FORWARD"           // filter
	ChainNodePorts        = "KUBE-NODEPORTS"         // filter, nat
	ChainProxyFirewall    = "KUBE-PROXY-FIREWALL"    // filter
	ChainPostrouting      = "KUBE-POSTROUTING"       // nat
	ChainMarkMasq         = "KUBE-MARK-MASQ"         // nat

	// Those of IPVS mode.
	ChainIPVSChains = "KUBE-IPVS-CHAINS" // nat: what a virtual server cannot express
	ChainIPVSFilter = "KUBE-IPVS-FILTER" // filter: rejects unknown ports of a virtual server's address

	// ChainTry, in nat, exists while the kernel is probed for IPVS mode. Nothing leads to it.
	ChainTry = "KUBE-IPVS-TRY"

	// ChainScratch, in filter and nat, exists while rules are tried: see scratch.go of
	// rules/iptables.
	ChainScratch = "KUBE-SCRATCH"

	// ChainLocalDNS, in filter and nat, leads queries to the DNS server on this node: see
	// rules.LocalDNS.
	ChainLocalDNS = "KUBE-LOCAL-DNS"

	// ChainFirewall, in filter, belongs to the kubelet too. While loopback addresses are routed,
	// its rule keeps neighbours from reaching what listens there (CVE-2020-8558).
	ChainFirewall = "KUBE-FIREWALL"

	// ChainProxyCanary is how kube-proxy notices a flushed table. We never write it, because we
	// read the kernel back, but cleaning up after kube-proxy removes it.
	ChainProxyCanary = "KUBE-PROXY-CANARY"
)

// Those that only kube-proxy's IPVS mode has.
const (
	chainIPVSNodePort         = "KUBE-NODE-PORT"              // filter, nat
	chainLoadBalancer         = "KUBE-LOAD-BALANCER"          // nat
	chainSourceRangesFirewall = "KUBE-SOURCE-RANGES-FIREWALL" // filter
	chainIPVSOutFilter        = "KUBE-IPVS-OUT-FILTER"        // filter
)

// Name prefixes of the chains that belong to one Service, all in nat.
const (
	PrefixCluster  = "KUBE-SVC-" // endpoints under traffic policy Cluster
	PrefixLocal    = "KUBE-SVL-" // endpoints under traffic policy Local
	PrefixExternal = "KUBE-EXT-" // entry for external Frontends
	PrefixFirewall = "KUBE-FW-"  // source ranges
	PrefixEndpoint = "KUBE-SEP-" // one endpoint
)

var servicePrefixes = [...]string{PrefixCluster, PrefixLocal, PrefixExternal, PrefixFirewall, PrefixEndpoint}

// isServiceProxys decides Naming.IsOurs for a chain, given by kube-proxy's name for it.
func isServiceProxys(t Table, chain string) bool {
	switch chain {
	case ChainProxyCanary:
		return t != Other
	case ChainServices, ChainNodePorts, chainIPVSNodePort, ChainScratch, ChainLocalDNS:
		return t == Filter || t == NAT
	case ChainExternalServices, ChainForward, ChainProxyFirewall,
		ChainIPVSFilter, chainIPVSOutFilter, chainSourceRangesFirewall:
		return t == Filter
	case ChainPostrouting, ChainMarkMasq, ChainIPVSChains, chainLoadBalancer, ChainTry:
		return t == NAT
	default:
		return isServices(t, chain)
	}
}

// isServices decides Naming.IsServiceChain for a chain, given by kube-proxy's name for it.
func isServices(t Table, chain string) bool {
	return t == NAT && slices.ContainsFunc(servicePrefixes[:], func(prefix string) bool { return strings.HasPrefix(chain, prefix) })
}

var builtInChains = [...]string{"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"}

// BuiltInChains returns the kernel's own chains, in the order in which a packet may pass them.
func BuiltInChains() []string { return slices.Clone(builtInChains[:]) }

// IsBuiltIn reports whether the kernel provides the chain: it has a policy and cannot be created or
// deleted.
func IsBuiltIn(chain string) bool { return slices.Contains(builtInChains[:], chain) }
