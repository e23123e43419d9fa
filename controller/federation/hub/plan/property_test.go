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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// send writes a bundle, or removes it if it is empty.
func (h *history) send(name, namespace string, b Bundle, allowed map[string]bool) {
	c := h.hub.clusters[name]
	if allowed == nil {
		h.t.Fatalf("something is sent to cluster %s, which is suspended, replaced or let go of", name)
	}
	next := sentBundle{revision: b.Revision, grids: map[string]string{}}
	for _, text := range b.Objects {
		uid, revision := h.sent(text, namespace)
		next.grids[uid] = revision
	}
	if int(b.Grids) != len(next.grids) {
		h.t.Fatalf("the bundle says %d Grids, it has %d", b.Grids, len(next.grids))
	}
	for uid := range c.bundles[namespace].grids {
		if _, stays := next.grids[uid]; !stays && !allowed[uid] {
			h.t.Fatalf("Grid %s leaves the bundle of cluster %s, and no person said so", uid, name)
		}
	}
	c.bundles[namespace] = next
	if len(next.grids) == 0 {
		delete(c.bundles, namespace)
	}
}

// sent checks an object of a bundle.
func (h *history) sent(text []byte, namespace string) (uid, revision string) {
	var o struct {
		Kind     string
		Metadata metav1.ObjectMeta
		Status   any
	}
	if err := json.Unmarshal(text, &o); err != nil {
		h.t.Fatal(err)
	}
	from, ours := strings.CutPrefix(o.Metadata.Annotations[v1alpha1.AnnotationFrom], hubUID+"/")
	_, fed := o.Metadata.Labels[v1alpha1.LabelFederated]
	switch revision = o.Metadata.Annotations[v1alpha1.AnnotationRevision]; {
	case !slices.Contains(v1.Kinds(), o.Kind), !ours, fed, len(revision) != 16, o.Metadata.Labels[v1alpha1.LabelHub] != hubUID,
		o.Status != nil, o.Metadata.UID != "", o.Metadata.Namespace != namespace:
		h.t.Fatalf("this is sent to a cluster: %s", text)
	}
	return from, revision
}

// check checks what holds at all times: a Grid in a bundle is listed, and has the finalizer.
func (h *history) check(*rapid.T) {
	for name, c := range h.hub.clusters {
		if c.object == nil || c.adopted {
			continue
		}
		for namespace, b := range c.bundles {
			for uid := range b.grids {
				listed := slices.ContainsFunc(c.object.Status.Grids, func(g v1alpha1.ClusterGrid) bool { return g.UID == uid })
				left := slices.Contains(c.object.Status.Withdrawn, uid) || h.released[uid]
				if g := h.hub.grids[uid]; !g.finalizer && !left || !listed && !left {
					h.t.Fatalf("Grid %s is in bundle %s of cluster %s; listed: %t, finalizer: %t", uid, namespace, name, listed, g.finalizer)
				}
			}
		}
	}
}

// settle lets nothing happen any more but what the processes do, and checks where that ends.
func (h *history) settle() {
	release, repair := rapid.Bool().Draw(h.t, "release"), rapid.Bool().Draw(h.t, "repair")
	for uid, g := range h.hub.grids {
		if g.faulty() && repair {
			g.selector = ""
			h.hub.grids[uid] = g
		}
	}
	for range 14 {
		h.now = h.now.Add(time.Minute)
		for name, c := range h.hub.clusters {
			if c.object == nil {
				continue
			}
			h.hear(name)
			if release {
				h.releaseOf(c)
			}
		}
		h.decide(nil)
		for name, c := range h.hub.clusters {
			if c.object != nil {
				h.applyIn(name, c)
				c.reports = h.agents[name].reports(true)
			}
		}
	}
	h.atRest()
	for name, c := range h.hub.clusters {
		if c.object != nil {
			h.exact(name, c)
		}
	}
	for uid, g := range h.hub.grids {
		listed := false
		for _, c := range h.hub.clusters {
			listed = listed || c.object != nil && slices.ContainsFunc(c.object.Status.Grids, func(row v1alpha1.ClusterGrid) bool { return row.UID == uid })
		}
		if listed != g.finalizer {
			h.t.Fatalf("at rest Grid %s is listed: %t, has the finalizer: %t", uid, listed, g.finalizer)
		}
	}
}

