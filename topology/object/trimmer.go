package object

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Trimmer copies those fields of API objects that gridproxy reads, and stores equal names once. Its
// arguments are not changed. The zero value is ready for use. Safe for concurrent use.
type Trimmer struct {
	Names bool // also keep what DNS reads of EndpointSlices; set before the first use

	mu          sync.Mutex
	names       cache[*string]
	annotations cache[map[string]string] // of Services, by what they hold
}

// name returns the one copy of a text that many objects share.
func (t *Trimmer) name(text string) string { return *t.pointer(text) }

func (t *Trimmer) pointer(text string) *string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names.get(text, func() (string, *string) {
		text := strings.Clone(text)
		return text, &text
	})
}

// annotated returns the one copy of annotations that many Services share: a map of one entry
// takes as much memory as one of eight. Annotations beyond cachedTextMax are not shared.
func (t *Trimmer) annotated(all map[string]string) map[string]string {
	if len(all) == 0 {
		return nil
	}
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size > cachedTextMax {
		return all
	}
	text := fmt.Sprintf("%q", all) // in the order of keys
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.annotations.get(text, func() (string, map[string]string) { return text, all })
}

// meta returns identity and, of labels and annotations, those that are asked for.
func (t *Trimmer) meta(m metav1.ObjectMeta, labels, annotations func(string) bool) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace:         t.name(m.Namespace),
		Name:              m.Name,
		UID:               m.UID,
		ResourceVersion:   m.ResourceVersion,
		DeletionTimestamp: m.DeletionTimestamp,
		Labels:            t.only(m.Labels, labels),
		Annotations:       t.only(m.Annotations, annotations),
	}
}

func (t *Trimmer) only(all map[string]string, wanted func(string) bool) map[string]string {
	var kept map[string]string
	for key, value := range all {
		if !wanted(key) {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[t.name(key)] = value
	}
	return kept
}

// names returns pointers to the texts of an object's identity that no other object shares.
func names(m *metav1.ObjectMeta) []*string {
	return []*string{&m.Name, (*string)(&m.UID), &m.ResourceVersion}
}

// together stores texts again, in one piece of memory. The texts that the decoder made lie in
// blocks with what is not kept, and a block stays as long as any of its texts.
func together(texts ...*string) {
	size := 0
	for _, text := range texts {
		size += len(*text)
	}
	var b strings.Builder
	b.Grow(size)
	for _, text := range texts {
		b.WriteString(*text)
	}
	all := b.String()
	for _, text := range texts {
		n := len(*text)
		*text, all = all[:n], all[n:]
	}
}

func every(string) bool { return true }
func none(string) bool  { return false }

func serviceLabel(key string) bool { return key == topology.LabelServiceProxyName }

func wantedAnnotation(key string) bool { return slices.Contains(topology.ServiceAnnotations(), key) }

// within returns a text that is too long for an annotation without its end, so that a tenant cannot
// fill the memory and the disk of a node. It stays too long.
func within(text string) string {
	if len(text) <= topology.MaxAnnotationBytes {
		return text
	}
	return strings.Clone(text[:topology.MaxAnnotationBytes+1])
}

// Service returns what rules are made of, with ClusterIP as the first of ClusterIPs. It keeps
// the name of a misspelled annotation.
func (t *Trimmer) Service(s *corev1.Service) *corev1.Service {
	out := &corev1.Service{ObjectMeta: t.meta(s.ObjectMeta, serviceLabel, wantedAnnotation), Spec: s.Spec}
	out.CreationTimestamp = s.CreationTimestamp // the older of two Services gets an address that both name
	for key, value := range out.Annotations {
		out.Annotations[key] = within(value)
	}
	if name, _ := topology.Misnamed(s.Annotations, topology.ServiceAnnotations()); name != "" {
		if out.Annotations == nil {
			out.Annotations = map[string]string{}
		}
		out.Annotations[t.name(name)] = "" // what it says does not matter
	}
	out.Annotations = t.annotated(out.Annotations)
	spec := &out.Spec
	spec.Selector, spec.LoadBalancerClass, spec.LoadBalancerIP, spec.AllocateLoadBalancerNodePorts = nil, nil, "", nil
	spec.Type = corev1.ServiceType(t.name(string(spec.Type)))
	spec.SessionAffinity = corev1.ServiceAffinity(t.name(string(spec.SessionAffinity)))
	spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicy(t.name(string(spec.ExternalTrafficPolicy)))
	if p := spec.InternalTrafficPolicy; p != nil {
		spec.InternalTrafficPolicy = (*corev1.ServiceInternalTrafficPolicy)(t.pointer(string(*p)))
	}
	if p := spec.IPFamilyPolicy; p != nil {
		spec.IPFamilyPolicy = (*corev1.IPFamilyPolicy)(t.pointer(string(*p)))
	}
	texts := append(names(&out.ObjectMeta), &spec.ClusterIP)
	spec.ClusterIPs = slices.Clone(s.Spec.ClusterIPs)
	for i := range spec.ClusterIPs {
		texts = append(texts, &spec.ClusterIPs[i])
	}
	together(texts...)
	if len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	spec.IPFamilies = make([]corev1.IPFamily, len(s.Spec.IPFamilies))
	for i, family := range s.Spec.IPFamilies {
		spec.IPFamilies[i] = corev1.IPFamily(t.name(string(family)))
	}
	spec.Ports = make([]corev1.ServicePort, len(s.Spec.Ports))
	for i, port := range s.Spec.Ports {
		port.Name = t.name(port.Name)
		port.Protocol = corev1.Protocol(t.name(string(port.Protocol)))
		port.TargetPort.StrVal = t.name(port.TargetPort.StrVal)
		if p := port.AppProtocol; p != nil {
			port.AppProtocol = t.pointer(*p)
		}
		spec.Ports[i] = port
	}
	out.Status.LoadBalancer.Ingress = s.Status.LoadBalancer.Ingress
	return out
}

func (t *Trimmer) newSlice(s *discoveryv1.EndpointSlice) *topology.Slice {
	if t.Names {
		return topology.NewSliceWithNames(s)
	}
	return topology.NewSlice(s)
}

// Slice reads an EndpointSlice, and stores equal names once.
func (t *Trimmer) Slice(s *discoveryv1.EndpointSlice) *topology.Slice {
	out := t.newSlice(s)
	out.Namespace = t.name(out.Namespace)
	together(&out.Name, &out.ResourceVersion, &out.Service)
	out.ShareNames(t.name)
	for i := range out.Ports {
		port := &out.Ports[i]
		port.Name, port.Protocol = t.name(port.Name), corev1.Protocol(t.name(string(port.Protocol)))
	}
	for i := range out.Endpoints {
		out.Endpoints[i].Node = t.name(out.Endpoints[i].Node)
	}
	return out
}

// Identity returns namespace, name and resource version of an object.
func (t *Trimmer) Identity(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	out := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: t.name(o.Namespace), Name: o.Name, ResourceVersion: o.ResourceVersion}}
	together(&out.Name, &out.ResourceVersion)
	return out
}

