package analyze

import (
	"strings"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// annotations finds what is wrong with the annotations and fields of single Services.
func (a *analysis) annotations() {
	for _, svc := range a.services {
		if problem, remedy := a.withoutEffect(svc); problem != "" {
			a.add(withoutEffect, svc, text(problem, remedy))
		}
		if _, _, err := topology.ParseKeys(svc.Annotations); err != nil && headless(svc) {
			a.malformed(svc, strings.ReplaceAll(err.Error(), "\n", "; "), nil)
		}
		if problem, remedy := misnamedAnnotation(svc.Annotations, topology.ServiceAnnotations()); problem != "" {
			a.add(misnamed, svc, text(problem, remedy))
		}
	}
	for _, c := range a.closed {
		if c.closure.Malformed != "" {
			a.malformed(c.service, c.closure.Malformed, c.closure.Keys)
		}
		misnamedWarning, _ := misnamedAnnotation(c.service.Annotations, topology.ServiceAnnotations())
		for _, warning := range c.warning {
			if warning == misnamedWarning {
				continue // it has a code of its own
			}
			a.add(ignoredField, c.service, text(warning, "correct the field, or remove it"))
		}
	}
}

func (a *analysis) malformed(svc *corev1.Service, problem string, keys []string) {
	a.add(malformed, svc, text(
		problem+"; "+topology.MalformedEffect(keys),
		"write "+topology.AnnotationKeys+` as a JSON list of label keys such as ["zone"], and `+topology.AnnotationPolicy+" as Any or Ordered"))
}

func headless(svc *corev1.Service) bool {
	return svc.Spec.ClusterIP == corev1.ClusterIPNone && svc.Spec.Type != corev1.ServiceTypeExternalName
}

// misnamedAnnotation returns which annotation has a name that is not read but is like one that is,
// and what to do, or "".
func misnamedAnnotation(annotations map[string]string, read []string) (problem, remedy string) {
	name, meant := topology.Misnamed(annotations, read)
	if name == "" {
		return "", ""
	}
	return topology.MisnamedWarning(name, meant), "if " + meant + " is meant, write that name; if the annotation is for another program, leave it"
}

// withoutEffect returns which annotation has no effect, and why, and what to do, or "".
func (a *analysis) withoutEffect(svc *corev1.Service) (problem, remedy string) {
	const remove = "remove the annotation, so that no reader takes the Service for a closed one"
	keys, _, err := topology.ParseKeys(svc.Annotations)
	if len(keys) > 0 || err != nil {
		why := explain.WithoutRules(svc, a.config.Topology)
		switch {
		case why == "" || headless(svc) && (err != nil || a.config.Cluster || len(a.config.Rules.LocalDNS) > 0):
			return "", ""
		case headless(svc):
			return "annotation " + topology.AnnotationKeys + " has an effect only where grid-dns answers: the Service is headless, so clients find its endpoints by DNS",
				"run grid-dns (docs/dns.md), which answers with the unit's endpoints; if it runs, nothing is wrong"
		default:
			return "annotation " + topology.AnnotationKeys + " has no effect: " + why, remove
		}
	}
	if _, found := svc.Annotations[topology.AnnotationPolicy]; found {
		return "annotation " + topology.AnnotationPolicy + " has no effect: the Service has no " + topology.AnnotationKeys, remove
	}
	return "", ""
}
