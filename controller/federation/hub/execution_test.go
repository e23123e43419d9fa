package hub

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func bundleOf(t *testing.T, grids ...*v1.DeploymentGrid) plan.Bundle {
	t.Helper()
	b := plan.Bundle{Grids: int32(len(grids))}
	for _, g := range grids {
		c := plan.Read("hub", untyped(g)).Content
		if c.Fault != "" {
			t.Fatal(c.Fault)
		}
		b.Objects = append(b.Objects, c.Object)
		b.Revision += c.Revision
	}
	return b
}

func rowOf(g *v1.DeploymentGrid) v1alpha1.ClusterGrid {
	return v1alpha1.ClusterGrid{Kind: "DeploymentGrid", Namespace: g.Namespace, Name: g.Name, UID: string(g.UID), Revision: "new", State: "Waiting"}
}

func refOf(g *v1.DeploymentGrid) plan.Ref {
	return plan.Ref{Kind: "DeploymentGrid", Namespace: g.Namespace, Name: g.Name, UID: string(g.UID)}
}

// twoNamespaces is a hub with a new and a withdrawn Grid in each of the namespaces shop and bank,
// and what is to be done with them in the cluster west.
func twoNamespaces(t *testing.T) *hubInMemory {
	t.Helper()
	shopNew, shopOld, bankNew, bankOld := newGrid("shop", "shop-new"), newGrid("shop", "shop-old"), newGrid("bank", "bank-new"), newGrid("bank", "bank-old")
	for _, g := range []*v1.DeploymentGrid{shopOld, bankOld} {
		g.Labels, g.Finalizers = nil, append(g.Finalizers, v1alpha1.Finalizer)
	}
	w := newHubInMemory(t, append(newFleet("west"), shopNew, shopOld, bankNew, bankOld)...)
	w.r.decide = func(plan.Observed) plan.Plan {
		return plan.Plan{
			AddFinalizer: []plan.Ref{refOf(shopNew), refOf(bankNew)}, RemoveFinalizer: []plan.Ref{refOf(shopOld), refOf(bankOld)},
			Clusters: []plan.ClusterPlan{{
				Name: "west", AddFinalizer: true, Write: map[string]plan.Bundle{"shop": bundleOf(t, shopNew), "bank": bundleOf(t, bankNew)},
				Status: v1alpha1.FleetClusterStatus{Grids: []v1alpha1.ClusterGrid{rowOf(bankNew), rowOf(shopNew)}, Withdrawn: []string{"bank-old", "shop-old"}},
			}},
		}
	}
	return w
}

func (w *hubInMemory) wrote(what string) bool { return slices.Contains(w.writes, what) }

// TestDependentSteps: a step that fails keeps those from running that depend on it, and no others.
func TestDependentSteps(t *testing.T) {
	const (
		guardShop, guardBank, guardWest = "patch shop/shop-new", "patch bank/bank-new", "patch west"
		sendShop, sendBank, report      = "apply fleet-west/shop", "apply fleet-west/bank", "status west"
		releaseShop, releaseBank        = "patch shop/shop-old", "patch bank/bank-old"
	)
	all := []string{guardShop, guardBank, guardWest, sendShop, sendBank, report, releaseShop, releaseBank}
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "any"}, "any", errInjected)
	for _, test := range []struct {
		name   string
		failed string
		answer error
		not    []string // do not happen
	}{
		{"nothing fails", "", nil, nil},
		{"finalizer of a Grid", guardShop, errInjected, []string{sendShop, report, releaseShop, releaseBank}},
		{"finalizer of a Grid, refused", guardShop, forbidden, []string{sendShop, releaseShop}},
		{"finalizer of the FleetCluster", guardWest, errInjected, []string{sendShop, sendBank, report, releaseShop, releaseBank}},
		{"bundle", sendShop, errInjected, []string{report, releaseShop, releaseBank}},
		{"bundle, refused", sendShop, forbidden, []string{releaseShop}},
		{"status", report, errInjected, []string{releaseShop, releaseBank}},
		{"finalizer that goes", releaseShop, errInjected, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := twoNamespaces(t)
			w.fail = func(n int) (bool, error) {
				if w.writes[n-1] == test.failed {
					return false, test.answer
				}
				return true, nil
			}
			if err := w.reconcile(); (err != nil) != (test.answer != nil) {
				t.Errorf("the reconcile ends with %v", err)
			}
			for _, write := range all {
				if want := !slices.Contains(test.not, write); w.wrote(write) != want {
					t.Errorf("%s: happened: %t, want %t; all: %q", write, !want, want, w.writes)
				}
			}
		})
	}
}

