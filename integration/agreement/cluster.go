package agreement

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// Cluster is everything that decides what one node must do: the objects of the API
// server, what the node itself remembers and has, and the operator's flags.
type Cluster struct {
	Seed, Number uint64 // what it was drawn from

	Node     string         // this node's name
	Nodes    []*corev1.Node // not always this node's own
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice

	LastKeys  map[types.UID][]string // by Service: the topology keys last read well
	HostAddrs []netip.Addr           // on the machine's interfaces, beside loopback

	Flags Flags
}

// Flags are the operator's, named and spelt as on the command line.
type Flags struct {
	NodesWithoutUnit   string   // closed, local, open
	MasqueradeAll      bool     // --masquerade-all
	LocalhostNodePorts bool     // --iptables-localhost-nodeports
	NodePortAddresses  []string // --nodeport-addresses: CIDRs and keywords
	DetectLocalMode    string   // --detect-local-mode
	ClusterCIDRs       []string // --cluster-cidr
	PodInterface       string   // --pod-bridge-interface or --pod-interface-name-prefix
	IPVSExclude        []string // --ipvs-exclude-cidrs
}

// The interfaces packets arrive through.
const (
	bridge    = "br0"   // of Pods, with detect-local mode BridgeInterface
	veths     = "veth"  // prefix of those of Pods, else
	podVeth   = "veth7" // one of them
	uplinkDev = "eth0"  // of everybody else
)

// self is this node's own object; nil while unknown.
func (c Cluster) self() *corev1.Node {
	i := slices.IndexFunc(c.Nodes, func(n *corev1.Node) bool { return n.Name == c.Node })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

// Manifests spells the Cluster as a person would need it to repeat a finding: the objects
// as YAML documents, the rest as a comment above them.
func (c Cluster) Manifests() string {
	var b strings.Builder
	fmt.Fprintf(&b, "# node %s, host addresses %v\n# flags %+v\n", c.Node, c.HostAddrs, c.Flags)
	for _, svc := range c.Services {
		if keys, found := c.LastKeys[svc.UID]; found {
			fmt.Fprintf(&b, "# last keys of %s/%s: %q\n", svc.Namespace, svc.Name, keys)
		}
	}
	for _, n := range c.Nodes {
		document(&b, n)
	}
	for _, s := range c.Services {
		document(&b, s)
	}
	for _, s := range c.Slices {
		document(&b, s)
	}
	return b.String()
}

func document(b *strings.Builder, object any) {
	text, err := yaml.Marshal(object)
	if err != nil {
		text = []byte(err.Error())
	}
	b.WriteString("---\n")
	b.Write(text)
}
