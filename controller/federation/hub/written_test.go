package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWritten: what was written is waited for until the caches show it, or something later.
func TestWritten(t *testing.T) {
	begin := time.Unix(1000, 0)
	bundle := func(uid, version string) v1alpha1.GridBundle {
		return v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-west", Name: "shop", UID: types.UID(uid), ResourceVersion: version}}
	}
	bundles := func(all ...v1alpha1.GridBundle) lists { return lists{bundles: all} }
	grids := func(version string) lists {
		g := newGrid("shop", "pos")
		g.ResourceVersion = version
		return lists{grids: []client.Object{g}}
	}
	b9, b10, g10 := bundle("1", "9"), bundle("1", "10"), grids("10").grids[0]
	ending, at := bundle("1", "11"), metav1.NewTime(begin)
	ending.DeletionTimestamp = &at
	wrote := func(w *writes) { w.versions.Wrote(g10, begin) }
	applied := func(w *writes) { w.apply(&b10, begin) }
	deleted := func(w *writes) { w.delete("1", begin) }
	for _, test := range []struct {
		name  string
		do    func(*writes)
		l     lists
		after time.Duration
		want  bool
	}{
		{"nothing", func(*writes) {}, lists{}, 0, true},
		{"an older Grid", wrote, grids("9"), cacheTimeout - 1, false},
		{"a Grid that stays older", wrote, grids("9"), cacheTimeout, true},
		{"the Grid", wrote, grids("10"), 0, true},
		{"a later Grid", wrote, grids("11"), 0, true},
		{"a Grid that is gone", wrote, lists{}, 0, true},
		{"a bundle that is not shown", applied, lists{}, cacheTimeout - 1, false},
		{"a bundle that never shows", applied, lists{}, cacheTimeout, true},
		{"an older bundle", applied, bundles(b9), cacheTimeout - 1, false},
		{"the bundle", applied, bundles(b10), 0, true},
		{"a deleted bundle that still shows", deleted, bundles(b10), cacheTimeout - 1, false},
		{"a deleted bundle that never goes", deleted, bundles(b10), cacheTimeout, true},
		{"a deleted bundle with a finalizer of others", deleted, bundles(ending), 0, true},
		{"a deleted bundle", deleted, lists{}, 0, true},
		{"a bundle after a deleted one", deleted, bundles(bundle("2", "12")), 0, true},
	} {
		w := newWrites()
		test.do(w)
		if got, missed := w.shown(test.l, begin.Add(test.after)); got != test.want || (missed > 0) != (test.after == cacheTimeout) {
			t.Errorf("%s: shown: %t, want %t, without %d", test.name, got, test.want, missed)
		}
		w.shown(lists{}, begin.Add(time.Hour))
		_, oldGrid := w.versions.Stale(grids("9").grids[0])
		_, oldBundle := w.versions.Stale(&b9)
		if oldGrid || oldBundle || len(w.applied)+len(w.deleted) > 0 {
			t.Errorf("%s: what is gone is remembered: %v %v %v", test.name, &w.versions, w.applied, w.deleted)
		}
	}
}

// TestForeignFinalizer: a bundle that cannot vanish keeps the finalizer of its Grids and nothing
// else; it is tried again less and less often.
func TestForeignFinalizer(t *testing.T) {
	shop := newGrid("shop", "pos")
	w := newHubInMemory(t, append(newFleet("west"), shop)...)
	w.settle()
	b := &v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-west", Name: "shop"}}
	w.change(b, func() { b.Finalizers = []string{"others/finalizer"} })
	w.delete(shop)
	w.create(newGrid("bank", "web"))
	var pause time.Duration
	for range 12 {
		result, err := w.step()
		w.must(err)
		pause = result.RequeueAfter
	}
	const guarded = `grid shop/pos ["others/finalizer" "superedge.io/federation"]`
	state := w.state()
	if pause != cacheTimeout || !strings.Contains(state, "bank/web:Waiting") || !strings.Contains(state, guarded) {
		t.Errorf("it is tried again after %s; the hub has\n%s", pause, state)
	}
	w.change(b, func() { b.Finalizers = nil })
	if w.settle(); strings.Contains(w.state(), guarded) || strings.Contains(w.state(), "bundle fleet-west/shop") {
		t.Errorf("then the hub has\n%s", w.state())
	}
}

// TestNumbersWait: however often a member writes another number into its Lease, the status of its
// FleetCluster is written at most every 10 s for it.
func TestNumbersWait(t *testing.T) {
	lease := newLease("west", time.Unix(1, 0), `{"clusterUID":"u"}`)
	w := newHubInMemory(t, append(newFleet("west"), lease)...)
	w.settle()
	w.writes, w.now = nil, w.now.Add(plan.StatusPeriod)
	for i := range 12 {
		w.change(lease, func() {
			lease.Annotations[v1alpha1.AnnotationHeartbeat] = fmt.Sprintf(`{"clusterUID":"u","nodes":%d}`, i+1)
		})
		w.must(w.reconcile())
	}
	if len(w.writes) != 2 {
		t.Errorf("in 12 s there are the writes %q", w.writes)
	}
}