// TestOthersFinalizers: finalizers of others stay, also if they are changed at the same time.
func TestOthersFinalizers(t *testing.T) {
	w := twoNamespaces(t)
	g := newGrid("shop", "shop-new")
	w.meanwhile(func() { w.change(g, func() { g.Finalizers = []string{"more/finalizer"} }) })
	w.must(w.reconcile())
	for _, want := range []string{
		`shop/shop-new ["more/finalizer" "superedge.io/federation"]`, `bank/bank-new ["others/finalizer" "superedge.io/federation"]`,
		`shop/shop-old ["others/finalizer"]`,
	} {
		if state := w.state(); !strings.Contains(state, want) {
			t.Errorf("want %s in\n%s", want, state)
		}
	}
}

// TestDeletedMeanwhile: a Grid that is deleted since the decision gets no finalizer, and is not
// sent.
func TestDeletedMeanwhile(t *testing.T) {
	w := twoNamespaces(t)
	w.meanwhile(func() { w.delete(newGrid("shop", "shop-new")) })
	if result, err := w.step(); err != nil || result.RequeueAfter != cacheDelay {
		t.Errorf("%v, again after %s", err, result.RequeueAfter)
	}
	if w.wrote("apply fleet-west/shop") || w.wrote("status west") || !w.wrote("apply fleet-west/bank") {
		t.Errorf("writes: %q", w.writes)
	}
}

// TestBehind: no decision is taken while the cache does not show what was written.
func TestBehind(t *testing.T) {
	w := twoNamespaces(t)
	var before v1alpha1.FleetClusterList
	w.list(&before)
	decisions := 0
	w.meanwhile(func() { decisions++ })
	for i, test := range []struct {
		behind []v1alpha1.FleetCluster
		want   int
	}{{nil, 1}, {before.Items, 1}, {nil, 2}} {
		w.behind = test.behind
		result, err := w.step()
		if err != nil || decisions != test.want || test.behind != nil && result.RequeueAfter != cacheDelay {
			t.Errorf("step %d: %v, %d decisions, want %d; again after %s", i, err, decisions, test.want, result.RequeueAfter)
		}
	}
}

// TestChangedGridStays: the finalizer stays on a Grid that has changed since the decision.
func TestChangedGridStays(t *testing.T) {
	w := twoNamespaces(t)
	g := newGrid("shop", "shop-old")
	w.meanwhile(func() {
		w.change(g, func() { g.Labels = map[string]string{v1alpha1.LabelFederated: v1alpha1.Federated} })
	})
	w.must(w.reconcile())
	if want, state := `shop/shop-old ["others/finalizer" "superedge.io/federation"]`, w.state(); !strings.Contains(state, want) {
		t.Errorf("want %s in\n%s", want, state)
	}
}

// TestStaleCache: no Grid loses its finalizer if the API server shows a bundle or a FleetCluster
// that the decision does not rest on.
func TestStaleCache(t *testing.T) {
	for _, test := range []struct {
		name  string
		newer func(*hubInMemory)
		not   []string
	}{
		{"a bundle", func(w *hubInMemory) {
			east := &v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{
				Namespace: "fleet-east", Name: "shop", Labels: map[string]string{v1alpha1.LabelCluster: "east"},
				Annotations: map[string]string{v1alpha1.AnnotationRevision: "newer"},
			}}
			w.create(east)
		}, []string{"patch shop/shop-old"}},
		{"a FleetCluster", func(w *hubInMemory) {
			c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: "east"}}
			w.change(c, func() { c.Labels = map[string]string{"a": "b"} })
		}, []string{"patch shop/shop-old", "patch bank/bank-old"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := twoNamespaces(t)
			for _, o := range newFleet("east") {
				w.create(o)
			}
			w.meanwhile(func() { test.newer(w) })
			w.unchecked = true
			w.must(w.reconcile())
			for _, write := range []string{"patch shop/shop-old", "patch bank/bank-old"} {
				if want := !slices.Contains(test.not, write); w.wrote(write) != want {
					t.Errorf("%s: happened: %t, want %t", write, !want, want)
				}
			}
		})
	}
}

