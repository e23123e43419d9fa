package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/removal"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

// fleetModel is a hub and its clusters, in which each cluster applies and reports immediately.
type fleetModel struct {
	t rapid.TB
	Observed
	objects map[string]*unstructured.Unstructured // Grids, by UID
	sent    map[string]map[string]string          // by cluster and UID: the namespace in the cluster
	edited  map[string]bool                       // the namespaces of edited objects
	lost    map[string][]time.Time                // by UID: when it has left a cluster
	most    map[string]int                        // by UID: in how many clusters it has been
}

func newFleetModel(t rapid.TB, clusters ...*v1alpha1.FleetCluster) *fleetModel {
	w := &fleetModel{
		t: t, objects: map[string]*unstructured.Unstructured{}, sent: map[string]map[string]string{}, edited: map[string]bool{},
		lost: map[string][]time.Time{}, most: map[string]int{},
		Observed: Observed{Hub: hubUID, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), Grace: 5 * time.Minute, Budget: removal.Default()},
	}
	for _, c := range clusters {
		w.sent[c.Name] = map[string]string{}
		w.Clusters = append(w.Clusters, Cluster{Object: c, Namespace: true, Bundles: map[string]string{}})
	}
	return w
}

func (w *fleetModel) grid(namespace, name string, annotations map[string]string) *unstructured.Unstructured {
	uid := namespace + "-" + name
	o := gridState{ref: Ref{Kind: "DeploymentGrid", Namespace: namespace, Name: name, UID: uid}, fed: true}.object()
	o.SetAnnotations(annotations)
	w.objects[uid] = o
	return o
}

// settle decides and executes until nothing changes.
func (w *fleetModel) settle() Plan {
	w.t.Helper()
	for range 20 {
		w.read()
		for i := range w.Clusters {
			c := &w.Clusters[i]
			c.Heartbeat = &Heartbeat{Heartbeat: v1alpha1.Heartbeat{ClusterUID: c.Object.Name}, Renewal: w.Now.String(), Heard: w.Now}
		}
		p := Decide(w.Observed)
		if !w.execute(p) {
			return p
		}
	}
	w.t.Fatal("there is always something to do")
	return Plan{}
}

// read observes the Grids as the hub does.
func (w *fleetModel) read() {
	w.Grids = nil
	for _, uid := range slices.Sorted(maps.Keys(w.objects)) {
		g := Read(hubUID, w.objects[uid])
		if !g.Content.Wanted && !g.Finalizer {
			g.Content = Content{}
		}
		w.Grids = append(w.Grids, g)
	}
}

func (w *fleetModel) execute(p Plan) (changed bool) {
	for _, r := range p.AddFinalizer {
		w.objects[r.UID].SetFinalizers([]string{v1alpha1.Finalizer})
	}
	for _, r := range p.RemoveFinalizer {
		w.objects[r.UID].SetFinalizers(nil)
	}
	changed = len(p.AddFinalizer)+len(p.RemoveFinalizer) > 0
	for i, c := range p.Clusters {
		to := &w.Clusters[i]
		for _, namespace := range slices.Sorted(maps.Keys(c.Write)) {
			w.send(to, namespace, c.Write[namespace])
		}
		for _, namespace := range c.Remove {
			w.send(to, namespace, Bundle{})
		}
		o := to.Object.DeepCopy()
		if c.AddFinalizer {
			o.Finalizers = []string{v1alpha1.Finalizer}
		}
		o.Status = c.Status
		changed = changed || len(c.Write)+len(c.Remove) > 0 || !reflect.DeepEqual(o, to.Object)
		to.Object = o
		to.Reports = nil
		for _, row := range o.Status.Grids {
			if place, there := w.sent[o.Name][row.UID]; there {
				to.Reports = append(to.Reports, Report{
					Object: row.UID, From: hubUID + "/" + row.UID, Revision: row.Revision, Kind: row.Kind, Namespace: place, Name: row.Name, Observed: true,
				})
			}
		}
	}
	return changed
}

