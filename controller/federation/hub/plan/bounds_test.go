package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func many(namespace string, n int) []Grid {
	var all []Grid
	for i := range n {
		all = append(all, distributed(namespace, fmt.Sprintf("grid-%04d", i)))
	}
	return all
}

// noise is text that cannot be packed.
func noise(n int) string {
	var text strings.Builder
	for x := uint32(7); text.Len() < n; {
		x = x*1664525 + 1013904223
		text.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"[x>>26])
	}
	return text.String()
}

func (w *west) wantNoted(reason, message string) {
	w.t.Helper()
	w.report()
	w.wantCondition("Current", metav1.ConditionFalse, reason, message)
}

// TestTooManyGrids: a namespace with very many Grids does not keep others from having theirs, and
// loses none of its own.
func TestTooManyGrids(t *testing.T) {
	const most = v1alpha1.MaxNamespaceGrids
	w := newWest(t, slices.Concat(many("greedy", most+1), many("shop", 3))...)
	_, written := w.decide()
	if len(written) != 1 || written["shop"].Grids != 3 {
		t.Fatalf("%d bundles are sent", len(written))
	}
	w.wantNoted("TooManyGrids", "namespace greedy is left as it is in cluster west, which would have more than 250 Grids of it")
	if p, _ := w.decide(); p.Faults["greedy-grid-0000"].Reason != "TooManyGrids" || len(p.Faults) != most+1 {
		t.Errorf("%d Grids have faults", len(p.Faults))
	}
	w.Grids = w.Grids[1:]
	if _, written = w.decide(); written["greedy"].Grids != most {
		t.Errorf("when they are fewer %d are sent", written["greedy"].Grids)
	}
	// Those that leave make room.
	for i := range 10 {
		w.Grids[i].Deleting = true
		w.Grids = append(w.Grids, distributed("greedy", fmt.Sprintf("later-%d", i)))
	}
	if _, written = w.decide(); written["greedy"].Grids != most || len(w.cluster.Object.Status.Withdrawn) != 10 {
		t.Errorf("when others leave %d are sent", written["greedy"].Grids)
	}
}

// TestFullCluster: one namespace cannot take all Grids of a cluster; several can.
func TestFullCluster(t *testing.T) {
	var grids []Grid
	for i := range v1alpha1.MaxGrids / v1alpha1.MaxNamespaceGrids {
		grids = append(grids, many(fmt.Sprintf("tenant-%d", i), v1alpha1.MaxNamespaceGrids)...)
	}
	w := newWest(t, grids...)
	if w.decide(); len(w.cluster.Object.Status.Grids) != v1alpha1.MaxGrids {
		t.Fatalf("%d Grids are in the cluster", len(w.cluster.Object.Status.Grids))
	}
	w.Grids = append(w.Grids, distributed("shop", "pos"))
	w.decide()
	w.wantNoted("TooManyGrids", "namespace shop is left as it is in cluster west, which would have more than 1000 Grids:")
}

// TestWithdrawnOfNamespace: Grids that a namespace has withdrawn, and that the cluster keeps, do
// not keep others from leaving.
func TestWithdrawnOfNamespace(t *testing.T) {
	w := newWest(t, distributed("bank", "pos"), distributed("greedy", "pos"))
	w.decide()
	w.report()
	for i := range v1alpha1.MaxNamespaceGrids {
		uid := fmt.Sprintf("old-%d", i)
		w.cluster.Object.Status.Withdrawn = append(w.cluster.Object.Status.Withdrawn, uid)
		w.cluster.Reports = append(w.cluster.Reports, Report{Object: uid, From: hubUID + "/" + uid, Namespace: "greedy"})
	}
	w.Grids[0].Deleting, w.Grids[1].Deleting = true, true
	if s := w.status(); len(s.Grids) != 1 || s.Grids[0].Namespace != "greedy" || !slices.Contains(s.Withdrawn, "bank-pos") {
		t.Errorf("the status is %+v", s)
	}
	w.wantCondition("Current", metav1.ConditionFalse, "TooManyWithdrawn", "namespace greedy")
}

