package explain

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Subject is a Service on a node, and how it is closed there.
type Subject struct {
	Service   string   `json:"service"` // namespace/name
	Node      string   `json:"node"`
	NodeKnown bool     `json:"nodeKnown"` // the source has a Node object for it
	Unit      string   `json:"unit"`      // the node's unit under Keys, "key=value"
	Closed    bool     `json:"closed"`
	Keys      []string `json:"keys"`
	Policy    string   `json:"policy"`
	Malformed string   `json:"malformed,omitempty"` // why the annotations cannot be parsed
	OwnOnly   bool     `json:"ownOnly,omitempty"`   // confined to this node's own endpoints
}

// Explanation is how one node serves one Service.
type Explanation struct {
	Subject
	State string   `json:"state,omitempty"` // the saved state that it is from; "" = the present source
	Notes []string `json:"notes,omitempty"`
	Ports []Port   `json:"ports"`

	// Of modes with virtual servers only; package driver adds them.
	Servers []Server   `json:"virtualServers,omitempty"`
	Chains  []InChains `json:"inChains,omitempty"`
}

// Port is one port of the Service.
type Port struct {
	Name      string     `json:"name,omitempty"`
	Port      int32      `json:"port"`
	Protocol  string     `json:"protocol"`
	KeyInUse  string     `json:"rung,omitempty"` // policy Ordered: the key in use, "*" = any endpoint
	Endpoints []Endpoint `json:"endpoints"`
}

// String returns the port as in the table, such as "http 80/TCP".
func (p Port) String() string {
	return strings.TrimSpace(fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol))
}

// Endpoint is one endpoint, and whether this node uses it.
type Endpoint struct {
	Address string `json:"address"` // ip:port
	Node    string `json:"node"`    // "" = the EndpointSlice does not say
	Unit    string `json:"unit"`    // its node's unit under the Service's keys
	Kept    bool   `json:"kept"`
	Reason  string `json:"reason,omitempty"` // why it is dropped, or what limits its use
}

// Service explains the Service called name, or fails as Find does. v is s, resolved with c.
func Service(s topology.Snapshot, c topology.Config, v topology.View, name types.NamespacedName) (Explanation, error) {
	svc, err := Find(s, name)
	if err != nil {
		return Explanation{}, err
	}
	return explained(s, c, v, svc), nil
}

func explained(s topology.Snapshot, c topology.Config, v topology.View, svc *corev1.Service) Explanation {
	own, known := s.Nodes[s.Node]
	name := NameOf(svc)
	e := Explanation{Subject: Subject{Service: name.String(), Node: s.Node, NodeKnown: known, Keys: []string{}}, Ports: []Port{}}
	ports := topology.PortsOf(v.Ports, name)
	for _, sp := range ports {
		e.addClosure(sp.Closure, own)
		e.Notes = sp.Warnings
		e.Ports = append(e.Ports, explainPort(s, sp, slices.Concat(sp.Ignored, v.Drops(sp))))
	}
	e.Notes = slices.Concat(e.Notes, notes(svc, c, e))
	if len(ports) > 0 {
		e.Notes = append(e.Notes, apiProxyNotes(s.APIProxies, ports[0])...)
	}
	return e
}

// apiProxyNotes returns notes that say which of the node-local API proxies of a Service take
// the place of the API servers. If probed is nil, it is not known which answer.
func apiProxyNotes(probed topology.ProbedProxies, sp *topology.ServicePort) (notes []string) {
	for _, addr := range topology.APIProxies(sp.Slices) {
		switch {
		case probed == nil:
			notes = append(notes, AssumedProxy(addr))
		case probed.Answers(addr):
			notes = append(notes, fmt.Sprintf("the node-local API proxy %s answers: it takes the place of the API servers", addr))
		default:
			notes = append(notes, fmt.Sprintf("the node-local API proxy %s does not answer: the API servers are used", addr))
		}
	}
	return notes
}

// AssumedProxy returns a note on a node-local API proxy that a command does not probe: it is
// assumed to answer.
func AssumedProxy(addr netip.AddrPort) string {
	return fmt.Sprintf("the node-local API proxy %s takes the place of the API servers while it answers, which is assumed here; "+
		"where it does not, the daemon uses the API servers", addr)
}