func (w *fleetModel) send(to *Cluster, namespace string, b Bundle) {
	next := map[string]string{}
	for _, text := range b.Objects {
		var o struct{ Metadata metav1.ObjectMeta }
		if err := json.Unmarshal(text, &o); err != nil {
			w.t.Fatal(err)
		}
		next[strings.TrimPrefix(o.Metadata.Annotations[v1alpha1.AnnotationFrom], hubUID+"/")] = o.Metadata.Namespace
	}
	sent := w.sent[to.Object.Name]
	for uid, place := range sent {
		if w.objects[uid].GetNamespace() == namespace && next[uid] != place {
			w.lost[uid] = append(w.lost[uid], w.Now)
			delete(sent, uid)
		}
	}
	maps.Copy(sent, next)
	for uid := range next {
		w.most[uid] = max(w.most[uid], countOf(w.sent, uid))
	}
	if to.Bundles[namespace] = b.Revision; b.Revision == "" {
		delete(to.Bundles, namespace)
	}
}

func (w *fleetModel) pass(d time.Duration) Plan {
	w.t.Helper()
	w.Now = w.Now.Add(d)
	return w.settle()
}

// leaving is what a row says of a Grid that leaves.
func (w *fleetModel) leaving(cluster, uid string) string {
	for _, c := range w.Clusters {
		for _, row := range c.Object.Status.Grids {
			if c.Object.Name == cluster && row.UID == uid {
				return row.Leaving
			}
		}
	}
	return "gone"
}

func (w *fleetModel) wantLeaving(cluster, uid, want string) {
	w.t.Helper()
	if got := w.leaving(cluster, uid); got != want {
		w.t.Fatalf("at %s Grid %s in cluster %s:\n got %q\nwant %q", w.Now.Format(time.TimeOnly), uid, cluster, got, want)
	}
}

func regions(names ...string) []*v1alpha1.FleetCluster {
	var all []*v1alpha1.FleetCluster
	for i, region := range names {
		all = append(all, newFleetCluster(fmt.Sprintf("c%d", i), region))
	}
	return all
}

// TestLeaving: what becomes of a Grid that is not meant for a cluster any more, and what it says.
func TestLeaving(t *testing.T) {
	w := newFleetModel(t, regions("a", "a", "b")...)
	o := w.grid("shop", "pos", nil)
	w.grid("shop", "web", nil)
	w.grid("shop", "till", nil)
	w.settle()
	reselect := func(to string) {
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationClusters: to})
		w.settle()
	}
	reselect("regoin=a")
	w.pass(24 * time.Hour)
	w.wantLeaving("c0", "shop-pos", "its selector matches no cluster")
	reselect("region=a")
	w.wantLeaving("c0", "shop-pos", "")
	w.wantLeaving("c2", "shop-pos", "its annotation superedge.io/clusters does not select cluster c2; "+
		"it leaves c2 at 2026-01-02T00:05:00Z, then at most 1 clusters an hour")
	reselect("region=b")
	w.wantLeaving("c2", "shop-pos", "")
	if p := w.pass(4*time.Minute + 59*time.Second); p.Recheck != time.Second {
		t.Fatalf("it is decided again after %s", p.Recheck)
	}
	w.wantLeaving("c1", "shop-pos", "its annotation superedge.io/clusters does not select cluster c1; "+
		"it leaves c1 at 2026-01-02T00:05:00Z, then at most 1 clusters an hour")
	w.pass(time.Second)
	w.wantLeaving("c0", "shop-pos", "gone")
	w.wantLeaving("c1", "shop-pos", "its annotation superedge.io/clusters does not select cluster c1; it leaves c1 when at most 1 clusters an hour lose it")
	o.SetAnnotations(map[string]string{v1alpha1.AnnotationClusters: "region=b", v1.AnnotationAllowRemoval: "cluster/c1@2026-01-02T00:00:00Z"})
	w.settle()
	w.wantLeaving("c1", "shop-pos", "gone")
	// A label that is dropped together with the finalizer, as by kubectl replace.
	o.SetLabels(nil)
	o.SetFinalizers(nil)
	w.pass(time.Minute)
	if len(o.GetFinalizers()) != 1 || w.sent["c2"]["shop-pos"] != "shop" {
		t.Fatalf("without its label the Grid has the finalizers %v and is in %v", o.GetFinalizers(), w.sent["c2"])
	}
	w.pass(2 * time.Hour)
	w.wantLeaving("c2", "shop-pos", "gone")
	if len(o.GetFinalizers()) != 0 {
		t.Fatalf("in no cluster it has the finalizers %v", o.GetFinalizers())
	}
}

