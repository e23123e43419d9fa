package agent

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestRestoredHub: a hub on which the Lease is not what the agent wrote last is found, and the
// Lease is written all the same.
func TestRestoredHub(t *testing.T) {
	scheme := runtime.NewScheme()
	must(t, coordinationv1.AddToScheme(scheme))
	store := fake.NewClientBuilder().WithScheme(scheme).Build()
	restored, away, deaf, ready := 0, false, false, true
	a := New(Config{Cluster: "west", Now: time.Now, HubRestored: func() bool {
		if ready {
			restored++
		}
		return ready
	}})
	a.HubAccess.Client = interceptor.NewClient(store, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			if away {
				return context.DeadlineExceeded
			}
			err := c.Patch(ctx, o, patch, opts...)
			if deaf {
				return context.DeadlineExceeded
			}
			return err
		},
	})
	lease := func() *coordinationv1.Lease {
		l := &coordinationv1.Lease{}
		must(t, store.Get(t.Context(), client.ObjectKey{Namespace: v1alpha1.NamespacePrefix + "west", Name: v1alpha1.HeartbeatLease}, l))
		return l
	}
	for _, step := range []struct {
		what   string
		change func()
		want   int
	}{
		{"it is new", func() {}, 0},
		{"nothing has happened", func() {}, 0},
		{"the answer was lost", func() {
			deaf = true
			if a.renew(t.Context(), "not answered", "uid", true) == nil {
				t.Error("a lost answer is heard")
			}
			deaf = false
			if lease().Annotations[v1alpha1.AnnotationHeartbeat] != "not answered" {
				t.Error("it was not written")
			}
		}, 0},
		{"it was written by another while the hub was away", func() {
			away = true
			if a.renew(t.Context(), "not heard", "uid", true) == nil {
				t.Error("a hub that is away answers")
			}
			away = false
			l := lease()
			l.Annotations[v1alpha1.AnnotationHeartbeat] = "older"
			must(t, store.Update(t.Context(), l))
		}, 1},
		{"nothing has happened since", func() {}, 1},
		{"it is gone, too soon", func() {
			ready = false
			must(t, store.Delete(t.Context(), lease()))
		}, 1},
		{"it is found later", func() { ready = true }, 2},
		{"all is well", func() {}, 2},
	} {
		step.change()
		if err := a.renew(t.Context(), step.what, "uid", true); err != nil {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := lease().Annotations[v1alpha1.AnnotationHeartbeat]; got != step.what || restored != step.want {
			t.Errorf("%s: the Lease says %q, and the hub was restored %d times, want %d", step.what, got, restored, step.want)
		}
	}
}

// TestWatchedAnew: watches of a hub begin again, but not each time when two agents write one Lease.
func TestWatchedAnew(t *testing.T) {
	now, ended := time.Unix(1000, 0), 0
	p := &Pull{Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)}
	for range 30 {
		p.beginAgain(func() { ended++ })
		now = now.Add(time.Minute)
	}
	if ended != rewatchBurst+2 {
		t.Errorf("they begin again %d times in half an hour, want %d", ended, rewatchBurst+2)
	}
}
