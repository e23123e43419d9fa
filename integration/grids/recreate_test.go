package grids

import (
	"fmt"
	"testing"

	v1 "gridproxy/controller/api/v1"

	appsv1 "k8s.io/api/apps/v1"
)

// TestRecreateAllowedBefore: B-15, the Grid allows replacement before the change that needs it comes. Nothing happens in
// the cluster between the API server's refusal and the replacement, so nothing but the refusal can lead to it.
func TestRecreateAllowedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"bj-1": "beijing"})
	w.apply(deploymentGrid("web", ""))
	w.patch(&v1.DeploymentGrid{}, "web", `{"metadata":{"annotations":{"superedge.io/on-immutable-change":"Recreate"}}}`)
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
	before, _ := get(w, &appsv1.Deployment{}, "web-beijing")

	w.patch(&v1.DeploymentGrid{}, "web", `{"spec":{"template":{"selector":{"matchLabels":{"app":"new"}},"template":{"metadata":{"labels":{"app":"new"}}}}}}`)
	w.eventually("it is replaced", func() string {
		after, ok := get(w, &appsv1.Deployment{}, "web-beijing")
		if !ok || after.UID == before.UID || after.Spec.Selector.MatchLabels["app"] != "new" {
			return fmt.Sprintf("there is %s with the selector %v, before there was %s", after.UID, after.Spec.Selector, before.UID)
		}
		return ""
	})
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
}
