package grids

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// theirs are a user's objects with the names of children to come.
const theirs = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: grid-unit-00, namespace: default, labels: {app: theirs}}
spec: ` + theirSpec + `
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: grid-unit-00, namespace: default, labels: {app: theirs}}
spec: ` + theirSpec + `
---
apiVersion: v1
kind: Service
metadata: {name: grid-svc, namespace: default, labels: {app: theirs}}
spec: {ports: [{port: 80}]}
`

const theirSpec = `{replicas: 0, selector: {matchLabels: {app: theirs}}, template: {
  metadata: {labels: {app: theirs}}, spec: {containers: [{name: theirs, image: "theirs:1"}]}}}`

const collidingGrids = `
apiVersion: superedge.io/v1
kind: StatefulSetGrid
metadata: {name: grid, namespace: default}
spec:
  gridUniqKey: location
  template:
    replicas: 0
    serviceName: grid-svc
    selector: {matchLabels: {app: grid}}
    template:
      metadata: {labels: {app: grid}}
      spec: {containers: [{name: grid, image: "grid:1"}]}
---
apiVersion: superedge.io/v1
kind: ServiceGrid
metadata: {name: grid, namespace: default}
spec: {gridUniqKey: location, template: {ports: [{port: 81}]}}
---
`

// TestStrangersStay: a user's Deployment, StatefulSet and Service of names that Grids want stay byte-equal, whether
// the Grids are reconciled, or deleted in whatever way, before or after the controller has seen them. The garbage
// collector is the real one (B-07).
func TestStrangersStay(t *testing.T) {
	f := newFleet(t, 2, 1)
	f.Apply(t, theirs)
	before := f.strangers()
	c := f.controller("--leader-elect=false")
	c.WaitReady(t)
	grids := collidingGrids + deploymentGrid("grid", "replicas: 0")
	for round, cascade := range []string{"background", "foreground", "orphan", "background"} {
		f.Apply(t, grids)
		if round < 3 {
			f.wantCollisions()
		}
		f.same(before, "while the Grids stand")
		for _, kind := range []string{"dg", "ssg", "sg"} {
			f.MustKubectl(t, "delete", kind, "grid", "--cascade="+cascade)
		}
		if cascade == "orphan" { // no controller deletes them if the next Grids go before they are seen
			f.MustKubectl(t, "delete", "deployment/grid-unit-01", "statefulset/grid-unit-01")
		} else {
			wait.Until(f.t, "the garbage collector has been here", f.collected)
		}
		f.same(before, "after a deletion with cascade "+cascade)
	}
	for _, w := range c.writes() {
		if w.Name == "grid-unit-00" || w.Name == "grid-svc" {
			t.Errorf("the controller writes a stranger: %s", w)
		}
	}
}

// strangers are the user's objects as the API server stores them, once their own controllers have nothing to add.
func (f *fleet) strangers() string {
	f.t.Helper()
	last, at := "", time.Now()
	wait.Until(f.t, "the user's objects are at rest", func() error {
		now, err := f.read()
		if err != nil {
			return err
		}
		if now != last {
			last, at = now, time.Now()
		}
		// real time: rest is that nothing is written for a while
		return wait.Check(strings.Count(now, `"observedGeneration":1`) >= 2 && time.Since(at) >= nap, "they change")
	})
	return last
}

func (f *fleet) read() (string, error) {
	ctx := f.t.Context()
	d, err := f.Client.AppsV1().Deployments("default").Get(ctx, "grid-unit-00", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	s, err := f.Client.AppsV1().StatefulSets("default").Get(ctx, "grid-unit-00", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	svc, err := f.Client.CoreV1().Services("default").Get(ctx, "grid-svc", metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	text, err := json.Marshal([]any{d, s, svc})
	return string(text), err
}

func (f *fleet) same(before, when string) {
	f.t.Helper()
	now, err := f.read()
	must(f.t, err)
	if diff := cmp.Diff(before, now); diff != "" {
		f.t.Errorf("%s the user's objects are not what they were: %s", when, diff)
	}
}

// wantCollisions waits until all three Grids say what is in the way, and the other unit has its children.
func (f *fleet) wantCollisions() {
	f.t.Helper()
	for _, kind := range []string{"dg", "ssg", "sg"} {
		wait.Until(f.t, kind+" tells of the collision", func() error {
			out, err := f.Kubectl("get", kind, "grid", "-o", `jsonpath={.status}`)
			return errors.Join(err, wait.Check(strings.Contains(out, "NameCollision"), "it says %s", out))
		})
	}
	wait.Until(f.t, "the other unit has its children", func() error {
		for _, o := range []string{"deployment/grid-unit-01", "statefulset/grid-unit-01"} {
			if _, err := f.Kubectl("get", o); err != nil {
				return err
			}
		}
		return nil
	})
}

// collected is nil when the children of the other unit are gone.
func (f *fleet) collected() error {
	key := types.NamespacedName{Namespace: "default", Name: "grid-unit-01"}
	if err := f.client.Get(f.t.Context(), key, &appsv1.Deployment{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the Deployment of unit-01: %w", err)
	}
	if err := f.client.Get(f.t.Context(), key, &appsv1.StatefulSet{}); !apierrors.IsNotFound(err) {
		return fmt.Errorf("the StatefulSet of unit-01: %w", err)
	}
	return f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "default", Name: "grid-svc"}, &corev1.Service{})
}
