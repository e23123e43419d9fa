package agent

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// hubOfPush is a hub in memory, which counts how often Secrets are read.
type hubOfPush struct {
	*Push
	store client.Client
	now   time.Time
	reads int
}

func newHubOfPush(t *testing.T, config *rest.Config) *hubOfPush {
	scheme := runtime.NewScheme()
	must(t, errors.Join(AddToScheme(scheme), corev1.AddToScheme(scheme)))
	h := &hubOfPush{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	h.store = fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, is := o.(*corev1.Secret); is {
				h.reads++
			}
			if key.Name == "other" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, nil)
			}
			return c.Get(ctx, key, o, opts...)
		},
	}).Build()
	h.Push = NewPush(PushConfig{
		Config: config, Hub: Access{Client: h.store, Live: h.store}, Now: func() time.Time { return h.now },
		HubUID: func(context.Context) (string, error) { return "hub", nil }, Log: slog.New(slog.DiscardHandler),
	})
	return h
}

func pushedCluster(uid types.UID, secret string) *v1alpha1.FleetCluster {
	return &v1alpha1.FleetCluster{
		ObjectMeta: metav1.ObjectMeta{Name: "north", UID: uid, Generation: 1, Finalizers: []string{v1alpha1.Finalizer}},
		Spec:       v1alpha1.FleetClusterSpec{KubeConfig: &v1alpha1.KubeConfig{SecretRef: v1alpha1.SecretRef{Name: secret}}},
	}
}

// TestPushForgets: that Flux has dropped a FleetCluster says nothing of one that is made again
// under its name.
func TestPushForgets(t *testing.T) {
	h := newHubOfPush(t, &rest.Config{})
	h.note("first", true)
	if !h.Detached("first") || h.Detached("second") {
		t.Errorf("detached: %v", h.detached)
	}
	h.forget([]v1alpha1.FleetCluster{*pushedCluster("second", "s")})
	if len(h.detached) > 0 {
		t.Errorf("detached: %v", h.detached)
	}
}

// TestPushReadsSecrets: a Secret is read at most each 30 s, unless the FleetCluster has changed.
// One that must not be read leads to a sentence.
func TestPushReadsSecrets(t *testing.T) {
	h := newHubOfPush(t, &rest.Config{})
	c := pushedCluster("1", v1alpha1.KubeConfigSecret)
	for i, step := range []struct {
		after      time.Duration
		generation int64
		want       int
	}{{0, 1, 1}, {secretPeriod - 1, 1, 1}, {1, 1, 2}, {0, 2, 3}, {-time.Hour, 2, 4}} {
		h.now = h.now.Add(step.after)
		c.Generation = step.generation
		before := h.reads
		read, fresh := h.kubeConfig(t.Context(), c)
		if h.reads != step.want || fresh != (h.reads > before) || read.err == nil {
			t.Errorf("step %d: %d reads, want %d; %t, %v", i, h.reads, step.want, fresh, read.err)
		}
	}
	read, _ := h.kubeConfig(t.Context(), pushedCluster("2", "other"))
	wantText(t, read.err, "set spec.kubeConfig.secretRef.name to it")
}

// TestPushDoesNotWait: a FleetCluster that is being deleted, while an API server does not answer,
// keeps no other from being served.
func TestPushDoesNotWait(t *testing.T) {
	silence := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-silence:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	h := newHubOfPush(t, &rest.Config{Host: server.URL})
	c := pushedCluster("1", "s")
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "fleet-north"}}
	must(t, errors.Join(h.store.Create(t.Context(), space), h.store.Create(t.Context(), c), h.store.Delete(t.Context(), c)))
	for range 2 {
		if err := h.round(t.Context()); err != nil {
			t.Error(err)
		}
	}
	a := h.running["1"]
	if len(h.running) != 1 || a == nil || a.hasEnded() || h.Detached("1") {
		t.Errorf("running: %v", h.running)
	}
	close(silence)
	h.end(a)
	if len(h.running) > 0 || !a.hasEnded() {
		t.Error("it goes on")
	}
}

// TestDetachWithoutNamespace: if the namespace of a cluster is gone, Flux has nothing of it.
func TestDetachWithoutNamespace(t *testing.T) {
	h := newHubOfPush(t, &rest.Config{})
	if err := h.detach(t.Context(), pushedCluster("1", "s")); err != nil || !h.Detached("1") {
		t.Errorf("%v, %v", h.detached, err)
	}
}

// TestWishes: a change of the status alone wakes nothing.
func TestWishes(t *testing.T) {
	changed := make(chan struct{}, 1)
	on := wishes(wake(changed))
	woken := func() bool {
		select {
		case <-changed:
			return true
		default:
			return false
		}
	}
	c := pushedCluster("1", "s")
	status, spec, deleted, other := c.DeepCopy(), c.DeepCopy(), c.DeepCopy(), c.DeepCopy()
	status.Status.State, status.ResourceVersion = "Stale", "2"
	spec.Generation = 2
	deleted.DeletionTimestamp = &metav1.Time{}
	other.UID = "2"
	on.OnAdd(c, true)
	if !woken() {
		t.Error("a new one wakes nothing")
	}
	on.OnUpdate(c, status)
	if woken() {
		t.Error("a status wakes")
	}
	for _, o := range []*v1alpha1.FleetCluster{spec, deleted, other} {
		if on.OnUpdate(c, o); !woken() {
			t.Errorf("%+v wakes nothing", o.ObjectMeta)
		}
	}
	if on.OnDelete(c); !woken() {
		t.Error("a deletion wakes nothing")
	}
}
