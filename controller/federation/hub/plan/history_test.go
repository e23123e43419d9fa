package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// history is what happens to a hub and its clusters, one thing after the other.
type history struct {
	t        *rapid.T
	hub      hubState
	backup   *hubState
	agents   map[string]*applier
	heard    map[string]*Heartbeat // by the process of the hub
	released map[string]bool
	contents contents
	now      time.Time
	grids    int // created
	joined   int // clusters
}

func newHistory(t *rapid.T, c contents) *history {
	h := &history{
		t: t, agents: map[string]*applier{}, heard: map[string]*Heartbeat{}, released: map[string]bool{}, contents: c,
		hub: hubState{grids: map[string]gridState{}, clusters: map[string]*clusterState{}, gone: map[string]bool{}},
		now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	h.join(t)
	h.join(t)
	h.create(t)
	return h
}

func (h *history) oneOf(what string, all []string) string {
	if len(all) == 0 {
		h.t.Skip("no " + what)
	}
	return rapid.SampledFrom(all).Draw(h.t, what)
}

func (h *history) grid() string {
	var all []string
	for uid, g := range h.hub.grids {
		if !g.deleting {
			all = append(all, uid)
		}
	}
	slices.Sort(all)
	return h.oneOf("grid", all)
}

func (h *history) cluster() (string, *clusterState) {
	var all []string
	for name, c := range h.hub.clusters {
		if c.object != nil {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	name := h.oneOf("cluster", all)
	return name, h.hub.clusters[name]
}

func (h *history) create(*rapid.T) {
	if len(h.hub.grids) > 5 {
		return
	}
	h.grids++
	r := Ref{
		Kind: rapid.SampledFrom(v1.Kinds()).Draw(h.t, "kind"), Namespace: rapid.SampledFrom([]string{"shop", "bank"}).Draw(h.t, "namespace"),
		Name: fmt.Sprintf("grid%d", h.grids), UID: fmt.Sprintf("uid-%d", h.grids),
	}
	h.hub.grids[r.UID] = gridState{ref: r, fed: true, selector: h.selector()}
}

func (h *history) selector() string {
	return rapid.SampledFrom([]string{"", "", "region=a", "region=b", "region=a", "region in ("}).Draw(h.t, "selector")
}

func (h *history) change(to func(*gridState)) {
	uid := h.grid()
	g := h.hub.grids[uid]
	to(&g)
	h.hub.grids[uid] = g
	h.collect()
}

// collect is the garbage collection of the hub.
func (h *history) collect() {
	for uid, g := range h.hub.grids {
		if g.deleting && !g.finalizer {
			delete(h.hub.grids, uid)
			h.hub.gone[uid] = true
		}
	}
	for name, c := range h.hub.clusters {
		if c.object == nil || c.object.DeletionTimestamp == nil || len(c.object.Finalizers) > 0 {
			continue
		}
		if guarded := len(c.object.Status.Conditions) > 0; guarded && c.object.Spec.OnDelete == v1alpha1.Remove && (len(c.bundles) > 0 || len(c.reports) > 1) {
			h.t.Fatalf("FleetCluster %s is gone before its Grids", name)
		}
		c.object = nil
	}
}

func (h *history) edit(*rapid.T) { h.change(func(g *gridState) { g.content++ }) }
func (h *history) reselect(*rapid.T) {
	h.change(func(g *gridState) { g.selector = h.selector() })
}
func (h *history) relabel(*rapid.T) { h.change(func(g *gridState) { g.fed = !g.fed }) }
func (h *history) deleteGrid(*rapid.T) {
	h.change(func(g *gridState) { g.deleting, g.deletedAt = true, h.now })
}

// join adds a cluster, or lets one come back whose FleetCluster was deleted, perhaps under another
// name, perhaps with everything that is in its namespace.
func (h *history) join(*rapid.T) {
	region := rapid.SampledFrom([]string{"a", "b"}).Draw(h.t, "region")
	for _, name := range slices.Sorted(maps.Keys(h.hub.clusters)) {
		if c := h.hub.clusters[name]; c.object == nil {
			agent := h.agents[name]
			if rapid.Bool().Draw(h.t, "left") {
				delete(h.hub.clusters, name)
				h.add(region, agent)
			} else {
				c.object, c.version, c.adopted = newFleetCluster(name, region), c.version+1, true
			}
			return
		}
	}
	if len(h.hub.clusters) < 3 {
		h.add(region, &applier{uid: fmt.Sprintf("cluster-%d", h.joined), applied: map[string]gridState{}, sent: map[string]string{}})
	}
}

func (h *history) add(region string, agent *applier) {
	h.joined++
	name := fmt.Sprintf("c%d", h.joined)
	h.agents[name] = agent
	h.hub.clusters[name] = &clusterState{object: newFleetCluster(name, region), namespace: true, bundles: map[string]sentBundle{}}
}

func (h *history) moveCluster(*rapid.T) {
	_, c := h.cluster()
	region := rapid.SampledFrom([]string{"a", "b"}).Draw(h.t, "region")
	c.put(func(o *v1alpha1.FleetCluster) { o.Labels = map[string]string{"region": region} })
}

func (h *history) suspend(*rapid.T) {
	_, c := h.cluster()
	c.put(func(o *v1alpha1.FleetCluster) { o.Spec.Suspend = !o.Spec.Suspend; o.Generation++ })
}

func (h *history) deleteCluster(*rapid.T) {
	_, c := h.cluster()
	how := rapid.SampledFrom([]v1alpha1.OnDelete{v1alpha1.Orphan, v1alpha1.Remove}).Draw(h.t, "onDelete")
	c.put(func(o *v1alpha1.FleetCluster) {
		at := metav1.NewTime(h.now)
		o.Spec.OnDelete, o.DeletionTimestamp = how, &at
	})
	h.collect()
}

// release runs the command that the condition DistributionHeld names.
func (h *history) release(*rapid.T) {
	_, c := h.cluster()
	h.releaseOf(c)
}

func (h *history) releaseOf(c *clusterState) {
	for _, condition := range c.object.Status.Conditions {
		if condition.Type != v1alpha1.ConditionDistributionHeld || condition.Status != metav1.ConditionTrue {
			continue
		}
		_, uids, _ := strings.Cut(condition.Message, v1alpha1.AnnotationRelease+"=")
		for uid := range strings.SplitSeq(uids, ",") {
			h.released[uid] = true
		}
		c.put(func(o *v1alpha1.FleetCluster) { o.Annotations = map[string]string{v1alpha1.AnnotationRelease: uids} })
	}
}

func (h *history) backUp(*rapid.T) {
	saved := h.hub.clone()
	h.backup = &saved
}

// restore starts the hub from its backup. Clusters that have joined since are lost.
func (h *history) restore(t *rapid.T) {
	if h.backup == nil {
		t.Skip("no backup")
	}
	h.hub = h.backup.clone()
	for name, c := range h.hub.clusters {
		c.version += 1000
		if h.agents[name] == nil {
			t.Fatalf("no agent for %s", name)
		}
	}
	h.restart(t)
}

// restart starts another process of the hub.
func (h *history) restart(*rapid.T) {
	for name, beat := range h.heard {
		again := *beat
		again.Heard = h.now
		h.heard[name] = &again
	}
}

func (h *history) timePasses(*rapid.T) {
	unit := rapid.SampledFrom([]time.Duration{time.Second, time.Second, time.Second, time.Hour}).Draw(h.t, "unit")
	h.now = h.now.Add(time.Duration(rapid.IntRange(1, 100).Draw(h.t, "time")) * unit)
}

func (h *history) beat(*rapid.T) {
	name, _ := h.cluster()
	h.hear(name)
}

func (h *history) hear(name string) {
	h.agents[name].renewal++
	h.heard[name] = h.agents[name].beat(h.now)
}

func (h *history) replaceCluster(*rapid.T) {
	if rapid.IntRange(0, 9).Draw(h.t, "often") > 0 {
		return
	}
	name, _ := h.cluster()
	h.agents[name].uid += "-again"
}

func (h *history) apply(*rapid.T) {
	name, c := h.cluster()
	h.applyIn(name, c)
}

// applyIn checks that what the hub does not know stays, unless a person has said otherwise.
func (h *history) applyIn(name string, c *clusterState) {
	for _, uid := range h.agents[name].apply(h.hub, c) {
		if _, exists := h.hub.grids[uid]; !exists && !h.hub.gone[uid] && !h.released[uid] && !h.hub.mayLeave(name, uid) {
			h.t.Fatalf("cluster %s loses Grid %s, which the hub does not know", name, uid)
		}
	}
}

// report has the reports arrive, or only leave.
func (h *history) report(*rapid.T) {
	name, c := h.cluster()
	a := h.agents[name]
	if rapid.Bool().Draw(h.t, "late") && a.late != nil {
		c.reports, a.late = a.late, nil
		return
	}
	a.late = a.reports(rapid.Bool().Draw(h.t, "observed"))
}
