package analyze

import (
	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// annotations finds what is wrong with the annotations and fields of single Services.
func (a *analysis) annotations() {
	for _, svc := range a.services {
		if problem := a.withoutEffect(svc); problem != "" {
			a.add(withoutEffect, svc, text(problem, "remove the annotation, so that no reader takes the Service for a closed one"))
		}
	}
	for _, c := range a.closed {
		if c.closure.Malformed != "" {
			a.add(malformed, c.service, text(
				c.closure.Malformed+"; "+topology.MalformedEffect(c.closure.Keys),
				"write "+topology.AnnotationKeys+` as a JSON list of label keys such as ["zone"], and `+topology.AnnotationPolicy+" as Any or Ordered"))
		}
		for _, warning := range c.warning {
			a.add(ignoredField, c.service, text(warning, "correct the field, or remove it"))
		}
	}
}

// withoutEffect says which annotation has no effect, and why; "" = there is none.
func (a *analysis) withoutEffect(svc *corev1.Service) string {
	keys, _, err := topology.ParseKeys(svc.Annotations)
	if len(keys) > 0 || err != nil {
		if why := explain.WithoutRules(svc, a.config.Topology); why != "" {
			return "annotation " + topology.AnnotationKeys + " has no effect: " + why
		}
		return ""
	}
	if _, found := svc.Annotations[topology.AnnotationPolicy]; found {
		return "annotation " + topology.AnnotationPolicy + " has no effect: the Service has no " + topology.AnnotationKeys
	}
	return ""
}