// TestMoving: a Grid with another target namespace stays in the old one as it is on the hub.
func TestMoving(t *testing.T) {
	w := newFleetModel(t, regions("a")...)
	w.Clusters[0].Object.Spec.TargetNamespaces = []string{"*"}
	o := w.grid("shop", "pos", nil)
	w.settle()
	before := w.Clusters[0].Bundles["shop"]
	o.SetAnnotations(map[string]string{v1alpha1.AnnotationTargetNamespace: "prod"})
	w.pass(time.Minute)
	if w.sent["c0"]["shop-pos"] != "shop" || w.Clusters[0].Bundles["shop"] != before {
		t.Fatalf("it is in %v, and sent again: %t", w.sent["c0"], w.Clusters[0].Bundles["shop"] != before)
	}
	o.Object["spec"] = map[string]any{"gridUniqKey": "other"}
	w.settle()
	if w.sent["c0"]["shop-pos"] != "shop" || w.Clusters[0].Bundles["shop"] == before {
		t.Fatalf("an edit is not sent to %v", w.sent["c0"])
	}
	w.pass(5 * time.Minute)
	if w.sent["c0"]["shop-pos"] != "prod" {
		t.Fatalf("after the grace it is in %v", w.sent["c0"])
	}
	w.wantLeaving("c0", "shop-pos", "")
}

// TestLeavingWhileSuspended: a mistake that is made and corrected while a cluster is suspended does
// not shorten the grace after the next one.
func TestLeavingWhileSuspended(t *testing.T) {
	w := newFleetModel(t, regions("a", "b")...)
	grid := w.grid("shop", "pos", map[string]string{v1alpha1.AnnotationClusters: "region=a"})
	w.grid("shop", "web", nil)
	w.grid("shop", "till", nil)
	set := func(selector string, suspend bool) {
		grid.SetAnnotations(map[string]string{v1alpha1.AnnotationClusters: selector})
		w.Clusters[0].Object.Spec.Suspend = suspend
		w.settle()
	}
	set("region=a", false)
	set("region=b", false)
	set("region=b", true)
	set("region=a", true)
	w.pass(24 * time.Hour)
	w.pass(2 * time.Hour) // the other cluster has lost it again, and its place in the budget is free
	set("region=b", true)
	set("region=b", false)
	w.pass(time.Minute)
	if w.sent["c0"]["shop-pos"] == "" {
		t.Fatalf("the cluster has %v", w.sent["c0"])
	}
}

// TestMostLeave: if most Grids of a cluster would leave at once they stay until a person lets them
// go.
func TestMostLeave(t *testing.T) {
	w := newFleetModel(t, regions("a", "b")...)
	for _, name := range []string{"pos", "web", "till"} {
		w.grid("shop", name, map[string]string{v1alpha1.AnnotationClusters: "region in (a, b)"})
	}
	w.settle()
	w.Clusters[0].Object.Labels = map[string]string{"region": "c"}
	w.settle()
	w.pass(24 * time.Hour)
	if len(w.sent["c0"]) != 3 {
		t.Fatalf("the cluster has %v", w.sent["c0"])
	}
	current := func() string {
		return meta.FindStatusCondition(Decide(w.Observed).Clusters[0].Status.Conditions, v1alpha1.ConditionCurrent).Message
	}
	message := current()
	const command = "kubectl annotate fleetcluster c0 --overwrite superedge.io/release-distribution="
	_, entries, found := strings.Cut(message, command)
	if !found || !strings.HasPrefix(message, "3 of 3 Grids are not meant for cluster c0 any more, which looks like a mistake, so they stay") {
		t.Fatalf("the condition says %q", message)
	}
	w.Now = w.Now.Add(time.Hour)
	if message = current(); !strings.Contains(message, command) || !strings.Contains(message, "was last heard") {
		t.Fatalf("of a silent cluster the condition says %q", message)
	}
	w.Clusters[0].Object.Annotations = map[string]string{v1alpha1.AnnotationRelease: entries}
	if w.settle(); len(w.sent["c0"]) != 0 || len(w.sent["c1"]) != 3 {
		t.Fatalf("after the command the clusters have %v", w.sent)
	}
}

