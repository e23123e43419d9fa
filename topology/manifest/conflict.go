package manifest

import (
	"fmt"

	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// claims are things of which there is one for each object, and who took it first.
type claims map[string]place

// take claims a thing; if another object has it already, the error names both places.
func (c claims) take(what string, by place, path *field.Path) error {
	first, taken := c[what]
	if !taken {
		c[what] = by
	}
	if !taken || first == by {
		return nil
	}
	return fmt.Errorf("%s: %s: %s is taken by %s; change or remove one", by, path, excerpt.Of(what), first)
}

// conflicts are objects that cannot be in one cluster together.
func conflicts(p parsed) []error {
	taken := claims{}
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

// takeIdentity claims name and UID. Memories are kept by UID, so that two Services of one
// UID, as copying the output of kubectl makes them, would mix them up.
func (c claims) takeIdentity(at place, o metav1.Object) error {
	if o.GetName() == "" {
		return nil // said already
	}
	name := fmt.Sprintf("the name of %s %s/%s", at.kind, o.GetNamespace(), o.GetName())
	if o.GetNamespace() == "" {
		name = fmt.Sprintf("the name of %s %s", at.kind, o.GetName())
	}
	if err := c.take(name, at, metadataPath.Child("name")); err != nil {
		return err
	}
	if o.GetUID() == "" {
		return nil // of a kind that is not remembered
	}
	return c.take(fmt.Sprintf("UID %q", o.GetUID()), at, metadataPath.Child("uid"))
}

func (c claims) takeAddresses(l located[corev1.Service]) []error {
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
			errs = append(errs, c.take("cluster IP "+ip, l.place, path))
		}
	}
	for i, port := range spec.Ports {
		if port.NodePort != 0 {
			path := specPath.Child("ports").Index(i).Child("nodePort")
			errs = append(errs, c.take(nodePort(port.NodePort, port.Protocol), l.place, path))
		}
	}
	if spec.HealthCheckNodePort != 0 {
		errs = append(errs, c.take(nodePort(spec.HealthCheckNodePort, corev1.ProtocolTCP), l.place, specPath.Child("healthCheckNodePort")))
	}
	return errs
}

func nodePort(number int32, protocol corev1.Protocol) string {
	return fmt.Sprintf("node port %d/%s", number, protocol)
}
