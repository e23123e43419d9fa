package manifest

import (
	"cmp"
	"fmt"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// thing is what only one object can have: the name of an object of a kind, a UID, a cluster IP, or
// a node port of a protocol.
type thing struct {
	what            thingKind
	kind, namespace string // of a name
	name            string // or UID, IP, protocol
	port            int32
}

type thingKind uint8

const (
	nameThing thingKind = iota
	uidThing
	clusterIPThing
	portThing
)

func (t thing) String() string {
	switch t.what {
	case nameThing:
		if t.namespace == "" {
			return fmt.Sprintf("the name of %s %s", t.kind, t.name)
		}
		return fmt.Sprintf("the name of %s %s/%s", t.kind, t.namespace, t.name)
	case uidThing:
		return fmt.Sprintf("UID %q", t.name)
	case clusterIPThing:
		return "cluster IP " + t.name
	default:
		return nodePort(t.port, corev1.Protocol(t.name))
	}
}

// holders are the places of the first objects that have a thing.
type holders map[thing]*place

// take notes the holder of a thing. If another object holds it already, the error names both
// places. path is called for the error.
func (h holders) take(t thing, by *place, path func() *field.Path) error {
	first, taken := h[t]
	if !taken {
		h[t] = by
	}
	if !taken || *first == *by {
		return nil
	}
	return fmt.Errorf("%s: %s: %s is taken by %s; change or remove one", by, path(), excerpt.Of(t.String()), first)
}

// conflicts returns errors about objects that cannot be in one cluster together.
func conflicts(p parsed) []error {
	taken := make(holders, 3*(len(p.services)+len(p.slices)+len(p.nodes))) // a name, a UID, an address
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for i := range p.services {
		l := &p.services[i]
		note(taken.takeIdentity(&l.place, l.object, l.object.UID))
		taken.takeAddresses(l, note)
	}
	for i := range p.slices {
		note(taken.takeIdentity(&p.slices[i].place, p.slices[i].object, ""))
	}
	for i := range p.nodes {
		note(taken.takeIdentity(&p.nodes[i].place, p.nodes[i].object, p.nodes[i].object.UID))
	}
	for _, named := range [...][]located[metav1.PartialObjectMetadata]{p.namespaces, p.grids} {
		for i := range named {
			note(taken.takeIdentity(&named[i].place, named[i].object, ""))
		}
	}
	for i := range p.raw {
		at := &p.raw[i].place
		name := thing{what: nameThing, kind: at.kind, namespace: cmp.Or(at.namespace, metav1.NamespaceDefault), name: at.name}
		note(taken.take(name, at, func() *field.Path { return metadataPath.Child("name") }))
	}
	return errs
}

// takeIdentity takes an object's name, and its UID unless that is "". LastKeys are kept by UID,
// so that two Services of one UID, as copying the output of kubectl makes them, would mix them
// up.
func (h holders) takeIdentity(at *place, o topology.Object, uid types.UID) error {
	if o.GetName() == "" {
		return nil // said already
	}
	name := thing{what: nameThing, kind: at.kind, namespace: o.GetNamespace(), name: o.GetName()}
	if err := h.take(name, at, func() *field.Path { return metadataPath.Child("name") }); err != nil {
		return err
	}
	if uid == "" {
		return nil // of a kind that is not remembered
	}
	return h.take(thing{what: uidThing, name: string(uid)}, at, func() *field.Path { return metadataPath.Child("uid") })
}

func (h holders) takeAddresses(l *located[corev1.Service], note func(error)) {
	spec := &l.object.Spec
	if spec.Type == corev1.ServiceTypeExternalName {
		return // it has none, whatever is written
	}
	for i, ip := range spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			note(h.take(thing{what: clusterIPThing, name: ip}, &l.place, func() *field.Path {
				if i > 0 {
					return specPath.Child("clusterIPs").Index(i)
				}
				return specPath.Child("clusterIP")
			}))
		}
	}
	for i, port := range spec.Ports {
		if port.NodePort != 0 {
			note(h.take(thing{what: portThing, name: string(port.Protocol), port: port.NodePort}, &l.place, func() *field.Path {
				return specPath.Child("ports").Index(i).Child("nodePort")
			}))
		}
	}
	if spec.HealthCheckNodePort != 0 {
		note(h.take(thing{what: portThing, name: string(corev1.ProtocolTCP), port: spec.HealthCheckNodePort}, &l.place, func() *field.Path {
			return specPath.Child("healthCheckNodePort")
		}))
	}
}

func nodePort(number int32, protocol corev1.Protocol) string {
	return fmt.Sprintf("node port %d/%s", number, protocol)
}
