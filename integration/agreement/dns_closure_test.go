//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"slices"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// dnsUnits is what closure depends on. Of each Service it says how it was drawn, so that what is
// expected is not read from annotations by the code that is tested.
type dnsUnits struct {
	Node        string
	Nodes       map[string]labels.Set
	WithoutUnit topology.NodesWithoutUnit
	Closed      map[types.NamespacedName]dnsClosure // the other Services are open
	LastKeys    map[types.UID][]string
}

type dnsClosure struct {
	keys    []string // none: only this node's endpoints count
	ordered bool
}

// The labels that units are made of, and where endpoints are: on a node that is unknown too, and on
// none.
var (
	dnsZones         = []string{"", "x", "y"}
	dnsRacks         = []string{"", "r", "s"}
	dnsNodes         = []string{"a", "b", "c", "d"}
	dnsEndpointNodes = []string{"a", "a", "b", "c", "d", "ghost", ""}
)

const (
	dnsZone, dnsRack = "example.com/zone", "rack"
	malformedKeys    = `["example.com/zone"`
)

// drawDNSUnits draws the nodes. A cluster in two has only open Services: its Closed is nil.
func drawDNSUnits(t *rapid.T) dnsUnits {
	u := dnsUnits{Node: "a", Nodes: map[string]labels.Set{}, LastKeys: map[types.UID][]string{}}
	for _, name := range dnsNodes {
		node := labels.Set{}
		for i, values := range [][]string{dnsZones, dnsRacks} {
			if value := rapid.SampledFrom(values).Draw(t, "value"); value != "" || rapid.Bool().Draw(t, "empty value") {
				node[[]string{dnsZone, dnsRack}[i]] = value
			}
		}
		u.Nodes[name] = node
	}
	if oneIn(t, 12, "this node is unknown") {
		delete(u.Nodes, u.Node)
	}
	u.WithoutUnit = rapid.SampledFrom([]topology.NodesWithoutUnit{"", "", topology.WithoutUnitLocal, topology.WithoutUnitOpen}).Draw(t, "nodes without unit")
	if rapid.Bool().Draw(t, "closed") {
		u.Closed = map[types.NamespacedName]dnsClosure{}
	}
	return u
}

// close closes a Service in one way or another, or leaves it open.
func (u *dnsUnits) close(t *rapid.T, svc *corev1.Service) {
	svc.UID = types.UID(svc.Namespace + "/" + svc.Name)
	if u.Closed == nil {
		return
	}
	how, annotations := dnsClosure{}, map[string]string{}
	switch rapid.IntRange(0, 7).Draw(t, "closure") {
	case 0:
		return
	case 1:
		annotations[topology.AnnotationKeys] = malformedKeys
	case 2:
		annotations[topology.AnnotationKeys], how.keys = malformedKeys, []string{dnsRack}
		u.LastKeys[svc.UID] = how.keys
	case 3:
		annotations[topology.AnnotationKeys], how.keys = `["rack","example.com/zone"]`, []string{dnsRack, dnsZone}
	case 4:
		annotations[topology.AnnotationKeys], how.keys = `["rack","example.com/zone"]`, []string{dnsRack, dnsZone}
		how.ordered = true
	case 5:
		annotations[topology.AnnotationKeys], how.keys = `["rack","*"]`, []string{dnsRack, topology.AnyEndpoint}
		how.ordered = true
	default:
		annotations[topology.AnnotationKeys], how.keys = `["example.com/zone"]`, []string{dnsZone}
	}
	if how.ordered {
		annotations[topology.AnnotationPolicy] = string(topology.PolicyOrdered)
	}
	svc.Annotations = annotations
	u.Closed[types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}] = how
}

// shares reports whether a node is in this node's unit by a key.
func (u dnsUnits) shares(key, node string) bool {
	return key == topology.AnyEndpoint || u.Nodes[node][key] != "" && u.Nodes[node][key] == u.Nodes[u.Node][key]
}

// allowed says about each node whether its endpoints may be used here. ready are the nodes of the
// Service's ready endpoints.
func (u dnsUnits) allowed(how dnsClosure, ready []string) func(node string) bool {
	own, known := u.Nodes[u.Node]
	hasUnit := slices.ContainsFunc(how.keys, func(key string) bool { return key == topology.AnyEndpoint || own[key] != "" })
	ownOnly := func(node string) bool { return node == u.Node }
	switch {
	case how.keys == nil:
		return ownOnly
	case !known:
		return func(string) bool { return false }
	case !hasUnit && u.WithoutUnit == topology.WithoutUnitOpen:
		return func(string) bool { return true }
	case !hasUnit && u.WithoutUnit == topology.WithoutUnitLocal:
		return ownOnly
	}
	keys := how.keys
	if how.ordered {
		i := slices.IndexFunc(keys, func(key string) bool {
			return slices.ContainsFunc(ready, func(node string) bool { return u.shares(key, node) })
		})
		if i < 0 {
			return func(string) bool { return false }
		}
		keys = keys[i : i+1]
	}
	return func(node string) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return u.shares(key, node) })
	}
}

// withoutOtherUnits is a cluster without the endpoints that closure leaves out.
func withoutOtherUnits(c dnsCluster) (rest dnsCluster, dropped int) {
	ready := map[types.NamespacedName][]string{}
	for _, slice := range c.Slices {
		for _, e := range slice.Endpoints {
			if valueOr(e.Conditions.Ready, true) {
				ready[serviceOf(slice)] = append(ready[serviceOf(slice)], valueOr(e.NodeName, ""))
			}
		}
	}
	rest = c
	rest.Slices = nil
	for _, slice := range c.Slices {
		name := serviceOf(slice)
		how, closed := c.Closed[name]
		if !closed {
			rest.Slices = append(rest.Slices, slice)
			continue
		}
		allowed := c.allowed(how, ready[name])
		kept := slice.DeepCopy()
		kept.Endpoints = slices.DeleteFunc(kept.Endpoints, func(e discoveryv1.Endpoint) bool { return !allowed(valueOr(e.NodeName, "")) })
		dropped += len(slice.Endpoints) - len(kept.Endpoints)
		rest.Slices = append(rest.Slices, kept)
	}
	return rest, dropped
}

// serviceOf is the Service that the label of a slice names.
func serviceOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: slice.Namespace, Name: slice.Labels[labelServiceName]}
}