// TestUnfitBundle: a bundle that is too large is left as it is, the FleetCluster says so, its Grids
// keep their finalizers, and it is not packed again. That of another namespace is written.
func TestUnfitBundle(t *testing.T) {
	w := twoNamespaces(t)
	decide := w.r.decide
	w.r.decide = func(o plan.Observed) plan.Plan {
		p := decide(o)
		b := p.Clusters[0].Write["shop"]
		for range 2 { // which no archive makes smaller
			noise := make([]byte, v1alpha1.MaxBundle)
			for i := range noise {
				noise[i] = byte('!' + rand.IntN(90))
			}
			text, err := json.Marshal(map[string]string{"kind": "DeploymentGrid", "noise": string(noise)})
			w.must(err)
			b.Objects = append(b.Objects, text)
		}
		b.Revision = "large"
		p.Clusters[0].Write["shop"] = b
		return p
	}
	for range 2 {
		w.must(w.reconcile())
		if w.wrote("apply fleet-west/shop") || !w.wrote("apply fleet-west/bank") || w.wrote("patch shop/shop-old") || !w.wrote("patch bank/bank-old") {
			t.Errorf("writes: %q", w.writes)
		}
		if want, state := "bank/bank-new:Waiting shop/shop-new:"+reasonTooLarge, w.state(); !strings.Contains(state, want) {
			t.Errorf("want %s in\n%s", want, state)
		}
		if len(w.r.unfit) != 1 {
			t.Errorf("it is packed again: %v", w.r.unfit)
		}
	}
	w.r.decide = decide
	if err := w.reconcile(); err != nil || !w.wrote("apply fleet-west/shop") {
		t.Errorf("when it is smaller: %v, writes: %q", err, w.writes)
	}
}

// TestLoopOfEdits: however often a large Grid is edited, its bundle is written at most every few
// seconds, the first time at once.
func TestLoopOfEdits(t *testing.T) {
	g := newGrid("shop", "pos")
	noise := make([]byte, 300_000)
	for i := range noise {
		noise[i] = byte('0' + rand.IntN(70))
	}
	g.Annotations = map[string]string{"noise": string(noise)}
	w := newHubInMemory(t, append(newFleet("west"), g)...)
	w.settle()
	w.writes, w.now = nil, w.now.Add(time.Minute)
	for i := range 6 {
		w.change(g, func() { g.Labels["edit"] = string(rune('a' + i)) })
		w.must(w.reconcile())
		if n := len(w.writes); i == 0 && n == 0 {
			t.Error("the first edit waits")
		}
	}
	sent := 0
	for _, what := range w.writes {
		if what == "apply fleet-west/shop" {
			sent++
		}
	}
	if sent < 2 || sent > 3 {
		t.Errorf("in 6 s the bundle is written %d times: %q", sent, w.writes)
	}
	w.settle()
	w.now = w.now.Add(time.Minute)
	if w.settle(); len(w.r.written.sent) > 0 {
		t.Errorf("rests are remembered: %v", w.r.written.sent)
	}
}

// TestBoundedErrors: however many steps fail, few of them are named.
func TestBoundedErrors(t *testing.T) {
	all := make([]error, 1000)
	for i := range all[:900] {
		all[i] = errInjected
	}
	if text := joined(all).Error(); strings.Count(text, "\n") != errorsMax || !strings.Contains(text, "and 890 more") {
		t.Error(text)
	}
	if err := joined(make([]error, 10)); err != nil {
		t.Error(err)
	}
}
