package rules

import "net/netip"

// Config is what the operator decides about Services, named as kube-proxy's flags are.
type Config struct {
	MasqueradeAll      bool
	IgnoreExternalIPs  bool // kube-proxy's feature gate AllowServiceExternalIPs is false
	LocalhostNodePorts bool
	NodePortAddresses  NodePortAddresses
	DetectLocal        DetectLocal

	// APIServers are the addresses by which this process reaches its API servers, as far as they
	// are known. No external Frontend takes one of them.
	APIServers []netip.AddrPort

	// LocalDNS are the addresses of the DNS server on this node, at most one of each family. No
	// Service takes one of them.
	LocalDNS []netip.Addr
}

// NodePortAddresses is --nodeport-addresses. The zero value is every address. So is a family for
// which nothing is listed, also one in which Primary finds no address; but with Primary, such a
// family is no address while the Node object has none at all.
type NodePortAddresses struct {
	Primary  bool           // the node's own address of each family, as its Node object says
	Prefixes []netip.Prefix // and addresses inside these
}

// DetectLocal is --detect-local-mode with the flag that goes with it.
type DetectLocal struct {
	Mode            DetectLocalMode
	ClusterCIDRs    []netip.Prefix // ClusterCIDR: the first of each family counts
	Bridge          string         // BridgeInterface
	InterfacePrefix string         // InterfaceNamePrefix
}

// DetectLocalMode is how packets from Pods of this node are recognised.
type DetectLocalMode string

// The modes of kube-proxy. The zero value is ClusterCIDR.
const (
	DetectClusterCIDR         DetectLocalMode = "ClusterCIDR"
	DetectNodeCIDR            DetectLocalMode = "NodeCIDR"
	DetectBridgeInterface     DetectLocalMode = "BridgeInterface"
	DetectInterfaceNamePrefix DetectLocalMode = "InterfaceNamePrefix"
)