// TestBundleTooLarge: what is sent fits into a bundle, and a bundle that does not stays as it is.
func TestBundleTooLarge(t *testing.T) {
	heavy := func(name string) Grid {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": "DeploymentGrid", "spec": map[string]any{"text": noise(500_000)}}}
		o.SetNamespace("shop")
		o.SetName(name)
		o.SetUID(types.UID(name))
		o.SetLabels(map[string]string{v1alpha1.LabelFederated: v1alpha1.Federated})
		return Read(hubUID, o)
	}
	w := newWest(t, heavy("a"), heavy("b"), distributed("bank", "pos"))
	_, written := w.decide()
	packed, err := archive.Pack(written["shop"].Objects)
	if err != nil || len(packed) > v1alpha1.MaxBundle || written["shop"].Grids != 2 {
		t.Fatalf("of 2 Grids %d are sent in %d bytes (%v)", written["shop"].Grids, len(packed), err)
	}
	w.Grids = append(w.Grids, heavy("c"), distributed("bank", "web"))
	w.report()
	if _, written = w.decide(); len(written) != 1 || written["bank"].Grids != 2 {
		t.Errorf("with a third one %d bundles are sent", len(written))
	}
	w.wantNoted("BundleTooLarge", "namespace shop is left as it is in cluster west")
}

// TestCollision: a Grid gets into another namespace only if the FleetCluster allows it. Of two
// Grids with one name in the cluster the one that is there stays, and else the one that is in its
// own namespace.
func TestCollision(t *testing.T) {
	aimed := func(namespace string) Grid {
		o := gridState{ref: Ref{Kind: "DeploymentGrid", Namespace: namespace, Name: "pos", UID: namespace}, fed: true}.object()
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationTargetNamespace: "shop"})
		return Read(hubUID, o)
	}
	w := newWest(t, aimed("alien"), aimed("bank"), distributed("shop", "pos"))
	if _, written := w.decide(); len(written) != 1 || written["shop"].Grids != 1 {
		t.Errorf("without being allowed %d bundles are sent", len(written))
	}
	w.wantNoted("TargetNamespaceRefused", "spec.targetNamespaces of FleetCluster west does not allow that")
	w = newWest(t, aimed("alien"), aimed("bank"), distributed("shop", "pos"))
	w.cluster.Object.Spec.TargetNamespaces = []string{"shop"}
	if _, written := w.decide(); len(written) != 1 || written["shop"].Grids != 1 {
		t.Errorf("%d bundles are sent", len(written))
	}
	w.wantNoted("NameCollision", "DeploymentGrid alien/pos is not sent to cluster west, where it would have the name of DeploymentGrid shop/pos")
	w = newWest(t, aimed("bank"))
	w.cluster.Object.Spec.TargetNamespaces = []string{"*"}
	w.decide()
	w.Grids = append(w.Grids, aimed("alien"), distributed("shop", "pos"))
	if p, written := w.decide(); len(written) != 0 || len(p.Clusters[0].Status.Grids) != 1 {
		t.Errorf("after one is there %d more bundles are sent", len(written))
	}
}

// TestFaultStaysInNamespace: a Grid with a fault keeps its own namespace as it is, if it was sent.
func TestFaultStaysInNamespace(t *testing.T) {
	broken := func() Grid {
		return Read(hubUID, gridState{ref: Ref{Kind: "DeploymentGrid", Namespace: "shop", Name: "pos", UID: "shop-pos"}, fed: true, selector: "a in ("}.object())
	}
	w := newWest(t, broken(), distributed("shop", "web"))
	if _, written := w.decide(); written["shop"].Grids != 1 {
		t.Error("a Grid that was never sent keeps others from being sent")
	}
	w.wantNoted("InvalidDistribution", "DeploymentGrid shop/pos is not sent: annotation superedge.io/clusters")
	w = newWest(t, distributed("shop", "pos"), distributed("shop", "web"), distributed("bank", "pos"))
	w.decide()
	w.report()
	w.Grids[0] = broken()
	w.Grids[0].Finalizer = true
	w.Grids[1].Deleting, w.Grids[2].Deleting = true, true
	if s := w.status(); len(w.cluster.Bundles) != 1 || len(s.Grids) != 2 || !slices.Equal(s.Withdrawn, []string{"bank-pos"}) {
		t.Errorf("with a fault the bundles are %v and the status %+v", w.cluster.Bundles, s)
	}
	p, _ := w.decide()
	if p.Faults["shop-pos"].Reason != "InvalidDistribution" || len(p.RemoveFinalizer) != 1 || p.RemoveFinalizer[0].Namespace != "bank" {
		t.Errorf("decided is %+v", p)
	}
}

