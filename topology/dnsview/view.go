package dnsview

import (
	"cmp"
	"net/netip"

	"k8s.io/apimachinery/pkg/types"
)

// View is what DNS says about Services to the clients of one node.
type View struct {
	Node       string
	Services   []*Names // sorted by Compare; never changed in place, so a pointer identifies a result
	Namespaces []string // those that exist, sorted: a name in no namespace does not exist either
}

// Names is what DNS says about one Service.
type Names struct {
	Service      types.NamespacedName
	Kind         Kind
	ClusterIPs   []netip.Addr // in the order of the Service, none also of another one; ClusterIP only
	ExternalName string       // ExternalName only; "" = it is not valid, and the Service has no records
	Ports        []Port       // of the Service, in its order
	Endpoints    []Endpoint   // those that the node may use and that are ready, sorted
	Aliases      []Alias      // further names of Endpoints, sorted by Alias
}

// Compare orders Services by namespace and name.
func Compare(a, b *Names) int {
	return cmp.Or(cmp.Compare(a.Service.Namespace, b.Service.Namespace), cmp.Compare(a.Service.Name, b.Service.Name))
}

// Kind says which records a Service has.
type Kind string

// The kinds of a Service.
const (
	ClusterIP    Kind = "ClusterIP"    // its own name leads to its cluster IPs
	Headless     Kind = "Headless"     // its own name leads to its endpoints
	ExternalName Kind = "ExternalName" // its own name is an alias of one outside
)

// Port is a port in an SRV record.
type Port struct {
	Name     string
	Protocol string // TCP, UDP or SCTP
	Number   int32  // NoPort = an EndpointSlice gives none: there is no SRV record
}

// MaxPorts is how many ports of a Service have SRV records, and how many ports the different lists
// of its endpoints have together. No answer has more records.
const MaxPorts = 4000

// NoPort is the number of a Port without number.
const NoPort = -1

// Endpoint is an address behind a Service.
type Endpoint struct {
	Hostname string // one DNS label, in lower case: the endpoint's own, or one made of the address
	Addr     netip.Addr
	Node     string // name of the node it runs on
	Ports    []Port // of its EndpointSlice; none = it has addresses, and no SRV record
}

// Alias is a name that is the same in every unit: "<grid>-<ordinal>" for this unit's Pod of a
// StatefulSetGrid.
type Alias struct {
	Alias    string // one DNS label
	Hostname string // of some Endpoints
}
