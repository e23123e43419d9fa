package agreement

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Prune applies closure literally and with no thought of speed: it decides every question again
// for every endpoint. What comes out are the EndpointSlices that a kube-proxy on this node would
// have to be given, one for each port of each slice, because Services with a preference order are
// decided port by port.
func Prune(c Cluster) []*discoveryv1.EndpointSlice {
	var pruned []*discoveryv1.EndpointSlice
	for _, slice := range c.Slices {
		svc := c.serviceOf(slice)
		if svc == nil {
			continue
		}
		if proxy := localAPIServer(slice); proxy != nil {
			pruned = append(pruned, proxy)
			continue
		}
		for n, port := range slice.Ports {
			// kube-proxy counts an endpoint as locally ready behind any port of a slice, even one that the
			// Service does not have and no packet can reach. gridproxy does not, on purpose: a load
			// balancer must not send traffic here for a port without a server here.
			if !servicePort(svc, port) {
				continue
			}
			part := slice.DeepCopy()
			part.Name = fmt.Sprintf("%s-port-%d", slice.Name, n)
			part.Ports = []discoveryv1.EndpointPort{port}
			part.Endpoints = slices.DeleteFunc(part.Endpoints, func(e discoveryv1.Endpoint) bool {
				return !c.admits(svc, port, e)
			})
			pruned = append(pruned, part)
		}
	}
	return pruned
}

// serviceOf finds the Service that the label of a slice names; nil if it does not exist, or if a
// label hands the Service to another proxy or marks the slice as headless.
func (c Cluster) serviceOf(slice *discoveryv1.EndpointSlice) *corev1.Service {
	for _, svc := range c.Services {
		if svc.Namespace == slice.Namespace && svc.Name == slice.Labels[labelServiceName] && !handedOver(svc) && !headless(slice) {
			return svc
		}
	}
	return nil
}

func servicePort(svc *corev1.Service, port discoveryv1.EndpointPort) bool {
	for _, p := range svc.Spec.Ports {
		if port.Name != nil && *port.Name == p.Name && *port.Protocol == p.Protocol {
			return true
		}
	}
	return false
}

// handedOver and headless are the two selectors of kube-proxy's informers. Each label counts on one
// kind of object.
func handedOver(svc *corev1.Service) bool {
	_, found := svc.Labels[labelProxyName]
	return found
}

func headless(slice *discoveryv1.EndpointSlice) bool {
	_, found := slice.Labels[labelHeadless]
	return found
}

// admits reports whether closure lets this node use an endpoint for a port of a Service.
func (c Cluster) admits(svc *corev1.Service, port discoveryv1.EndpointPort, e discoveryv1.Endpoint) bool {
	keys, ordered, ok := readKeys(svc.Annotations)
	if !ok {
		keys, ordered = c.LastKeys[svc.UID], svc.Annotations[annotationPolicy] == "Ordered"
		if len(keys) == 0 {
			return c.onThisNode(e)
		}
	}
	if len(keys) == 0 {
		return true
	}
	if _, known := c.labelsOf(c.Node); !known {
		return false
	}
	if !c.hasUnit(keys, ordered) {
		switch c.Flags.NodesWithoutUnit {
		case "open":
			return true
		case "local":
			return c.onThisNode(e)
		default:
			return false
		}
	}
	if ordered {
		rung := c.rung(svc, port, keys)
		return rung != "" && c.inRung(rung, e)
	}
	for _, key := range keys {
		if c.sameUnit(key, e) {
			return true
		}
	}
	return false
}

// readKeys reads the two annotations; not ok = they are malformed. No keys and ok is an
// ordinary Service, whose policy does not matter.
func readKeys(annotations map[string]string) (keys []string, ordered, ok bool) {
	text, found := annotations[annotationKeys]
	if !found {
		return nil, false, true
	}
	var anything any
	if json.Unmarshal([]byte(text), &anything) != nil {
		return nil, false, false
	}
	list, isList := anything.([]any)
	if !isList {
		return nil, false, false
	}
	if len(list) == 0 {
		return nil, false, true
	}
	policy, found := annotations[annotationPolicy]
	if found && policy != "Any" && policy != "Ordered" {
		return nil, false, false
	}
	ordered = policy == "Ordered"
	for _, item := range list {
		key, isText := item.(string)
		if !isText {
			return nil, false, false
		}
		if !slices.Contains(keys, key) { // a key that is named again changes nothing
			keys = append(keys, key)
		}
	}
	for i, key := range keys {
		star := key == "*" && ordered && i == len(keys)-1
		if !star && len(validation.IsQualifiedName(key)) > 0 {
			return nil, false, false
		}
	}
	return keys, ordered, true
}