// ExternalIPs returns spec.externalIPs of a Service of the Snapshot; nil without the Service.
func ExternalIPs(s topology.Snapshot, name types.NamespacedName) []string {
	if svc, err := Find(s, name); err == nil {
		return svc.Spec.ExternalIPs
	}
	return nil
}

// addClosure sets what is the same for all ports of a Service.
func (e *Explanation) addClosure(c topology.Closure, own labels.Set) {
	e.Closed, e.Policy, e.Malformed, e.OwnOnly = c.Closed(), string(c.Policy), c.Malformed, c.OwnOnly
	e.Keys = append([]string{}, c.Keys...)
	e.Unit = Unit(c.Keys, own)
}

// explainPort explains one port. drops are its endpoints that are left out.
func explainPort(s topology.Snapshot, sp *topology.ServicePort, drops []topology.Drop) Port {
	p := Port{
		Name: sp.Name.Port, Port: sp.Port, Protocol: string(sp.Name.Protocol),
		KeyInUse: sp.Closure.KeyInUse, Endpoints: []Endpoint{},
	}
	all := topology.Endpoints(s, sp.Name)
	out := map[topology.Endpoint]topology.Reason{}
	for _, d := range drops {
		out[d.Endpoint] = d.Reason
	}
	deciding := topology.Deciding(slices.DeleteFunc(slices.Clone(all), func(e topology.Endpoint) bool { return out[e] != "" }))
	slices.SortFunc(all, func(a, b topology.Endpoint) int {
		return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Node, b.Node))
	})
	for _, e := range slices.Compact(all) {
		kept, reason := judge(sp, out, deciding, e)
		p.Endpoints = append(p.Endpoints, Endpoint{
			Address: e.Addr.String(), Node: e.Node, Unit: Unit(sp.Closure.Keys, s.Nodes[e.Node]),
			Kept: kept, Reason: reason,
		})
	}
	return p
}

// judge reports whether the View uses an endpoint; reason says why not, or what limits its use.
// An endpoint that closure kept and kube-proxy's rules left out has the first reason in the
// order in which these are applied. deciding are the endpoints that decide about addresses.
func judge(sp *topology.ServicePort, out map[topology.Endpoint]topology.Reason, deciding []topology.Endpoint, e topology.Endpoint) (kept bool, reason string) {
	if reason := out[e]; reason != "" {
		return false, string(reason)
	}
	cluster, local := slices.Contains(sp.Cluster, e), slices.Contains(sp.Local, e)
	switch {
	case cluster && !local && InternalLocal(sp.Service) && !external(sp):
		return false, reasonInternalLocal
	case cluster && !local && InternalLocal(sp.Service):
		return true, "not for the cluster IP: " + reasonInternalLocal
	case cluster:
		return true, ""
	case local:
		return true, "only for traffic policy Local"
	}
	if holder := holderOf(sp, deciding, e); holder != "" {
		return false, holder + " has its address too, and decides"
	}
	switch {
	case e.Ready:
		return false, "trafficDistribution hints prefer others"
	case e.Serving && e.Terminating:
		return false, "terminating while others are ready"
	case e.Terminating:
		return false, "terminating"
	default:
		return false, "not ready"
	}
}

const reasonInternalLocal = "internalTrafficPolicy is Local"

// external reports whether a Service port has an address other than the cluster IP.
func external(sp *topology.ServicePort) bool {
	return sp.NodePort != 0 || len(sp.Service.Spec.ExternalIPs) > 0 || len(sp.Service.Status.LoadBalancer.Ingress) > 0
}