// TestRemovalsOfOneNamespace: Grids of one namespace take at most half of the places of an hour,
// and deleted ones take none.
func TestRemovalsOfOneNamespace(t *testing.T) {
	w := newFleetModel(t, regions("a")...)
	for i := range removalsMax/2 + 1 {
		w.grid("greedy", fmt.Sprint(i), nil)
		w.grid("stays", fmt.Sprint(i), nil)
	}
	last := w.grid("shop", "pos", nil)
	w.grid("shop", "web", nil)
	w.settle()
	for _, o := range w.objects {
		if o.GetNamespace() == "greedy" || o == last {
			o.SetLabels(nil)
		}
	}
	w.settle()
	w.pass(5 * time.Minute)
	if got := len(w.sent["c0"]); got != removalsMax/2+1+2 || w.sent["c0"]["shop-pos"] != "" {
		t.Fatalf("the cluster has %d Grids, shop-pos in %q", got, w.sent["c0"]["shop-pos"])
	}
	if w.pass(time.Hour); len(w.sent["c0"]) != removalsMax/2+1+1 {
		t.Fatalf("after an hour the cluster has %d Grids", len(w.sent["c0"]))
	}
	maps.DeleteFunc(w.objects, func(_ string, o *unstructured.Unstructured) bool { return o.GetNamespace() == "greedy" })
	if w.settle(); len(w.Clusters[0].Object.Status.Removals) != 0 {
		t.Fatalf("of deleted Grids there are the removals %v", w.Clusters[0].Object.Status.Removals)
	}
}

// TestOneMistake: one edit of one object, but a deletion, takes no Grid out of a cluster within the
// grace, and then from no more clusters an hour than the budget allows. Undone before, it leaves no
// trace. Only the namespaces of edited objects change.
func TestOneMistake(t *testing.T) {
	rapid.Check(t, oneMistake)
}

func oneMistake(t *rapid.T) {
	var clusters []*v1alpha1.FleetCluster
	for i := range rapid.IntRange(1, 5).Draw(t, "clusters") {
		clusters = append(clusters, newFleetCluster(fmt.Sprintf("c%d", i), rapid.SampledFrom([]string{"a", "b"}).Draw(t, "region")))
	}
	w := newFleetModel(t, clusters...)
	for i := range w.Clusters {
		if rapid.Bool().Draw(t, "other namespaces are allowed") {
			w.Clusters[i].Object.Spec.TargetNamespaces = []string{"*"}
		}
	}
	w.Budget = budget(t, rapid.SampledFrom([]string{"5%", "1", "50%", "0"}).Draw(t, "budget"))
	for i := range rapid.IntRange(1, 5).Draw(t, "Grids") {
		w.grid(rapid.SampledFrom([]string{"shop", "bank"}).Draw(t, "namespace"), fmt.Sprint("grid-", i),
			map[string]string{v1alpha1.AnnotationClusters: rapid.SampledFrom([]string{"", "region=a", "region in (a, b)"}).Draw(t, "selector")})
	}
	w.settle()
	for _, uid := range slices.Sorted(maps.Keys(w.objects)) { // some cannot be sent any more as they are
		if rapid.IntRange(0, 3).Draw(t, "unfit") == 0 {
			o := w.objects[uid]
			annotations := o.GetAnnotations()
			annotations[v1alpha1.AnnotationTargetNamespace] = "not a namespace"
			o.SetAnnotations(annotations)
		}
	}
	w.pass(3 * time.Hour) // the process has watched for long enough
	before, sent := w.snapshot(), copyOfSent(w.sent)
	undo := w.mistake(t)
	at := w.Now
	w.settle()
	undone := false
	for range rapid.IntRange(1, 12).Draw(t, "turns") {
		w.pass(time.Duration(rapid.IntRange(1, 2400).Draw(t, "seconds")) * time.Second)
		for uid, times := range w.lost {
			if times[0].Sub(at) < w.Grace {
				t.Fatalf("Grid %s has left a cluster %s after the edit", uid, times[0].Sub(at))
			}
			within := slices.DeleteFunc(slices.Clone(times), func(l time.Time) bool { return w.Now.Sub(l) >= removal.Window })
			if allowed := w.Budget.Of(w.most[uid]); len(within) > allowed {
				t.Fatalf("Grid %s has left %d clusters within an hour, allowed are %d of %d", uid, len(within), allowed, w.most[uid])
			}
		}
		if !undone && len(w.lost) == 0 && rapid.IntRange(0, 3).Draw(t, "undo") == 0 {
			undo()
			undone = true
			arrived := w.hasMoreThan(sent)
			w.settle()
			if after := w.snapshot(); !arrived && (after != before || !reflect.DeepEqual(w.sent, sent)) {
				t.Fatalf("undone, the fleet is\n%s\n%v\nand it was\n%s\n%v", after, w.sent, before, sent)
			}
		}
	}
	for name, of := range sent {
		for uid, place := range of {
			if namespace := w.objects[uid].GetNamespace(); !w.edited[namespace] && w.sent[name][uid] != place {
				t.Fatalf("Grid %s of a namespace that was not edited has left cluster %s", uid, name)
			}
		}
	}
}

