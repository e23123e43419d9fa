package archive

import (
	"encoding/json"
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// PodSecurity returns those of the labels of a Namespace by which the API server confines its Pods.
func PodSecurity(of map[string]string) map[string]string {
	found := maps.Clone(of)
	maps.DeleteFunc(found, func(key, value string) bool {
		return !strings.HasPrefix(key, "pod-security.kubernetes.io/") || len(validation.IsValidLabelValue(value)) > 0
	})
	return found
}

// Namespace returns a Namespace, as JSON, that Flux makes if there is none, and otherwise neither
// changes nor deletes. Of the labels it has those of PodSecurity: without them, Pods that the hub's
// namespace forbids could run there.
func Namespace(name string, labels map[string]string) []byte {
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": metav1.ObjectMeta{
		Name: name, Labels: PodSecurity(labels), Annotations: map[string]string{
			"kustomize.toolkit.fluxcd.io/prune": "disabled", "kustomize.toolkit.fluxcd.io/ssa": "IfNotPresent",
		},
	}})
	if err != nil {
		return nil // cannot be: it has texts only
	}
	return text
}