// holderOf returns "EndpointSlice NAME" for the slice with the entry that decides about the
// address of an endpoint; "" = the endpoint's own entry does.
func holderOf(sp *topology.ServicePort, deciding []topology.Endpoint, e topology.Endpoint) string {
	i, found := slices.BinarySearchFunc(deciding, e, func(a, b topology.Endpoint) int { return a.Addr.Compare(b.Addr) })
	if !found || deciding[i] == e {
		return ""
	}
	o := deciding[i]
	port := topology.SlicePort{Name: sp.Name.Port, Protocol: sp.Name.Protocol, Number: o.Addr.Port()}
	for _, slice := range sp.Slices {
		if slices.Contains(slice.Ports, port) && slices.ContainsFunc(slice.Endpoints, func(se topology.SliceEndpoint) bool {
			return se.Addr == o.Addr.Addr() && se.Node == o.Node && se.Ready == o.Ready && se.Serving == o.Serving && se.Terminating == o.Terminating
		}) {
			return "EndpointSlice " + excerpt.Of(slice.Name)
		}
	}
	return ""
}

// InternalLocal reports whether the cluster IP of a Service leads to the node's endpoints only.
func InternalLocal(svc *corev1.Service) bool {
	return svc != nil && svc.Spec.InternalTrafficPolicy != nil && *svc.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
}

// Unit returns the unit of a node under some keys, as "key=value" with commas between. It
// returns "" if the node is in none.
func Unit(keys []string, node labels.Set) string {
	var parts []string
	for _, key := range keys {
		if value := node[key]; value != "" {
			parts = append(parts, key+"="+value)
		}
	}
	return strings.Join(parts, ",")
}

// notes returns notes on what the table does not show, such as ports that are refused.
func notes(svc *corev1.Service, c topology.Config, e Explanation) []string {
	var notes []string
	if note := WithoutRules(svc, c); note != "" {
		return []string{note}
	}
	if !e.NodeKnown {
		notes = append(notes, fmt.Sprintf("the source has no Node %q: closed Services refuse here until it appears", e.Node))
	}
	for _, p := range e.Ports {
		if !topology.ValidPort(p.Port) {
			continue // a warning says so
		}
		elsewhere := slices.ContainsFunc(p.Endpoints, func(e Endpoint) bool { return e.Reason == reasonInternalLocal })
		switch kept := slices.ContainsFunc(p.Endpoints, func(e Endpoint) bool { return e.Kept }); {
		case !kept && elsewhere:
			notes = append(notes, fmt.Sprintf("packets to port %s are dropped here: %s, and no endpoint of the unit is on this node", p, reasonInternalLocal))
		case !kept:
			notes = append(notes, fmt.Sprintf("port %s is refused here: no endpoint is kept", p))
		}
	}
	return notes
}

// WithoutRules returns why no rules are written for a Service, or "" if they are.
func WithoutRules(svc *corev1.Service, c topology.Config) string {
	const text = "no rules are written for it: "
	switch {
	case !c.Served(svc):
		return text + whyNotServed(svc, c)
	case len(svc.Spec.Ports) == 0:
		return text + "it has no ports"
	default:
		return ""
	}
}

func whyNotServed(svc *corev1.Service, c topology.Config) string {
	switch {
	case !c.HandedToUs(svc) && c.ServiceProxyName != "":
		return "its label " + topology.LabelServiceProxyName + " is not " + c.ServiceProxyName + ", so another proxy serves it"
	case !c.HandedToUs(svc):
		return "its label " + topology.LabelServiceProxyName + " hands it to another proxy"
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		return "its type is ExternalName, which only DNS answers"
	case svc.Spec.ClusterIP == corev1.ClusterIPNone:
		return "it is headless, so only DNS gives out its endpoints; if it is closed, grid-dns gives out those of the unit"
	default:
		return "it has no cluster IP yet"
	}
}

// Server is one virtual server of the Service.
type Server struct {
	Address   string   `json:"address"` // ip:port/protocol
	Scheduler string   `json:"scheduler"`
	Affinity  string   `json:"affinity,omitempty"` // how long a client keeps its endpoint
	Endpoints []string `json:"endpoints"`          // none = it refuses connections
}

// InChains is one address of the Service that chains serve before any virtual server does.
type InChains struct {
	Address string `json:"address"` // ip:port/protocol, or network:port/protocol
	Packets string `json:"packets"` // which packets: AllPackets or OwnPackets
}

// The values of InChains.Packets.
const (
	AllPackets = "all"
	OwnPackets = "those of this node and its Pods; the virtual server has the others"
)
