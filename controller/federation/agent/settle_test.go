package agent

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/controller/federation/archive"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestNothingAfterSettling: what changes on the hub is written for Flux once changes have settled,
// and before any more time passes.
func TestNothingAfterSettling(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		pauses := rapid.SliceOfN(rapid.IntRange(0, 90_000), 1, 8).Draw(rt, "milliseconds between changes")
		var err error
		synctest.Test(t, func(t *testing.T) {
			p := newInstantAgent(t)
			for i := 0; i < len(pauses) && err == nil; i++ {
				time.Sleep(time.Duration(pauses[i]) * time.Millisecond)
				p.change(i)
				time.Sleep(settleDelay)
				synctest.Wait()
				err = p.written(i)
			}
		})
		if err != nil {
			rt.Fatalf("%v; pauses %v", err, pauses)
		}
	})
}

// instantAgent is an agent whose API server, for the hub and the cluster, answers at once: no real
// one does.
type instantAgent struct {
	client.Client
	t     *testing.T
	cache *informertest.FakeInformers
}

func newInstantAgent(t *testing.T) *instantAgent {
	scheme := runtime.NewScheme()
	must(t, errors.Join(corev1.AddToScheme(scheme), AddToScheme(scheme), metav1.AddMetaToScheme(scheme)))
	fleet := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "west"}}
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "west-uid"}}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(fleet, system).WithStatusSubresource(newObject(artifactKind(), "", "")).Build()
	p := &instantAgent{store, t, &informertest.FakeInformers{Scheme: scheme}}
	access := Access{p.cache, store, store}
	a := New(Config{
		Cluster: "west", Hub: "hub-1", HubAccess: access, Target: access, Engine: access, Namespace: "gridproxy",
		Now: time.Now, Log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	ended := make(chan struct{})
	go func() { defer close(ended); a.Run(t.Context()) }()
	t.Cleanup(func() { <-ended })
	synctest.Wait()
	return p
}

func (p *instantAgent) change(number int) {
	packed, err := archive.Pack([][]byte{
		[]byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`),
		fmt.Appendf(nil, `{"apiVersion":"superedge.io/v1","kind":"DeploymentGrid","metadata":{"name":"pos","namespace":"shop",
"annotations":{%q:"hub-1/7",%q:"r%d"}},"spec":{"gridUniqKey":"location"}}`, v1alpha1.AnnotationFrom, v1alpha1.AnnotationRevision, number),
	})
	b := &v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.NamespacePrefix + "west", Name: "shop"}}
	b.Spec = v1alpha1.GridBundleSpec{Grids: 1, Digest: archive.Digest(packed), Archive: packed}
	gone := client.IgnoreNotFound(p.Delete(p.t.Context(), b))
	informer, unknown := p.cache.FakeInformerFor(p.t.Context(), b)
	must(p.t, errors.Join(err, gone, unknown, p.Create(p.t.Context(), b)))
	informer.Add(b)
}

// written returns an error unless all is written of a version.
func (p *instantAgent) written(number int) error {
	copied, artifact, k := &v1alpha1.GridBundle{}, newObject(artifactKind(), "", ""), newObject(kustomizationKind(), "", "")
	for name, all := range map[string][]client.Object{copyName("shop"): {copied}, fluxName("shop"): {artifact, k}} {
		for _, o := range all {
			if err := p.Get(p.t.Context(), client.ObjectKey{Namespace: "gridproxy", Name: name}, o); err != nil {
				return err
			}
		}
	}
	want := fmt.Sprint("r", number)
	if got := readBundle(copied.Spec); !slices.ContainsFunc(got.Objects, func(o delivery.Object) bool { return o.Revision == want }) {
		return fmt.Errorf("the copy is %v, want revision %s", got, want)
	}
	if got := text(artifact, "status", "artifact", "digest"); got != copied.Spec.Digest {
		return fmt.Errorf("Flux is told of the archive %s, want %s", got, copied.Spec.Digest)
	}
	return nil
}
