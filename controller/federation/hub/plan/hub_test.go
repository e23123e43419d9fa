package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/removal"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// hubUID is that of the hub's Namespace kube-system.
const hubUID = "5a2b61c2-hub"

type gridState struct {
	ref                      Ref
	deleting, finalizer, fed bool
	deletedAt                time.Time
	selector                 string
	content                  int
}

func (g gridState) object() *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "superedge.io/v1", "kind": g.ref.Kind, "spec": map[string]any{"gridUniqKey": "zone", "content": int64(g.content)},
		"status": map[string]any{"unitNumber": int64(1)},
	}}
	o.SetNamespace(g.ref.Namespace)
	o.SetName(g.ref.Name)
	o.SetUID(types.UID(g.ref.UID))
	if g.fed {
		o.SetLabels(map[string]string{v1alpha1.LabelFederated: v1alpha1.Federated})
	}
	if g.selector != "" {
		o.SetAnnotations(map[string]string{v1alpha1.AnnotationClusters: g.selector})
	}
	return o
}

// contents are what Read has returned for Grids, since packing them takes long.
type contents map[gridState]Content

func (c contents) read(g gridState) Grid {
	if !g.fed && !g.finalizer {
		return Grid{Ref: g.ref, Deleting: g.deleting, DeletedAt: g.deletedAt}
	}
	key := g
	key.deleting, key.finalizer, key.deletedAt = false, false, time.Time{}
	content, found := c[key]
	if !found {
		content = Read(hubUID, key.object()).Content
		c[key] = content
	}
	return Grid{Ref: g.ref, Deleting: g.deleting, DeletedAt: g.deletedAt, Finalizer: g.finalizer, Content: content}
}

func budget(t interface{ Fatal(...any) }, text string) removal.Budget {
	b, err := removal.ParseBudget(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// selects reports whether the person who wrote the selector wants the Grid in a cluster.
func (g gridState) selects(region string) bool {
	return g.selector == "" || g.selector == "region="+region
}

func (g gridState) faulty() bool { return strings.Contains(g.selector, "(") }

type sentBundle struct {
	revision string
	grids    map[string]string // the revisions by UID
}

type clusterState struct {
	object    *v1alpha1.FleetCluster // nil: deleted
	version   int                    // of object
	namespace bool
	bundles   map[string]sentBundle
	reports   []Report
	adopted   bool // the bundles are from an earlier FleetCluster
}

type hubState struct {
	grids    map[string]gridState // by UID
	clusters map[string]*clusterState
	gone     map[string]bool // UIDs of Grids that a person has deleted
}

func (h hubState) clone() hubState {
	to := hubState{grids: maps.Clone(h.grids), clusters: map[string]*clusterState{}, gone: maps.Clone(h.gone)}
	for name, c := range h.clusters {
		copied := *c
		copied.bundles, copied.reports = maps.Clone(c.bundles), slices.Clone(c.reports)
		to.clusters[name] = &copied
	}
	return to
}

func (c *clusterState) put(change func(*v1alpha1.FleetCluster)) {
	o := c.object.DeepCopy()
	change(o)
	c.object, c.version = o, c.version+1
}

// mayLeave reports whether a person has said that a Grid is not to be in a cluster.
func (h hubState) mayLeave(name, uid string) bool {
	c := h.clusters[name].object
	g, exists := h.grids[uid]
	switch {
	case c == nil:
		return false
	case c.DeletionTimestamp != nil && c.Spec.OnDelete == v1alpha1.Remove, h.gone[uid]:
		return true
	case slices.Contains(strings.Split(c.Annotations[v1alpha1.AnnotationRelease], ","), uid):
		return true
	}
	return exists && (g.deleting || !g.fed || !g.faulty() && !g.selects(c.Labels["region"]))
}

// applier is the agent of a cluster together with Flux.
type applier struct {
	uid     string               // of the cluster
	applied map[string]gridState // by UID
	sent    map[string]string    // their revisions
	late    []Report             // reports on the way
	renewal int
}

// apply applies what the hub has for the cluster. Like package delivery it lets go only of Grids
// that the FleetCluster says are withdrawn.
func (a *applier) apply(h hubState, c *clusterState) (removed []string) {
	o := c.object
	if o == nil || !c.namespace || o.Spec.Suspend || o.Status.ClusterUID != "" && o.Status.ClusterUID != a.uid {
		return nil
	}
	sent := map[string]bool{}
	for _, b := range c.bundles {
		for uid, revision := range b.grids {
			sent[uid], a.sent[uid] = true, revision
			if g, found := h.grids[uid]; found {
				a.applied[uid] = g
			}
		}
	}
	for uid := range a.sent {
		if !sent[uid] && slices.Contains(o.Status.Withdrawn, uid) {
			delete(a.sent, uid)
			delete(a.applied, uid)
			removed = append(removed, uid)
		}
	}
	return removed
}

// reports are what the cluster says of all its Grids.
func (a *applier) reports(observed bool) []Report {
	var all []Report
	for _, uid := range slices.Sorted(maps.Keys(a.sent)) {
		g := a.applied[uid]
		all = append(all, Report{
			Object: "report-" + uid, From: hubUID + "/" + uid, Revision: a.sent[uid], Observed: observed,
			Kind: g.ref.Kind, Namespace: g.ref.Namespace, Name: g.ref.Name, Units: []string{"zone1", "zone2"},
		})
	}
	return append(all, Report{Object: "foreign", From: "another-hub/x"})
}

func (a *applier) beat(now time.Time) *Heartbeat {
	return &Heartbeat{
		Heartbeat: v1alpha1.Heartbeat{ClusterUID: a.uid, Version: "v1", Nodes: 4}, Renewal: fmt.Sprintf("renewal %d", a.renewal), Heard: now,
	}
}

func newFleetCluster(name, region string) *v1alpha1.FleetCluster {
	return &v1alpha1.FleetCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1, Labels: map[string]string{"region": region}},
		Spec:       v1alpha1.FleetClusterSpec{Pull: true, OnDelete: v1alpha1.Orphan},
	}
}
