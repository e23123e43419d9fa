package topology

import (
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Snapshot is everything a decision is taken from, whole at one moment. The objects it
// points to are shared with the source that made it and are never changed in place: an
// object that changed is another pointer. Nor are its lists and maps. Nodes is the same map while
// no label of any Node changes, and so are the labels of a Node.
type Snapshot struct {
	Node     string                 // this node's name
	Self     *corev1.Node           // this node's own object; nil while unknown
	Nodes    map[string]labels.Set  // known nodes by name, labels only; Watched says which may be missing
	Services []*corev1.Service      // sorted by namespace, name
	Slices   []*Slice               // sorted by namespace, name
	LastKeys map[types.UID][]string // by Service: the topology keys last parsed well
	Host     Host                   // what this machine itself says; never kept on disk

	// APIProxies says which of the node-local API proxies answer that Slices name; never kept on disk.
	APIProxies ProbedProxies

	// Saved is when this Snapshot was written to the disk that it was read from, because the source
	// cannot be read; zero = it is the source's.
	Saved time.Time

	// Watched are the topology keys by which Nodes was chosen: Nodes holds this node, and every
	// node that has this node's value of one of these keys. Any other node may be missing. nil =
	// no node is missing.
	Watched map[string]bool

	// Namespaces are those that exist, and Grids the StatefulSetGrids; both are sorted. Only
	// ResolveDNS reads them. nil Namespaces = names are not enabled.
	Namespaces []string
	Grids      []types.NamespacedName
}

// Host is what this machine says about itself, read at the time of the Snapshot.
type Host struct {
	Addrs []netip.Addr // every address of every interface, loopback included; sorted
	IPv4  bool         // the family is usable here
	IPv6  bool

	// Networks are those that an interface is in: masked, sorted, each once, without loopback,
	// link-local and single addresses. An address in one of them may be another machine's.
	Networks []netip.Prefix
}

// Config is what the operator decides about closure.
type Config struct {
	NodesWithoutUnit NodesWithoutUnit // "" = Closed

	// ServiceProxyName is the value of LabelServiceProxyName that makes a Service ours.
	// "": those without the label, as kube-proxy's.
	ServiceProxyName string
}

// NodesWithoutUnit is what a known node that carries none of a Service's topology keys
// gets of it. An unknown node gets nothing, whatever this says.
type NodesWithoutUnit string

// The values of --nodes-without-unit.
const (
	WithoutUnitClosed NodesWithoutUnit = "closed" // nothing, as SuperEdge
	WithoutUnitLocal  NodesWithoutUnit = "local"  // its own endpoints
	WithoutUnitOpen   NodesWithoutUnit = "open"   // every endpoint
)
