package agent

import (
	"testing"
	"time"

	"gridproxy/controller/federation/agent/delivery"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestPrompt: the agent asks Flux to look again, ever less often, while Flux does not react. It
// asks nothing when Flux fails, is suspended or has reacted.
func TestPrompt(t *testing.T) {
	for name, c := range map[string]struct {
		suspended, reacted bool
		deleting           bool
		message            string
		want               []int // seconds
	}{
		"it does not react": {want: []int{20, 40, 80, 160, 320, 640}},
		"it is deleting":    {suspended: true, deleting: true, want: []int{20, 40, 80, 160, 320, 640}},
		"it is suspended":   {suspended: true},
		"it fails":          {message: "no matches for kind"},
		"it has reacted":    {reacted: true},
	} {
		t.Run(name, func(t *testing.T) {
			k := newObject(kustomizationKind(), "gridproxy", fluxName("shop"))
			k.Object["spec"] = map[string]any{"suspend": c.suspended}
			if c.message != "" {
				k.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "message": c.message}}}
			}
			if c.deleting {
				now := metav1.Now()
				k.SetDeletionTimestamp(&now)
				k.SetFinalizers([]string{"finalizers.fluxcd.io"})
			}
			store := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(k).Build()
			start := time.Unix(1000, 0)
			now := start
			a := New(Config{Namespace: "gridproxy", Now: func() time.Time { return now }})
			a.Engine.Client = store
			if !c.reacted {
				a.waits["shop"] = waiting{since: start}
			}
			var got []int
			last := ""
			for ; now.Sub(start) < 20*time.Minute; now = now.Add(time.Second) {
				must(t, a.prompt(t.Context()))
				must(t, store.Get(t.Context(), client.ObjectKeyFromObject(k), k))
				if at := k.GetAnnotations()[requested]; at != last {
					last = at
					got = append(got, int(now.Sub(start).Seconds()))
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("asked at (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPromptOfFailures: Flux that tries a failure again, and does not answer while it does, is not
// asked each time.
func TestPromptOfFailures(t *testing.T) {
	k := newObject(kustomizationKind(), "gridproxy", fluxName("shop"))
	k.SetGeneration(1)
	now, asked, last := time.Unix(1000, 0), 0, ""
	a := New(Config{Namespace: "gridproxy", Now: func() time.Time { return now }})
	store := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).WithObjects(k).Build()
	a.Engine.Client = store
	for second := range 1200 {
		ready := "Unknown"
		if second%45 < 15 {
			ready = "False"
		}
		must(t, store.Get(t.Context(), client.ObjectKeyFromObject(k), k))
		if at := k.GetAnnotations()[requested]; at != last {
			last = at
			asked++
		}
		condition := map[string]any{"type": "Ready", "status": ready, "message": "it does not answer"}
		k.Object["status"] = map[string]any{"observedGeneration": int64(1), "conditions": []any{condition}}
		must(t, store.Update(t.Context(), k))
		a.progress(t.Context(), "shop", k)
		must(t, a.prompt(t.Context()))
		now = now.Add(time.Second)
	}
	if asked == 0 || asked > 4 {
		t.Errorf("Flux was asked %d times in 20 minutes", asked)
	}
}

// TestInventory: what Flux says that it has applied is read; a Kustomization that is being deleted
// says nothing.
func TestInventory(t *testing.T) {
	k := newObject(kustomizationKind(), "gridproxy", fluxName("shop"))
	if got := inventory(k); len(got) > 0 {
		t.Errorf("a new Kustomization knows %v", got)
	}
	k.Object["status"] = map[string]any{"inventory": map[string]any{"entries": []any{
		map[string]any{"id": "_shop__Namespace", "v": "v1"},
		map[string]any{"id": "shop_pos_superedge.io_DeploymentGrid", "v": "v1"},
		map[string]any{"id": "torn"}, "torn",
	}}}
	want := map[delivery.Key]bool{{Kind: "Namespace", Name: "shop"}: true, {Kind: "DeploymentGrid", Namespace: "shop", Name: "pos"}: true}
	if diff := cmp.Diff(want, inventory(k)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	now := metav1.Now()
	k.SetDeletionTimestamp(&now)
	if got := inventory(k); got != nil {
		t.Errorf("a Kustomization that is being deleted knows %v", got)
	}
}
