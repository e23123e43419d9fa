package apiserver

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
)

// definitionsTimeout is how long the API server may take to serve new definitions.
const definitionsTimeout = 2 * time.Minute

// WaitForDefinitions waits until all CustomResourceDefinitions are established. kubectl wait fails
// at once if it meets one whose conditions are null, as those of a new one are for a moment.
func (c *Cluster) WaitForDefinitions(t testing.TB) {
	t.Helper()
	client, err := dynamic.NewForConfig(c.Admin())
	if err != nil {
		t.Fatal(err)
	}
	definitions := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	var last error
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, definitionsTimeout, true, func(ctx context.Context) (bool, error) {
		last = allEstablished(definitions.List(ctx, metav1.ListOptions{}))
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for definitions: %v: %v", err, last)
	}
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