// mistake edits one object, and returns how to undo that.
func (w *fleetModel) mistake(t *rapid.T) (undo func()) {
	selectors := []string{"region=a", "region=b", "regoin=a", "region in (", "region=zz", ""}
	if rapid.IntRange(0, 3).Draw(t, "object") == 0 {
		i := rapid.IntRange(0, len(w.Clusters)-1).Draw(t, "cluster")
		old := w.Clusters[i].Object.Labels
		w.Clusters[i].Object.Labels = map[string]string{"region": rapid.SampledFrom([]string{"a", "b", "zz"}).Draw(t, "region")}
		w.edited["shop"], w.edited["bank"] = true, true
		return func() { w.Clusters[i].Object.Labels = old }
	}
	uid := rapid.SampledFrom(slices.Sorted(maps.Keys(w.objects))).Draw(t, "Grid")
	o := w.objects[uid]
	old := o.DeepCopy()
	w.edited[o.GetNamespace()] = true
	switch rapid.SampledFrom([]string{"label", "replace", "selector", "target"}).Draw(t, "edit") {
	case "label":
		o.SetLabels(nil)
	case "replace":
		o.SetLabels(nil)
		o.SetFinalizers(nil)
	case "selector":
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationClusters: rapid.SampledFrom(selectors).Draw(t, "selector")})
	case "target":
		annotations := old.GetAnnotations()
		annotations[v1alpha1.AnnotationTargetNamespace] = "elsewhere"
		o.SetAnnotations(annotations)
	}
	return func() { o.SetLabels(old.GetLabels()); o.SetAnnotations(old.GetAnnotations()) }
}

// snapshot returns what is written on the hub, without the times of conditions.
func (w *fleetModel) snapshot() string {
	var text strings.Builder
	for _, c := range w.Clusters {
		s := c.Object.Status.DeepCopy()
		for i := range s.Conditions {
			s.Conditions[i].LastTransitionTime = metav1.Time{}
		}
		raw, _ := json.Marshal(s)
		fmt.Fprintf(&text, "%s %s %v\n", c.Object.Name, raw, c.Bundles)
	}
	for _, uid := range slices.Sorted(maps.Keys(w.objects)) {
		fmt.Fprintf(&text, "%s %v\n", uid, w.objects[uid].GetFinalizers())
	}
	return text.String()
}

