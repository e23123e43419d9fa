package apiserver

import (
	"errors"
	"fmt"
	"testing"

	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WaitForDefinitions waits until all CustomResourceDefinitions are established. kubectl wait fails
// at once if it meets one whose conditions are null, as those of a new one are for a moment.
func (c *Cluster) WaitForDefinitions(t testing.TB) {
	t.Helper()
	definitions := DynamicForTest(t, c.Admin()).Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	wait.Until(t, "all definitions are established", func() error { return allEstablished(definitions.List(t.Context(), metav1.ListOptions{})) })
}

func allEstablished(list *unstructured.UnstructuredList, err error) error {
	if err != nil {
		return err
	}
	if len(list.Items) == 0 {
		return errors.New("there is no CustomResourceDefinition")
	}
	for i := range list.Items {
		if !established(&list.Items[i]) {
			return fmt.Errorf("CustomResourceDefinition %s is not established", list.Items[i].GetName())
		}
	}
	return nil
}

func established(definition *unstructured.Unstructured) bool {
	conditions, _, err := unstructured.NestedSlice(definition.Object, "status", "conditions")
	if err != nil {
		return false
	}
	for _, c := range conditions {
		if condition, isMap := c.(map[string]any); isMap && condition["type"] == "Established" && condition["status"] == "True" {
			return true
		}
	}
	return false
}
