package netfilter

import "strings"

// The ipsets of IPVS mode, by their names in IPv4; see SetName. Sets that kube-proxy's IPVS mode
// also has get its names and types, so that they are taken over.
const (
	// SetClusterIP has the address, protocol and port of each virtual server whose clients are
	// masqueraded unless they are Pods of this node.
	SetClusterIP = "KUBE-CLUSTER-IP"
	// SetExternalIP has those whose clients are always masqueraded.
	SetExternalIP = "KUBE-EXTERNAL-IP"
	// SetExternalIPLocal has those whose clients keep their address.
	SetExternalIPLocal = "KUBE-EXTERNAL-IP-LOCAL"
	// SetLoopBack has each real server with its own address as the source: such a packet is
	// masqueraded (hairpin).
	SetLoopBack = "KUBE-LOOP-BACK"
	// SetIPVSIPs has the addresses of our link.
	SetIPVSIPs = "KUBE-IPVS-IPS"
	// SetChains has what KUBE-IPVS-CHAINS decides before IPVS does: network, protocol and port.
	SetChains = "KUBE-IPVS-CHAINS"
)

// SetLocalDNS has the addresses and ports at which queries meet the DNS server on this node, in any
// mode, by its name in IPv4. Its type is hash:ip,port.
const SetLocalDNS = "KUBE-LOCAL-DNS"

// SetTypes returns the types in ipset(8) of the sets of IPVS mode, by the sets' names in IPv4.
func SetTypes() map[string]string {
	return map[string]string{
		SetClusterIP:       "hash:ip,port",
		SetExternalIP:      "hash:ip,port",
		SetExternalIPLocal: "hash:ip,port",
		SetLoopBack:        "hash:ip,port,ip",
		SetIPVSIPs:         "hash:ip",
		SetChains:          "hash:net,port",
	}
}

// SetModule returns the kernel module of a type of set: ip_set_hash_ipport for hash:ip,port.
func SetModule(kind string) string {
	return "ip_set_" + strings.NewReplacer(":", "_", ",", "").Replace(kind)
}

// SetsOfKubeProxy returns the names in IPv4 of the sets that only kube-proxy's IPVS mode has.
// They are unused once no rule names them.
func SetsOfKubeProxy() []string {
	return []string{
		"KUBE-LOAD-BALANCER", "KUBE-LOAD-BALANCER-LOCAL", "KUBE-LOAD-BALANCER-FW",
		"KUBE-LOAD-BALANCER-SOURCE-CIDR", "KUBE-LOAD-BALANCER-SOURCE-IP",
		"KUBE-NODE-PORT-TCP", "KUBE-NODE-PORT-LOCAL-TCP",
		"KUBE-NODE-PORT-UDP", "KUBE-NODE-PORT-LOCAL-UDP",
		"KUBE-NODE-PORT-SCTP-HASH", "KUBE-NODE-PORT-LOCAL-SCTP-HASH",
		"KUBE-HEALTH-CHECK-NODE-PORT",
	}
}

// longestSetName is the kernel's limit for set names (IPSET_MAXNAMELEN minus one).
const longestSetName = 31

// SetName returns kube-proxy's name for a set in one family. name is the set's name in IPv4.
func SetName(f Family, name string) string {
	if f == IPv4 {
		return name
	}
	name = "KUBE-6-" + strings.TrimPrefix(name, "KUBE-")
	return name[:min(len(name), longestSetName)]
}
