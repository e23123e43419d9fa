package rules

import (
	"context"
	"net/netip"
	"reflect"
	"slices"
	"time"

	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Ruleset is what the node must enforce, both families together.
type Ruleset struct {
	// Services are sorted by Name and never changed in place, so a pointer identifies a
	// result: equal pointers in two Rulesets are equal Services.
	Services     []*Service
	NodePorts    NodePortScope
	HostAddrs    []netip.Addr     // every address of this machine, sorted
	HostNetworks []netip.Prefix   // those that an interface of this machine is in, sorted: see topology.Host
	APIServers   []netip.AddrPort // where API servers answer, sorted: no address that is to be made this machine's own
	Local        LocalDetector
	HealthChecks []HealthCheck // sorted by Service, family
	LocalDNS     LocalDNS

	AddressConflicts []AddressConflict // sorted by Service; of one, as its Frontends are

	// NodePortsTaken are the addresses of this machine on which a NodePort does not answer, because a
	// Frontend of another Kind has the address and port, of whichever Service; sorted.
	NodePortsTaken []ClaimKey
}

// Same reports whether two Rulesets are equal. Services are compared by their pointers.
func (r Ruleset) Same(o Ruleset) bool {
	if !slices.Equal(r.Services, o.Services) {
		return false
	}
	r.Services, o.Services = nil, nil
	return reflect.DeepEqual(r, o)
}

// Service is one port of one Service.
type Service struct {
	Name      topology.ServicePortName
	Created   time.Time     // of the Service object
	Affinity  time.Duration // ClientIP affinity timeout
	Scheduler string        // annotation superedge.io/ipvs-scheduler, unchecked; "" = the backend's own
	Closed    bool          // confined to a unit: see Reject
	Frontends []Frontend    // sorted by family, Kind, Addr
	Sets      []EndpointSet // what Route.Set counts in

	// Serving are the endpoints, of both families, whose UDP flows are left alone.
	Serving []netip.AddrPort
}

// EndpointSet is a set of endpoints of one family for one traffic policy.
type EndpointSet struct {
	Policy    TrafficPolicy
	Endpoints []netip.AddrPort // one family, never empty; sorted as strings "ip:port", as kube-proxy sorts
}

// TrafficPolicy is which endpoints a set holds.
type TrafficPolicy uint8

// The traffic policies of a Service.
const (
	Cluster TrafficPolicy = iota // any in the unit
	Local                        // those on this node
)

// Frontend is one address and port that clients of a Service connect to. A packet meets
// Allow first (non-empty and source outside: dropped), then the first Route whose From
// matches, then Verdict.
type Frontend struct {
	Addr    netip.AddrPort // NodePort: the unspecified address of its family
	Kind    Kind
	Allow   []netip.Prefix // source ranges; nil = everybody. Only LoadBalancer has any
	Routes  []Route
	Verdict Verdict // what happens where no Route matches
}

// AdmitsNobody reports whether a Frontend drops all clients, because no source range of its load
// balancer can be read.
func (f Frontend) AdmitsNobody() bool {
	return f.Kind == LoadBalancer && f.Verdict == Drop && len(f.Routes) == 0
}

// Kind is which field of a Service a Frontend comes from.
type Kind uint8

// The kinds of Frontend, in the order in which they are written.
const (
	ClusterIP Kind = iota
	ExternalIP
	LoadBalancer
	NodePort
)

// Route sends packets from some sources to a set of endpoints.
type Route struct {
	From       Source
	Set        int // index into Service.Sets
	Masquerade Masquerade
}

// Source is where a packet comes from.
type Source uint8

// The sources that a Route distinguishes.
const (
	Any  Source = iota // everywhere
	Pods               // this node's Pods, by the LocalDetector
	Node               // this node's own addresses
)

// Masquerade is whether a Route hides the client's address behind the node's. A packet from an
// endpoint to itself is always masqueraded (hairpin).
type Masquerade uint8

// The ways to masquerade.
const (
	None       Masquerade = iota
	OffCluster            // unless the source is a Pod of this node, by the LocalDetector
	Always
)

// Verdict is what happens to a packet that no Route takes.
type Verdict uint8

// The verdicts. Compile never returns Quarantine; only a backend uses it. Pass is never reached,
// because a Route from Any precedes it. Reject also rejects what this node itself sends, with one
// exception: a packet to an external address, not its own, of a Service that is not closed leaves
// the machine, as with kube-proxy.
const (
	Pass       Verdict = iota
	Reject             // rejected at once: the Service has no usable endpoint in the unit
	Drop               // dropped: endpoints exist, but none that this traffic policy allows
	Quarantine         // rejected at once: the kernel refuses the rules of the Service
)

// NodePortScope says on which addresses NodePorts answer.
type NodePortScope struct {
	IPv4, IPv6 ListenAddrs
	// Localhost says that NodePorts answer on IPv4 loopback too. Then, and only then, the
	// machine must route loopback addresses, behind the guard of KUBE-FIREWALL.
	Localhost bool
	// HealthLoopback are the loopback addresses that the operator listed and on which NodePorts do
	// not answer. Health-check node ports do, as kube-proxy's.
	HealthLoopback []netip.Addr
}

// ListenAddrs are the addresses of one family that NodePorts answer on. The zero value has no
// address.
type ListenAddrs struct {
	All   bool         // every local address of the machine, also one that it gets meanwhile
	Addrs []netip.Addr // these; with All, those it has now; sorted
}

// LocalDetector recognises packets from this node's Pods. The zero value detects nothing.
type LocalDetector struct {
	Prefixes        []netip.Prefix // source inside; at most one of each family
	Bridge          string         // else: arrived through this interface
	InterfacePrefix string         // else: arrived through an interface whose name starts so
}

// LocalDNS is how queries reach a DNS server on this node instead of the cluster's. Which ones do
// is decided outside of the rules, by the entries of an ipset (netfilter.SetLocalDNS), so that it
// takes effect at once, and ends automatically with the timeout of the entries. The zero value is
// none.
type LocalDNS struct {
	Addrs   []netip.Addr   // where the server answers, on port 53; at most one of each family
	Clients []netip.Prefix // who may ask it at that address, besides this machine: its own Pods
}

// PortDNS is where DNS servers answer.
const PortDNS = 53

// Addr returns the family's address, or the zero Addr if l has none.
func (l LocalDNS) Addr(ipv6 bool) netip.Addr { return firstOf(l.Addrs, ipv6) }

// HealthCheck is a health-check node port, one entry for each family of the Service.
type HealthCheck struct {
	Service    types.NamespacedName
	IPv6       bool
	Port       uint16
	LocalReady int // distinct addresses of ready endpoints on this node and in its unit
}

// Backend keeps a kernel mechanism equal to a Ruleset.
type Backend interface {
	// Sync makes the kernel equal to want. With verify it first reads the kernel back instead of
	// trusting what it wrote last, unless its Reading ends before. Long work may be left to the next
	// Sync, see Changes.Again.
	// Changes.Families reports each address family; the error is not nil if one of them failed.
	// Without verify, a family that failed before is not retried while another family can be
	// written: it fails with the same error.
	// After a Sync that returned no error, no Changes.Again and no Changes.Unguarded, an equal Ruleset
	// is only given again to verify.
	Sync(ctx context.Context, want Ruleset, verify bool) (Changes, error)
	// Cleanup removes everything that is ours and nothing else.
	Cleanup(ctx context.Context) error
}

// Changes counts what one Sync did.
type Changes struct {
	Chains   int  // chains or virtual servers written or removed
	Rules    int  // rules or real servers in what was written
	Repaired int  // of Chains, those that verify found different from what we had written
	Verified bool // the kernel was read back
	Late     bool // rules were written that may be of an earlier Ruleset: flows may follow those from before

	// Interrupted says that the kernel was to be read back, and was not in part or whole, because the
	// Reading had ended. What was not read is as the Sync before left it.
	Interrupted bool
	// VerifyTime is the processor time that verifying took, by this process and by the programs that
	// it ran: reading the kernel back, and trying again what it had refused. It is also that of a
	// verification that was interrupted.
	VerifyTime time.Duration

	// WriteTime is the processor time that writing took, likewise. Until the kernel was read back, it
	// says about what that will cost.
	WriteTime time.Duration

	// Again is in what time the Backend wants to be called although nothing changes, because
	// something that it began is not done; 0 = not at all.
	Again time.Duration

	// Families is the outcome of each address family. Callers apply With and the error of Sync.
	Families Outcomes

	// Unguarded says why the guard of NodePorts on loopback addresses is not in the kernel,
	// although the Ruleset serves them there. It is not a failure: nothing must route these
	// addresses, and everything else was written.
	Unguarded error
}
