package dnsfeed

import (
	"fmt"
	"net/netip"

	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// Hello is what the daemon says first.
type Hello struct {
	Version int    `cbor:"1,keyasint"`
	Node    string `cbor:"2,keyasint"`
	Domain  string `cbor:"3,keyasint"` // --cluster-domain
	Service string `cbor:"4,keyasint"` // --dns-service, NAMESPACE/NAME
}

// Report is what the DNS server says of itself.
type Report struct {
	Generation uint64           `cbor:"1,keyasint"`           // of the last update that it answers from
	Serving    []netip.AddrPort `cbor:"2,keyasint,omitempty"` // where it answers
	// Answered has the counts of each of Serving, in its order. A server that does not count has none.
	Answered []Answered `cbor:"3,keyasint,omitempty"`
}

// Answered counts the queries at one address that were answered since the server started. An answer
// that says that the server has failed, or refuses, does not count.
type Answered struct {
	UDP uint64 `cbor:"1,keyasint,omitempty"`
	TCP uint64 `cbor:"2,keyasint,omitempty"`
}

// The parts of an update. wireName, wirePort and wireAlias each convert to a type with the same
// fields.
type (
	wireName struct {
		Namespace string `cbor:"1,keyasint"`
		Name      string `cbor:"2,keyasint"`
	}
	wireService struct {
		Name         wireName       `cbor:"1,keyasint"`
		Kind         string         `cbor:"2,keyasint"`
		ClusterIPs   []netip.Addr   `cbor:"3,keyasint,omitempty"`
		ExternalName string         `cbor:"4,keyasint,omitempty"`
		Ports        []wirePort     `cbor:"5,keyasint,omitempty"`
		PortSets     [][]wirePort   `cbor:"6,keyasint,omitempty"` // each once, as many endpoints have the same ports
		Endpoints    []wireEndpoint `cbor:"7,keyasint,omitempty"`
		Aliases      []wireAlias    `cbor:"8,keyasint,omitempty"`
		// More means that the next frame has further endpoints and aliases of this Service.
		More bool `cbor:"9,keyasint,omitempty"`
	}
	wirePort struct {
		Name     string `cbor:"1,keyasint,omitempty"`
		Protocol string `cbor:"2,keyasint,omitempty"`
		Number   int32  `cbor:"3,keyasint,omitempty"`
	}
	wireEndpoint struct {
		Hostname string     `cbor:"1,keyasint"`
		Addr     netip.Addr `cbor:"2,keyasint"`
		Node     string     `cbor:"3,keyasint,omitempty"`
		Ports    int        `cbor:"4,keyasint,omitempty"` // index in PortSets
	}
	wireAlias struct {
		Alias    string `cbor:"1,keyasint"`
		Hostname string `cbor:"2,keyasint"`
	}
	wireRemoved struct {
		Names []wireName `cbor:"1,keyasint"`
	}
	wireNamespaces struct {
		Names []string `cbor:"1,keyasint"`
	}
	wireCommit struct {
		Generation    uint64     `cbor:"1,keyasint"`
		Whole         bool       `cbor:"2,keyasint,omitempty"`
		NewNamespaces bool       `cbor:"3,keyasint,omitempty"`
		Later         []wireName `cbor:"4,keyasint,omitempty"`
	}
)

func encodeNames(all []types.NamespacedName) (out []wireName) {
	for _, n := range all {
		out = append(out, wireName(n))
	}
	return out
}

func decodeNames(all []wireName) (out []types.NamespacedName) {
	for _, n := range all {
		out = append(out, types.NamespacedName(n))
	}
	return out
}

func newWirePorts(all []dnsview.Port) (out []wirePort) {
	for _, p := range all[:min(len(all), portsMax)] {
		out = append(out, wirePort(p))
	}
	return out
}

func dnsPorts(all []wirePort) (out []dnsview.Port) {
	for _, p := range all {
		out = append(out, dnsview.Port(p))
	}
	return out
}

// add appends a frame's endpoints and aliases. An invalid endpoint is an ErrMalformed.
func (w wireService) add(to *dnsview.Names) error {
	sets := make([][]dnsview.Port, len(w.PortSets))
	for i, set := range w.PortSets {
		sets[i] = dnsPorts(set)
	}
	for _, e := range w.Endpoints {
		if e.Ports < 0 || e.Ports >= len(sets) || !e.Addr.IsValid() {
			return fmt.Errorf("%w: an endpoint of Service %s/%s", ErrMalformed, w.Name.Namespace, w.Name.Name)
		}
		to.Endpoints = append(to.Endpoints, dnsview.Endpoint{Hostname: e.Hostname, Addr: e.Addr, Node: e.Node, Ports: sets[e.Ports]})
	}
	for _, a := range w.Aliases {
		to.Aliases = append(to.Aliases, dnsview.Alias(a))
	}
	return nil
}

// service returns a Service from its first part, without what add takes from each part.
func (w wireService) service() *dnsview.Names {
	return &dnsview.Names{
		Service: types.NamespacedName(w.Name), Kind: dnsview.Kind(w.Kind), ClusterIPs: w.ClusterIPs, ExternalName: w.ExternalName, Ports: dnsPorts(w.Ports),
	}
}
