package node

import (
	"encoding/json"
	"fmt"
	"net/netip"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

// knownCluster is what decides closure: the labels of Nodes, the keys of Services, and the Node of
// each endpoint. It is made from the API server or from a state on disk, and shares no code with
// topology.Resolve.
type knownCluster struct {
	labels    map[string]map[string]string
	keys      map[string][]string              // of Services in the namespace default; none = open
	endpoints map[string]map[netip.Addr]string // by Service
}

func newKnownCluster() knownCluster {
	return knownCluster{map[string]map[string]string{}, map[string][]string{}, map[string]map[netip.Addr]string{}}
}

// addService notes the keys of a Service, which are those of its annotation.
func (c knownCluster) addService(o *corev1.Service) error {
	text := o.Annotations["topologyKeys"]
	if o.Namespace != "default" || text == "" {
		return nil
	}
	var keys []string
	if err := json.Unmarshal([]byte(text), &keys); err != nil {
		return fmt.Errorf("reading the keys of %s: %w", o.Name, err)
	}
	c.keys[o.Name] = keys
	return nil
}

func (c knownCluster) addEndpoint(service string, addr netip.Addr, node string) {
	if c.endpoints[service] == nil {
		c.endpoints[service] = map[netip.Addr]string{}
	}
	c.endpoints[service][addr] = node
}

// knownToAPI is the cluster as the API server has it.
func knownToAPI(nodes []corev1.Node, services []corev1.Service, slices []discoveryv1.EndpointSlice) (knownCluster, error) {
	c := newKnownCluster()
	for _, o := range nodes {
		c.labels[o.Name] = o.Labels
	}
	for _, o := range services {
		if err := c.addService(&o); err != nil {
			return c, err
		}
	}
	for _, o := range slices {
		for _, e := range o.Endpoints {
			addr, err := netip.ParseAddr(e.Addresses[0])
			if err == nil && e.NodeName != nil {
				c.addEndpoint(o.Labels[discoveryv1.LabelServiceName], addr, *e.NodeName)
			}
		}
	}
	return c, nil
}

// knownToDisk is the cluster as a saved state has it. Its Nodes are those that share a unit with
// the one that saved it, whose labels are those that were in force: Self may have newer ones.
func knownToDisk(s topology.Snapshot) (knownCluster, error) {
	c := newKnownCluster()
	for name, labels := range s.Nodes {
		c.labels[name] = labels
	}
	for _, o := range s.Services {
		if err := c.addService(o); err != nil {
			return c, err
		}
	}
	for _, o := range s.Slices {
		for _, e := range o.Endpoints {
			c.addEndpoint(o.Service, e.Addr, e.Node)
		}
	}
	return c, nil
}

// inUnit says whether a node may send clients of a Service to an address: the Service is open, or
// its endpoint there is on a Node that has this node's value of one of the keys.
func (c knownCluster) inUnit(node, service string, addr netip.Addr) bool {
	keys := c.keys[service]
	if len(keys) == 0 {
		return true
	}
	there, known := c.endpoints[service][addr]
	for _, key := range keys {
		if value := c.labels[node][key]; known && value != "" && value == c.labels[there][key] {
			return true
		}
	}
	return false
}

// outsideOf counts the endpoints that closure keeps from a node.
func (c knownCluster) outsideOf(node string) int {
	n := 0
	for service, all := range c.endpoints {
		for addr := range all {
			if !c.inUnit(node, service, addr) {
				n++
			}
		}
	}
	return n
}
