package manifest

import (
	"fmt"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// holders are, by what only one object can have, such as a name or an address, the places of the
// first objects that have it.
type holders map[string]place

// take notes the holder of a thing. If another object holds it already, the error names both
// places.
func (h holders) take(what string, by place, path *field.Path) error {
	first, taken := h[what]
	if !taken {
		h[what] = by
	}
	if !taken || first == by {
		return nil
	}
	return fmt.Errorf("%s: %s: %s is taken by %s; change or remove one", by, path, excerpt.Of(what), first)
}

// conflicts are objects that cannot be in one cluster together.
func conflicts(p parsed) []error {
	taken := holders{}
	var errs []error
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	for _, l := range p.services {
		note(taken.takeIdentity(l.place, l.object))
		for _, err := range taken.takeAddresses(l) {
			note(err)
		}
	}
	for _, l := range p.slices {
		note(taken.takeIdentity(l.place, l.object))
	}
	for _, l := range p.nodes {
		note(taken.takeIdentity(l.place, l.object))
	}
	return errs
}

// takeIdentity takes name and UID. Memories are kept by UID, so that two Services of one
// UID, as copying the output of kubectl makes them, would mix them up.
func (h holders) takeIdentity(at place, o metav1.Object) error {
	if o.GetName() == "" {
		return nil // said already
	}
	name := fmt.Sprintf("the name of %s %s/%s", at.kind, o.GetNamespace(), o.GetName())
	if o.GetNamespace() == "" {
		name = fmt.Sprintf("the name of %s %s", at.kind, o.GetName())
	}
	if err := h.take(name, at, metadataPath.Child("name")); err != nil {
		return err
	}
	if o.GetUID() == "" {
		return nil // of a kind that is not remembered
	}
	return h.take(fmt.Sprintf("UID %q", o.GetUID()), at, metadataPath.Child("uid"))
}

func (h holders) takeAddresses(l located[corev1.Service]) []error {
	var errs []error
	spec := &l.object.Spec
	if spec.Type == corev1.ServiceTypeExternalName {
		return nil // it has none, whatever is written
	}
	for i, ip := range spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			path := specPath.Child("clusterIP")
			if i > 0 {
				path = specPath.Child("clusterIPs").Index(i)
			}
			errs = append(errs, h.take("cluster IP "+ip, l.place, path))
		}
	}
	for i, port := range spec.Ports {
		if port.NodePort != 0 {
			path := specPath.Child("ports").Index(i).Child("nodePort")
			errs = append(errs, h.take(nodePort(port.NodePort, port.Protocol), l.place, path))
		}
	}
	if spec.HealthCheckNodePort != 0 {
		errs = append(errs, h.take(nodePort(spec.HealthCheckNodePort, corev1.ProtocolTCP), l.place, specPath.Child("healthCheckNodePort")))
	}
	return errs
}

func nodePort(number int32, protocol corev1.Protocol) string {
	return fmt.Sprintf("node port %d/%s", number, protocol)
}