// Metadata returns name, resource version and labels of a node: any label may name a unit.
func (t *Trimmer) Metadata(n *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Name:            n.Name,
		ResourceVersion: n.ResourceVersion,
		Labels:          t.only(n.Labels, every),
	}}
}

// Node returns of this node's own object what health and the rules read.
func (t *Trimmer) Node(n *corev1.Node) *corev1.Node {
	return &corev1.Node{
		ObjectMeta: t.meta(n.ObjectMeta, every, none),
		Spec:       corev1.NodeSpec{PodCIDR: n.Spec.PodCIDR, PodCIDRs: n.Spec.PodCIDRs, Taints: n.Spec.Taints},
		Status:     corev1.NodeStatus{Addresses: n.Status.Addresses},
	}
}

// Limits of a cache. Texts of Nodes and Services come and go for years, and a tenant may write
// another one each second.
const (
	// cachedBytesMax is what one cache may take before it is emptied.
	cachedBytesMax = 4 << 20
	// cachedTextMax is the longest text that is cached: longer ones are hardly ever equal.
	cachedTextMax = 1 << 10
	// entryBytes is about what an entry takes beside its text: headers, a slot of the map, a
	// small map as value.
	entryBytes = 400
)

// cache holds one copy of the value for each text. It uses at most cachedBytesMax. The zero value
// is empty. It is not safe for concurrent use.
type cache[V any] struct {
	known map[string]V
	bytes int
}

// get returns the copy for text. If there is none, first makes it, with the text to know it by.
func (c *cache[V]) get(text string, first func() (string, V)) V {
	if v, found := c.known[text]; found {
		return v
	}
	key, v := first()
	size := 2*len(key) + entryBytes // the text twice: as the key and as the value
	if len(key) > cachedTextMax {
		return v
	}
	if c.known == nil || c.bytes+size > cachedBytesMax {
		c.known, c.bytes = map[string]V{}, 0 // a map that was emptied keeps its slots
	}
	c.known[key] = v
	c.bytes += size
	return v
}

// Pointer is a pointer to an object that is held: an API object, or what stands for one.
type Pointer[T any] interface {
	*T
	topology.Object
}