// TestRefusedTargetStays: a Grid whose target namespace is not allowed any more stays where it is,
// and its namespace with it. It leaves by deletion alone.
func TestRefusedTargetStays(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"), distributed("shop", "web"), distributed("bank", "pos"))
	w.decide()
	w.report()
	aimed := gridState{ref: w.Grids[0].Ref, fed: true}.object()
	aimed.SetAnnotations(map[string]string{v1alpha1.AnnotationTargetNamespace: "kube-system"})
	w.Grids[0] = Read(hubUID, aimed)
	w.Grids[0].Finalizer = true
	w.Grids[1].Deleting, w.Grids[2].Deleting = true, true
	p, _ := w.decide()
	s := p.Clusters[0].Status
	reason := p.Faults["shop-pos"].Reason
	if len(w.cluster.Bundles) != 1 || len(s.Grids) != 2 || !slices.Equal(s.Withdrawn, []string{"bank-pos"}) || reason != "TargetNamespaceRefused" {
		t.Errorf("the bundles are %v, the status %+v, the faults %v", w.cluster.Bundles, s, p.Faults)
	}
	w.wantCondition("Current", metav1.ConditionFalse, "TargetNamespaceRefused", "nothing of this namespace is changed")
	w.Grids[0].Deleting = true
	if s = w.status(); len(w.cluster.Bundles) != 0 || len(s.Grids) != 0 || len(s.Withdrawn) != 3 {
		t.Errorf("after its deletion the bundles are %v, the status %+v", w.cluster.Bundles, s)
	}
}

// TestRest: a bundle that was written rests the longer the larger it is, and then has all that has
// changed meanwhile; others do not wait for it.
func TestRest(t *testing.T) {
	grid := func(namespace string, size, edit int) Grid {
		o := gridState{ref: Ref{Kind: "DeploymentGrid", Namespace: namespace, Name: "pos", UID: namespace}, fed: true, content: edit}.object()
		o.SetAnnotations(map[string]string{"noise": noise(size)})
		g := Read(hubUID, o)
		g.Finalizer = true
		return g
	}
	w := newWest(t, grid("large", 600_000, 0), grid("small", 100, 0))
	w.decide()
	w.report()
	w.cluster.Sent = map[string]time.Time{"large": w.Now, "small": w.Now}
	w.Grids = []Grid{grid("large", 600_000, 1), grid("small", 100, 1), distributed("new", "pos")}
	p, written := w.decide()
	if len(written) != 1 || written["new"].Grids != 1 || p.Recheck != bundleDelay {
		t.Errorf("at first %d bundles are written, then again after %s", len(written), p.Recheck)
	}
	w.Now = w.Now.Add(bundleDelay)
	p, written = w.decide()
	if _, small := written["small"]; !small || len(written) != 1 || p.Recheck < time.Second || p.Recheck > BundleDelayMax {
		t.Errorf("later %d bundles are written, then again after %s", len(written), p.Recheck)
	}
	w.cluster.Sent["large"] = w.Now.Add(-BundleDelayMax)
	if _, written = w.decide(); written["large"].Grids != 1 {
		t.Errorf("at last %d bundles are written", len(written))
	}
	w.cluster.Sent["large"] = w.Now.Add(time.Hour) // the clock was set back
	w.Grids[0] = grid("large", 600_000, 2)
	if _, written = w.decide(); written["large"].Grids != 1 {
		t.Errorf("with another clock %d bundles are written", len(written))
	}
	w.cluster.Sent = map[string]time.Time{"large": w.Now}
	w.Grids[0].Deleting = true
	if w.decide(); w.cluster.Bundles["large"] != "" {
		t.Error("a removal waits")
	}
}

// TestAdopt: what an earlier FleetCluster of that name was sent stays until it is known what it is.
func TestAdopt(t *testing.T) {
	w := newWest(t, distributed("shop", "pos"))
	w.Grids[0].Content.Fault, w.Grids[0].Content.Selects = "its selector cannot be read", nil
	w.cluster.Bundles["shop"] = "from an earlier one"
	if w.decide(); w.cluster.Bundles["shop"] == "" {
		t.Error("the bundle is removed")
	}
	w.Grids[0] = distributed("shop", "pos")
	for range 3 {
		if p := Decide(w.Observed); len(p.Clusters[0].Remove) > 0 {
			t.Error("the bundle is removed before its Grid is listed")
		}
		w.Grids[0].Finalizer = true
	}
}

