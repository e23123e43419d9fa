package agent

import (
	"encoding/json"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// asSent returns a Grid of the cluster as a hub sends one, so without what users have told Flux
// there; nil if it cannot be written.
func asSent(kind string, g client.Object) []byte {
	text, err := json.Marshal(g)
	var fields map[string]any
	if err != nil || decode(text, &fields) != nil {
		return nil // it was read from JSON
	}
	annotations := plan.Kept(g.GetAnnotations())
	for _, key := range []string{v1alpha1.AnnotationFrom, v1alpha1.AnnotationRevision} {
		if value, found := g.GetAnnotations()[key]; found {
			annotations[key] = value
		}
	}
	sent, err := json.Marshal(map[string]any{
		"apiVersion": v1.GroupVersion().String(), "kind": kind, "spec": fields["spec"],
		"metadata": map[string]any{
			"name": g.GetName(), "namespace": g.GetNamespace(), "labels": plan.Kept(g.GetLabels()), "annotations": annotations,
		},
	})
	if err != nil {
		return nil
	}
	return sent
}