// hasMoreThan reports whether Grids have come into clusters.
func (w *fleetModel) hasMoreThan(sent map[string]map[string]string) bool {
	for name, of := range w.sent {
		for uid := range of {
			if _, had := sent[name][uid]; !had {
				return true
			}
		}
	}
	return false
}

func copyOfSent(sent map[string]map[string]string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for name, of := range sent {
		all[name] = maps.Clone(of)
	}
	return all
}

func countOf(sent map[string]map[string]string, uid string) (n int) {
	for _, of := range sent {
		if _, has := of[uid]; has {
			n++
		}
	}
	return n
}

// TestAbandoned: a suspended cluster does not keep a Grid on the hub that was deleted a day ago.
// When it goes on the Grid leaves it. If its UID was forgotten, it is held and stays.
func TestAbandoned(t *testing.T) {
	for _, forgotten := range []bool{false, true} {
		w := newFleetModel(t, regions("a")...)
		w.grid("shop", "pos", nil)
		w.grid("shop", "web", nil)
		w.settle()
		w.Clusters[0].Object.Spec.Suspend = true
		at := metav1.NewTime(w.Now)
		w.objects["shop-pos"].SetDeletionTimestamp(&at)
		if p := w.pass(24*time.Hour - time.Second); len(w.objects["shop-pos"].GetFinalizers()) == 0 || p.Recheck != time.Second {
			t.Fatalf("a second before it has the finalizers %v; it is decided again after %s", w.objects["shop-pos"].GetFinalizers(), p.Recheck)
		}
		if w.pass(time.Second); len(w.objects["shop-pos"].GetFinalizers()) != 0 || w.sent["c0"]["shop-pos"] == "" {
			t.Fatalf("a day later it has the finalizers %v and is in %v", w.objects["shop-pos"].GetFinalizers(), w.sent)
		}
		delete(w.objects, "shop-pos")
		w.read()
		report := Report{Object: "pos", From: hubUID + "/shop-pos", Kind: "DeploymentGrid", Namespace: "shop", Name: "pos"}
		w.Clusters[0].Reports = append(w.Clusters[0].Reports, report)
		if forgotten {
			w.Clusters[0].Object.Status.Withdrawn = nil
		}
		w.Clusters[0].Object.Spec.Suspend = false
		p := Decide(w.Observed)
		_, written := p.Clusters[0].Write["shop"]
		if held := p.Clusters[0].Status.State == "Held"; held != forgotten || written == forgotten {
			t.Fatalf("forgotten: %t; the cluster is %s, the bundle is written: %t", forgotten, p.Clusters[0].Status.State, written)
		}
	}
}

// TestUnknownHoldsItsNamespace: a Grid that the hub does not know holds what goes into its
// namespace of that cluster, and nothing else.
func TestUnknownHoldsItsNamespace(t *testing.T) {
	w := newFleetModel(t, regions("a", "a")...)
	w.Clusters[0].Object.Spec.TargetNamespaces = []string{"prod"}
	w.Clusters[1].Object.Spec.TargetNamespaces = []string{"prod"}
	w.grid("shop", "pos", nil)
	w.grid("bank", "pos", map[string]string{v1alpha1.AnnotationTargetNamespace: "prod"})
	w.grid("mail", "pos", nil)
	w.settle()
	w.Clusters[0].Reports = append(w.Clusters[0].Reports, Report{Object: "x", From: hubUID + "/invented", Kind: "DeploymentGrid", Namespace: "prod", Name: "x"})
	for _, o := range w.objects {
		o.Object["spec"] = map[string]any{"gridUniqKey": "edited"}
	}
	w.read()
	p := Decide(w.Observed)
	if got := slices.Sorted(maps.Keys(p.Clusters[0].Write)); !slices.Equal(got, []string{"mail", "shop"}) || p.Clusters[0].Status.State != "Held" {
		t.Errorf("to the cluster with the unknown Grid the bundles %v are sent; it is %s", got, p.Clusters[0].Status.State)
	}
	if got := slices.Sorted(maps.Keys(p.Clusters[1].Write)); !slices.Equal(got, []string{"bank", "mail", "shop"}) {
		t.Errorf("to the other cluster the bundles %v are sent", got)
	}
}
