package grid

import (
	"context"
	"testing"
	"time"

	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

type services struct {
	client.Client
	exist map[string]bool
}

func (s services) Get(_ context.Context, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	if s.exist[key.String()] {
		return nil
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "services"}, key.Name)
}

// TestMissingService: one Event a minute after a Service is first missed, and again after it was
// there in between.
func TestMissingService(t *testing.T) {
	const template = `{"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": {"spec": {}}}`
	now, exist := time.Unix(1000, 0), map[string]bool{}
	r := reconciler{client: services{exist: exist}, now: func() time.Time { return now }}
	known := &remembered{}
	g := expand.Grid{Spec: gridspec.Spec{Kind: expand.StatefulSetGrid, Template: []byte(template)}, Namespace: "shop", Name: "db"}
	for i, step := range []struct {
		after  time.Duration
		exists bool
		events int
		again  time.Duration
	}{
		{0, false, 0, time.Minute},
		{59 * time.Second, false, 0, time.Second},
		{time.Second, false, 1, 0},
		{time.Hour, false, 0, 0},
		{0, true, 0, 0},
		{time.Second, false, 0, time.Minute},
		{time.Minute, false, 1, 0},
	} {
		now, exist["shop/db"] = now.Add(step.after), step.exists
		events, again, err := r.checkServices(t.Context(), g, known)
		if err != nil || len(events) != step.events || again != step.again {
			t.Errorf("step %d: %v, again after %s: %v", i, events, again, err)
		}
	}
	for _, kind := range []expand.Kind{expand.DeploymentGrid, expand.ServiceGrid} {
		g.Kind = kind
		if _, again, err := r.checkServices(t.Context(), g, &remembered{}); err != nil || again != 0 {
			t.Errorf("a %s waits for a Service for %s: %v", kind, again, err)
		}
	}
}
