package agent

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"
	"gridproxy/controller/federation/delivery"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestNothingAfterSettling: what changes on the hub is written for Flux once changes have settled,
// and before any more time passes.
func TestNothingAfterSettling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pauses := rapid.SliceOfN(rapid.IntRange(0, 90_000), 1, 8).Draw(rt, "milliseconds between changes")
		problem := ""
		synctest.Test(t, func(t *testing.T) {
			p := newInstantAgent(t)
			for i := 0; i < len(pauses) && problem == ""; i++ {
				time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
				p.change(i)
				time.Sleep(settle)
				synctest.Wait()
				problem = p.problem(i)
			}
		})
		if problem != "" {
			rt.Fatalf("%s; pauses %v", problem, pauses)
		}
	})
}

// instantAgent is an agent whose API servers answer at once: no real one does.
type instantAgent struct {
	t           *testing.T
	hub, engine client.Client
	cache       *instantCache
}

// instantCache is complete. It has one informer, itself, of all kinds.
type instantCache struct {
	cache.Cache
	cache.Informer
	on toolscache.ResourceEventHandler
}

func (c *instantCache) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return c, nil
}

func (c *instantCache) AddEventHandler(on toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	c.on = on // each watch of an agent has the same
	return nil, nil
}

func (c *instantCache) HasSynced() bool { return true }
func (c *instantCache) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return nil
}

func newInstantAgent(t *testing.T) *instantAgent {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	fleet := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "west-uid"}}
	p := &instantAgent{
		t: t, hub: fake.NewClientBuilder().WithScheme(scheme).WithObjects(fleet).Build(),
		engine: fake.NewClientBuilder().WithScheme(scheme).WithObjects(system).WithStatusSubresource(newObject(artifactKind(), "", "")).Build(),
		cache:  &instantCache{},
	}
	hub, engine := Access{p.cache, p.hub, p.hub}, Access{p.cache, p.engine, p.engine}
	a := New(Config{
		Cluster: "west", Hub: "hub-1", HubAccess: hub, Target: engine, Engine: engine, Namespace: "gridproxy",
		Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(t.Context()) }()
	t.Cleanup(func() { <-ended })
	synctest.Wait()
	return p
}

// change sends another version of a Grid.
func (p *instantAgent) change(number int) {
	p.t.Helper()
	packed, err := archive.Pack([][]byte{
		[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`),
		fmt.Appendf(nil, `{"apiVersion":"superedge.io/v1","kind":"DeploymentGrid","metadata":{"name":"pos","namespace":"shop",
"annotations":{%q:"hub-1/7",%q:"r%d"}},"spec":{"gridUniqKey":"location"}}`, v1alpha1.AnnotationFrom, v1alpha1.AnnotationRevision, number),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	b := &v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.NamespacePrefix + "west", Name: "shop"}}
	write := p.hub.Create
	if p.hub.Get(p.t.Context(), client.ObjectKeyFromObject(b), b) == nil {
		write = func(ctx context.Context, o client.Object, _ ...client.CreateOption) error {
			return p.hub.Update(ctx, o)
		}
	}
	b.Spec = v1alpha1.GridBundleSpec{Grids: 1, Digest: archive.Digest(packed), Archive: packed}
	if err := write(p.t.Context(), b); err != nil {
		p.t.Fatal(err)
	}
	p.cache.on.OnAdd(b, false)
}

// problem says what is not written of a version; "": all is.
func (p *instantAgent) problem(number int) string {
	copied := &v1alpha1.GridBundle{}
	if err := p.engine.Get(p.t.Context(), client.ObjectKey{Namespace: "gridproxy", Name: copyName("shop")}, copied); err != nil {
		return err.Error()
	}
	artifact, k := newObject(artifactKind(), "", ""), newObject(kustomizationKind(), "", "")
	for _, o := range []client.Object{artifact, k} {
		if err := p.engine.Get(p.t.Context(), client.ObjectKey{Namespace: "gridproxy", Name: fluxName("shop")}, o); err != nil {
			return err.Error()
		}
	}
	want := fmt.Sprint("r", number)
	if got := readBundle(copied.Spec); !slices.ContainsFunc(got.Objects, func(o delivery.Object) bool { return o.Revision == want }) {
		return fmt.Sprintf("the copy is %v, want revision %s", got, want)
	}
	if got := text(artifact, "status", "artifact", "digest"); got != copied.Spec.Digest {
		return fmt.Sprintf("Flux is told of the archive %s, want %s", got, copied.Spec.Digest)
	}
	return ""
}