// atRest checks that there is nothing to do, also after a heartbeat.
func (h *history) atRest() {
	h.now = h.now.Add(time.Minute)
	for name, c := range h.hub.clusters {
		if c.object != nil {
			h.hear(name)
		}
	}
	o, versions := h.observe()
	p := Decide(o)
	if n := len(h.steps(p, versions, nil)); n > 0 {
		h.t.Fatalf("at rest there are %d steps: %+v", n, p)
	}
	slices.Reverse(o.Grids)
	slices.Reverse(o.Clusters)
	if again := Decide(o); !reflect.DeepEqual(again, p) {
		h.t.Fatalf("in another order it is decided %+v, not %+v", again, p)
	}
}

var idle = []string{"Suspended", "Replaced", "Held"}

// exact checks that a cluster has what is selected for it, and nothing else.
func (h *history) exact(name string, c *clusterState) {
	if slices.Contains(idle, c.object.Status.State) || c.object.DeletionTimestamp != nil {
		return
	}
	for _, namespace := range []string{"shop", "bank"} {
		want, skip := map[string]string{}, false
		for uid, g := range h.hub.grids {
			if g.ref.Namespace != namespace || g.deleting || !g.fed {
				continue
			}
			skip = skip || g.faulty()
			if !g.faulty() && (g.selects(c.object.Labels["region"]) || h.stays(name, uid)) {
				want[uid] = h.contents.read(g).Content.Revision
			}
		}
		got := c.bundles[namespace].grids
		if !skip && len(got)+len(want) > 0 && !maps.Equal(got, want) {
			h.t.Fatalf("at rest cluster %s has of namespace %s %v, want %v; %+v", name, namespace, got, want, c.object.Status)
		}
		if skip {
			return
		}
	}
	all := map[string]string{}
	for _, b := range c.bundles {
		maps.Copy(all, b.grids)
	}
	if sent := h.agents[name].sent; !maps.Equal(sent, all) {
		h.t.Fatalf("at rest there is applied in cluster %s %v, want %v; %+v", name, sent, all, c.object.Status)
	}
	s := c.object.Status
	if want := fmt.Sprintf("%d/%d current", len(all), len(all)); s.State != "Current" || s.GridSummary != want || s.Nodes != 4 {
		h.t.Fatalf("at rest the status of cluster %s is %+v, want %s", name, s, want)
	}
}

// stays reports whether a Grid stays in a cluster because its selector matches none.
func (h *history) stays(name, uid string) bool {
	for _, c := range h.hub.clusters {
		if c.object != nil && c.object.DeletionTimestamp == nil && h.hub.grids[uid].selects(c.object.Labels["region"]) {
			return false
		}
	}
	return slices.ContainsFunc(h.hub.clusters[name].object.Status.Grids, func(row v1alpha1.ClusterGrid) bool { return row.UID == uid && row.LeavingSince == nil })
}

// TestHistories: over many histories a Grid leaves a cluster only when a person said so, and when
// nothing happens any more each cluster has what is selected for it.
func TestHistories(t *testing.T) {
	known := contents{}
	history := func(t *rapid.T) {
		h := newHistory(t, known)
		t.Repeat(map[string]func(*rapid.T){
			"": h.check, "create": h.create, "edit": h.edit, "reselect": h.reselect, "relabel": h.relabel, "deleteGrid": h.deleteGrid,
			"join": h.join, "moveCluster": h.moveCluster, "suspend": h.suspend, "deleteCluster": h.deleteCluster, "release": h.release,
			"backUp": h.backUp, "restore": h.restore, "restart": h.restart, "timePasses": h.timePasses, "beat": h.beat,
			"replaceCluster": h.replaceCluster, "apply": h.apply, "apply again": h.apply, "report": h.report, "report again": h.report,
			"decide": h.decide, "decide again": h.decide, "and again": h.decide, "crash": h.crash, "interrupted": h.interrupted, "short": h.short,
		})
		h.settle()
	}
	for range 11 { // a history is cheap
		rapid.Check(t, history)
	}
}
