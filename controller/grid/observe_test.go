package grid

import (
	"context"
	"errors"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestFreeNamesAreNotReadLive: a name that the cache does not show is read live only if the cache
// may be behind, until it shows the object or the API server has none.
func TestFreeNamesAreNotReadLive(t *testing.T) {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	inCache, inServer := false, true
	reads := 0
	read := func(there *bool, count *int) func(client.ObjectKey, client.Object) error {
		return func(key client.ObjectKey, o client.Object) error {
			*count++
			if !*there {
				return apierrors.NewNotFound(deployments, key.Name)
			}
			return o.(*deployment).reduce(&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "9"}})
		}
	}
	e, _, step := contest(metav1.ObjectMeta{}, expand.Apply{})
	r := &reconciler{
		kind: deploymentGrid(), memory: newMemory(),
		client: reading{get: read(&inCache, new(int))}, live: reading{get: read(&inServer, &reads)},
	}
	known := r.memory.of(types.NamespacedName{Namespace: "default", Name: "foo"}, "1")
	look := func(live int, free bool) {
		t.Helper()
		observed := expand.Observed{Grid: e.observed.Grid, Occupants: map[string]*expand.Live{}}
		reads = 0
		if err := r.look(t.Context(), &observed, known, []string{"foo-a"}); err != nil {
			t.Fatal(err)
		}
		if reads != live || (observed.Occupants["foo-a"] == nil) != free {
			t.Errorf("%d live reads, occupied by %v", reads, observed.Occupants["foo-a"])
		}
	}
	look(0, true)
	create := step.(expand.Apply)
	create.UID, e.known = "", known
	for round, failed := range []bool{false, true} { // the second time a live read has found it free
		err := e.run(t.Context(), []expand.Step{create})
		if (err != nil) != failed || round == 0 && !e.outrun {
			t.Errorf("a new child whose name is taken: %v", err)
		}
	}
	look(1, false)
	look(1, false) // the cache is still behind
	inCache = true
	look(0, false)
	inCache = false
	look(0, true) // it was deleted since
	known.applied["foo-a"] = expand.Applied{UID: "9"}
	look(1, false)
	known.taken["foo-a"], inServer = true, false
	look(1, true)
	if known.taken["foo-a"] {
		t.Error("a name that is free is still taken")
	}
}

// TestLookFails: an API server without an answer is not one without the object.
func TestLookFails(t *testing.T) {
	gone := reading{get: func(key client.ObjectKey, _ client.Object) error {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, key.Name)
	}}
	silent := reading{get: func(client.ObjectKey, client.Object) error { return context.DeadlineExceeded }}
	r := &reconciler{kind: deploymentGrid(), memory: newMemory(), client: gone, live: silent}
	known := r.memory.of(types.NamespacedName{Namespace: "default", Name: "foo"}, "1")
	known.taken["foo-a"] = true
	observed := expand.Observed{Occupants: map[string]*expand.Live{}}
	err := r.look(t.Context(), &observed, known, []string{"foo-a"})
	if !errors.Is(err, context.DeadlineExceeded) || len(observed.Occupants) > 0 || !known.taken["foo-a"] {
		t.Errorf("%v, occupants %v, taken %v", err, observed.Occupants, known.taken)
	}
}

// TestObservesFederationOff: only the label with the value yes asks to be distributed.
func TestObservesFederationOff(t *testing.T) {
	for _, test := range []struct {
		value             string
		distributes, want bool
	}{{"yes", false, true}, {"yes", true, false}, {"no", false, false}, {"", false, false}} {
		g := &v1.DeploymentGrid{}
		g.SetLabels(map[string]string{"superedge.io/fed": test.value})
		r := reconciler{distributes: test.distributes}
		if got := r.federationOff(g); got != test.want {
			t.Errorf("%+v: %v", test, got)
		}
	}
}
