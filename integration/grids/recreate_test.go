package grids

import (
	"errors"
	"fmt"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
)

// TestRecreateAllowedBefore: B-15, the Grid allows replacement before the change that needs it comes. Nothing happens in
// the cluster between the API server's refusal and the replacement, so nothing but the refusal can lead to it. The new
// child has the replicas that somebody gave the old one.
func TestRecreateAllowedBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"bj-1": "beijing"})
	w.apply(deploymentGrid("web", ""))
	w.patch(&v1.DeploymentGrid{}, "web", `{"metadata":{"annotations":{"superedge.io/on-immutable-change":"Recreate"}}}`)
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
	w.patch(&appsv1.Deployment{}, "web-beijing", `{"spec":{"replicas":5}}`)
	before, _ := get(w, &appsv1.Deployment{}, "web-beijing")

	w.patch(&v1.DeploymentGrid{}, "web", `{"spec":{"template":{"selector":{"matchLabels":{"app":"new"}},"template":{"metadata":{"labels":{"app":"new"}}}}}}`)
	wait.Until(w.t, "it is replaced", func() error {
		after, ok := get(w, &appsv1.Deployment{}, "web-beijing")
		if !ok || after.UID == before.UID || after.Spec.Selector.MatchLabels["app"] != "new" {
			return fmt.Errorf("there is %s with the selector %v, before there was %s", after.UID, after.Spec.Selector, before.UID)
		}
		if *after.Spec.Replicas != 5 {
			w.t.Fatalf("%d replicas, before there were 5", *after.Spec.Replicas)
		}
		for _, e := range after.ManagedFields {
			if e.Manager == grid.ReplicasManager {
				return nil
			}
		}
		return errors.New("the replicas are not handed over")
	})
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
}