// TestWithdrawnIsFull: when no more UIDs can be remembered nothing more is removed.
func TestWithdrawnIsFull(t *testing.T) {
	w := newWest(t, distributed("bank", "pos"), distributed("shop", "pos"))
	w.decide()
	w.report()
	for i := range withdrawnMax - 1 {
		uid := fmt.Sprintf("old-%d", i)
		w.cluster.Object.Status.Withdrawn = append(w.cluster.Object.Status.Withdrawn, uid)
		w.cluster.Reports = append(w.cluster.Reports, Report{Object: uid, From: hubUID + "/" + uid})
	}
	w.Grids[0].Deleting, w.Grids[1].Deleting = true, true
	s := w.status()
	if len(s.Withdrawn) != withdrawnMax || len(s.Grids) != 1 || len(w.cluster.Bundles) != 1 {
		t.Errorf("%d UIDs are withdrawn, %d Grids listed", len(s.Withdrawn), len(s.Grids))
	}
	w.wantCondition("Current", metav1.ConditionFalse, "TooManyWithdrawn", "namespace shop")
	w.cluster.Reports = nil
	if s = w.status(); len(s.Grids) != 0 || len(w.cluster.Bundles) != 0 || len(s.Withdrawn) != unreportedMax || !slices.Contains(s.Withdrawn, "shop-pos") {
		t.Errorf("when no report names them %d UIDs are withdrawn, %d Grids listed", len(s.Withdrawn), len(s.Grids))
	}
}

func TestDeleteFleetCluster(t *testing.T) {
	at := metav1.Now()
	for _, c := range []struct {
		what           string
		onDelete       v1alpha1.OnDelete
		pull, detached bool
		reported       bool
		want           bool
	}{
		{what: "its Grids stay", onDelete: v1alpha1.Orphan, pull: true, reported: true, want: true},
		{what: "its Grids stay, and are still applied from here", onDelete: v1alpha1.Orphan, reported: true},
		{what: "its Grids stay, and are not applied from here any more", onDelete: v1alpha1.Orphan, detached: true, reported: true, want: true},
		{what: "its Grids go, and are still there", onDelete: v1alpha1.Remove, pull: true, reported: true},
		{what: "its Grids are gone", onDelete: v1alpha1.Remove, pull: true, want: true},
	} {
		w := newWest(t, distributed("shop", "pos"))
		w.cluster.Object.Spec.Pull, w.cluster.Detached = c.pull, c.detached
		w.decide()
		w.report()
		w.cluster.Object.DeletionTimestamp, w.cluster.Object.Spec.OnDelete = &at, c.onDelete
		w.decide()
		if !c.reported {
			w.cluster.Reports = nil
		}
		p, written := w.decide()
		if got := p.Clusters[0].RemoveFinalizer; got != c.want || len(written) > 0 || len(w.cluster.Bundles) > 0 != (c.onDelete == v1alpha1.Orphan) {
			t.Errorf("%s: the finalizer is removed: %t, bundles %v", c.what, got, w.cluster.Bundles)
		}
		if c.onDelete == v1alpha1.Remove && c.reported {
			w.cluster.Heartbeat = nil
			w.wantCondition("Current", metav1.ConditionFalse, "Removing", `1 reports and 0 bundles are left; to let go of a cluster that does not answer, `+
				`and leave its Grids there, run: kubectl patch fleetcluster west --type merge -p '{"spec":{"onDelete":"Orphan"}}'`)
		}
	}
}

// TestAcceptedNamespaces: a cluster whose FleetCluster names namespaces gets no Grids into others.
// What is there stays, and both sides say so. A namespace that is made has the labels that confine
// its Pods.
func TestAcceptedNamespaces(t *testing.T) {
	w := newWest(t, distributed("bank", "pos"), distributed("shop", "pos"))
	w.PodSecurity = map[string]map[string]string{"shop": {"pod-security.kubernetes.io/enforce": "restricted"}}
	w.cluster.Object.Spec.CreateNamespace = true
	w.cluster.Object.Spec.Namespaces = []string{"shop"}
	_, written := w.decide()
	if len(written) != 1 || !strings.Contains(string(written["shop"].Objects[0]), `"labels":{"pod-security.kubernetes.io/enforce":"restricted"}`) {
		t.Fatalf("%d bundles are sent: %s", len(written), written["shop"].Objects)
	}
	w.wantNoted("NamespaceRefused", "DeploymentGrid bank/pos is not sent to cluster west: spec.namespaces of FleetCluster west does not have namespace bank")
	w.cluster.Object.Spec.Namespaces = []string{"bank"}
	if _, written = w.decide(); written["bank"].Grids != 1 || len(w.cluster.Bundles) != 2 {
		t.Errorf("the bundles are %v", w.cluster.Bundles)
	}
	w.PodSecurity["bank"] = w.PodSecurity["shop"]
	if _, written = w.decide(); written["bank"].Grids != 1 {
		t.Error("labels of a namespace are not sent")
	}
}
