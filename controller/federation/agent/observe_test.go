package agent

import (
	"context"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/controller/federation/archive"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestIdle: Flux is idle when it has not looked at something for a while: at what is described, at
// the archive, or at what it was asked for. When it fails or is suspended it is not.
func TestIdle(t *testing.T) {
	const served = "grids@new"
	for name, c := range map[string]struct {
		generation, observed int64
		applied, message     string
		annotation           string
		suspended, idle      bool
	}{
		"it has done everything":     {generation: 2, observed: 2, applied: served},
		"it knows an older object":   {generation: 2, observed: 1, applied: served, idle: true},
		"it knows an older archive":  {applied: "grids@old", idle: true},
		"it has never applied":       {idle: true},
		"it was asked":               {applied: served, annotation: "now", idle: true},
		"it fails":                   {applied: "grids@old", message: "no matches for kind"},
		"it fails, and knows no new": {generation: 2, observed: 1, message: "no matches for kind", idle: true},
		"it is suspended":            {applied: "grids@old", suspended: true},
	} {
		t.Run(name, func(t *testing.T) {
			artifact := newObject(artifactKind(), "gridproxy", fluxName("shop"))
			artifact.Object["status"] = map[string]any{"artifact": map[string]any{"revision": served}}
			k := newObject(kustomizationKind(), "gridproxy", fluxName("shop"))
			k.Object["spec"] = map[string]any{"suspend": c.suspended}
			status := map[string]any{"observedGeneration": c.observed, "lastAppliedRevision": c.applied}
			if c.message != "" {
				status["conditions"] = []any{map[string]any{"type": "Ready", "status": "False", "message": c.message}}
			}
			k.Object["status"] = status
			k.SetGeneration(c.generation)
			if c.annotation != "" {
				k.SetAnnotations(map[string]string{requested: c.annotation})
			}
			now := time.Unix(1000, 0)
			a := New(Config{Namespace: "gridproxy", Now: func() time.Time { return now }})
			a.Engine.Client = fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(artifact).Build()
			if a.progress(t.Context(), "shop", k).Idle {
				t.Error("it is idle at once")
			}
			now = now.Add(engineGrace / 2)
			if in := a.idleIn(); in > heartbeatPeriod || in < 0 {
				t.Errorf("the next look is in %s", in)
			}
			now = now.Add(engineGrace)
			if got := a.progress(t.Context(), "shop", k).Idle; got != c.idle {
				t.Errorf("idle: %t, want %t", got, c.idle)
			}
		})
	}
}

// TestUnpackOfANewAgent: whoever only lets go of a cluster reads copies before any round.
func TestUnpackOfANewAgent(t *testing.T) {
	packed, err := archive.Pack([][]byte{[]byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop"}}`)})
	must(t, err)
	b := &v1alpha1.GridBundle{Spec: v1alpha1.GridBundleSpec{Digest: archive.Digest(packed), Archive: packed}}
	if got := New(Config{}).unpack(b); got.Unread != "" || len(got.Objects) != 1 {
		t.Errorf("it is read as %+v", got)
	}
}

// definitions is an API server that serves some kinds.
type definitions struct {
	client.Reader
	lists  int
	served bool
}

func (d *definitions) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	d.lists++
	if d.served {
		return nil
	}
	return &meta.NoKindMatchError{GroupKind: list.GetObjectKind().GroupVersionKind().GroupKind()}
}

// TestDoubt: the agent asks the API server about a kind that the hub has Grids of, and the cluster
// none, but not for each change.
func TestDoubt(t *testing.T) {
	o := delivery.Observed{
		Bundles: map[string]delivery.Bundle{"shop": {Objects: []delivery.Object{
			{Key: delivery.Key{Kind: "Namespace", Name: "shop"}},
			{Key: delivery.Key{Kind: "StatefulSetGrid", Namespace: "shop", Name: "till"}},
			{Key: delivery.Key{Kind: "DeploymentGrid", Namespace: "shop", Name: "pos"}},
		}}},
		Grids: map[delivery.Key]delivery.Live{{Kind: "DeploymentGrid", Namespace: "shop", Name: "other"}: {}},
	}
	server, k, now := &definitions{}, kinds{}, time.Unix(1000, 0)
	for _, step := range []struct {
		after   time.Duration
		served  bool
		missing bool
		lists   int
	}{
		{0, true, false, 1},
		{time.Second, false, false, 1},
		{missingKindPeriod, false, true, 2},
		{time.Second, true, true, 2},
		{missingKindPeriod, true, false, 3},
	} {
		now, server.served = now.Add(step.after), step.served
		o.Missing.Kinds = map[string]bool{}
		must(t, k.doubt(t.Context(), server, &o, now))
		if o.Missing.Kinds["StatefulSetGrid"] != step.missing || server.lists != step.lists || o.Missing.Kinds["DeploymentGrid"] {
			t.Errorf("%+v: missing are %v after %d lists", step, o.Missing.Kinds, server.lists)
		}
	}
}
