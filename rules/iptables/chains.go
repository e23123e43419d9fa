package iptables

import "strings"

// The fixed chains, named as kube-proxy names them; see Naming.
const (
	chainServices         = "KUBE-SERVICES"          // filter, nat
	chainExternalServices = "KUBE-EXTERNAL-SERVICES" // filter
	chainForward          = "KUBE-FORWARD"           // filter
	chainNodePorts        = "KUBE-NODEPORTS"         // filter, nat
	chainProxyFirewall    = "KUBE-PROXY-FIREWALL"    // filter
	chainPostrouting      = "KUBE-POSTROUTING"       // nat
	chainMarkMasq         = "KUBE-MARK-MASQ"         // nat

	// Those of IPVS mode.
	chainIPVSChains = "KUBE-IPVS-CHAINS" // nat: what a virtual server cannot say
	chainIPVSFilter = "KUBE-IPVS-FILTER" // filter: what is at a virtual server's address, and no server

	// ChainTry, in nat, is there while the kernel is probed for IPVS mode. Nothing leads to it.
	ChainTry = "KUBE-IPVS-TRY"

	// chainScratch, in filter and nat, is there while rules are tried: see scratch.go.
	chainScratch = "KUBE-SCRATCH"

	// chainFirewall, in filter, is the kubelet's too. Its one rule keeps neighbours from
	// reaching what listens on loopback while loopback addresses are routed (CVE-2020-8558).
	chainFirewall = "KUBE-FIREWALL"

	// chainProxyCanary is how kube-proxy notices a flushed table. We read the kernel
	// back instead and never write it, but cleaning up after kube-proxy removes it.
	chainProxyCanary = "KUBE-PROXY-CANARY"
)

// Those that only kube-proxy's IPVS mode has.
const (
	chainNodePort             = "KUBE-NODE-PORT"              // filter, nat
	chainLoadBalancer         = "KUBE-LOAD-BALANCER"          // nat
	chainSourceRangesFirewall = "KUBE-SOURCE-RANGES-FIREWALL" // filter
	chainIPVSOutFilter        = "KUBE-IPVS-OUT-FILTER"        // filter
)

// Name prefixes of the chains that belong to one Service, all in nat.
const (
	prefixCluster  = "KUBE-SVC-" // endpoints under traffic policy Cluster
	prefixLocal    = "KUBE-SVL-" // endpoints under traffic policy Local
	prefixExternal = "KUBE-EXT-" // entry for external Frontends
	prefixFirewall = "KUBE-FW-"  // source ranges
	prefixEndpoint = "KUBE-SEP-" // one endpoint
)

// servicePrefixes are all of them.
var servicePrefixes = [...]string{prefixCluster, prefixLocal, prefixExternal, prefixFirewall, prefixEndpoint}

// The kernel's packet counters, named as kube-proxy names them.
const (
	acctInvalidDropped    = "ct_state_invalid_dropped_pkts"
	acctLocalhostAccepted = "localhost_nps_accepted_pkts"
)

// isServiceProxys is Naming.IsOurs of a chain as kube-proxy names it.
func isServiceProxys(t Table, chain string) bool {
	switch chain {
	case chainProxyCanary:
		return t != Other
	case chainServices, chainNodePorts, chainNodePort, chainScratch:
		return t == Filter || t == NAT
	case chainExternalServices, chainForward, chainProxyFirewall,
		chainIPVSFilter, chainIPVSOutFilter, chainSourceRangesFirewall:
		return t == Filter
	case chainPostrouting, chainMarkMasq, chainIPVSChains, chainLoadBalancer, ChainTry:
		return t == NAT
	default:
		return isServices(t, chain)
	}
}

// isServices is Naming.IsServiceChain of a chain as kube-proxy names it.
func isServices(t Table, chain string) bool {
	if t != NAT {
		return false
	}
	for _, prefix := range servicePrefixes {
		if strings.HasPrefix(chain, prefix) {
			return true
		}
	}
	return false
}

// isBuiltIn reports whether the kernel provides the chain: it has a policy and can be
// neither made nor deleted.
func isBuiltIn(chain string) bool {
	switch chain {
	case "PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING":
		return true
	default:
		return false
	}
}