// labelsOf are the labels of a node, if it is known.
func (c Cluster) labelsOf(node string) (map[string]string, bool) {
	for _, n := range c.Nodes {
		if n.Name == node {
			return n.Labels, true
		}
	}
	return nil, false
}

// valueOf is a node's value of a label; "" for a node that lacks it or is unknown.
func (c Cluster) valueOf(node, key string) string {
	labels, _ := c.labelsOf(node)
	return labels[key]
}

func (c Cluster) onThisNode(e discoveryv1.Endpoint) bool {
	return e.NodeName != nil && *e.NodeName == c.Node
}

// hasUnit reports whether this known node has a place in the list: a value for one of
// the keys, or "any endpoint" at its end.
func (c Cluster) hasUnit(keys []string, ordered bool) bool {
	for _, key := range keys {
		if c.valueOf(c.Node, key) != "" {
			return true
		}
	}
	return ordered && keys[len(keys)-1] == "*"
}

// sameUnit reports whether an endpoint's node carries this node's value of a key.
func (c Cluster) sameUnit(key string, e discoveryv1.Endpoint) bool {
	return e.NodeName != nil && c.valueOf(c.Node, key) != "" && c.valueOf(c.Node, key) == c.valueOf(*e.NodeName, key)
}

func (c Cluster) inRung(key string, e discoveryv1.Endpoint) bool {
	return key == "*" || c.sameUnit(key, e)
}

// rung is the key of a preference order that this port of the Service uses: the first
// with a ready endpoint of either family, else the first with one that terminates and
// still serves; "" = none. The node-local API proxy belongs to every rung.
func (c Cluster) rung(svc *corev1.Service, port discoveryv1.EndpointPort, keys []string) string {
	for _, usable := range []func(discoveryv1.Endpoint) bool{ready, draining} {
		for _, key := range keys {
			for _, slice := range c.Slices {
				if c.serviceOf(slice) != svc || slice.AddressType == discoveryv1.AddressTypeFQDN {
					continue
				}
				proxy := localAPIServer(slice)
				if proxy != nil {
					slice = proxy
				}
				if !hasPort(slice, port) {
					continue
				}
				for _, e := range slice.Endpoints {
					if usable(e) && (proxy != nil || c.inRung(key, e)) {
						return key
					}
				}
			}
		}
	}
	return ""
}

func hasPort(slice *discoveryv1.EndpointSlice, port discoveryv1.EndpointPort) bool {
	for _, p := range slice.Ports {
		if p.Name != nil && p.Port != nil && *p.Name == *port.Name && *p.Protocol == *port.Protocol {
			return true
		}
	}
	return false
}

func ready(e discoveryv1.Endpoint) bool {
	return e.Conditions.Ready == nil || *e.Conditions.Ready
}

func draining(e discoveryv1.Endpoint) bool {
	serving := e.Conditions.Serving == nil || *e.Conditions.Serving
	return serving && e.Conditions.Terminating != nil && *e.Conditions.Terminating
}

// localAPIServer is what stands in the place of a slice of default/kubernetes that names
// a node-local proxy: that one endpoint for the port https, which closure never touches.
// It is nil for every other slice, and where the annotations say nothing that can be used.
func localAPIServer(slice *discoveryv1.EndpointSlice) *discoveryv1.EndpointSlice {
	if slice.Namespace != "default" || slice.Labels[labelServiceName] != "kubernetes" {
		return nil
	}
	addr, err := netip.ParseAddr(slice.Annotations[annotationEndpoint])
	if err != nil || addr.Is4() != (slice.AddressType == discoveryv1.AddressTypeIPv4) {
		return nil
	}
	port, err := strconv.Atoi(slice.Annotations[annotationPort])
	if err != nil || port < 1 || port > 65535 {
		return nil
	}
	proxy := slice.DeepCopy()
	proxy.Ports = []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(port)), Protocol: new(corev1.ProtocolTCP)}}
	proxy.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{addr.String()}}}
	return proxy
}
