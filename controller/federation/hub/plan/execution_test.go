package plan

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"gridproxy/controller/api/v1alpha1"

	"pgregory.net/rapid"
)

func (h *history) observe() (Observed, map[string]int) {
	o := Observed{Hub: hubUID, Now: h.now, Budget: budget(h.t, "100%")}
	for _, g := range h.hub.grids {
		o.Grids = append(o.Grids, h.contents.read(g))
	}
	versions := map[string]int{}
	for name, c := range h.hub.clusters {
		if c.object == nil {
			continue
		}
		versions[name] = c.version
		bundles := map[string]string{}
		for namespace, b := range c.bundles {
			bundles[namespace] = b.revision
		}
		o.Clusters = append(o.Clusters, Cluster{Object: c.object, Namespace: c.namespace, Bundles: bundles, Reports: c.reports, Heartbeat: h.heard[name]})
	}
	return o, versions
}

// decide decides on everything, and executes all of it.
func (h *history) decide(*rapid.T) {
	o, versions := h.observe()
	h.execute(Decide(o), versions, -1, nil)
}

// crash decides, and ends after some steps.
func (h *history) crash(t *rapid.T) {
	o, versions := h.observe()
	h.execute(Decide(o), versions, rapid.IntRange(0, 6).Draw(h.t, "steps"), nil)
	h.restart(t)
}

// interrupted has a person do something after some steps.
func (h *history) interrupted(t *rapid.T) {
	o, versions := h.observe()
	act := rapid.SampledFrom([]func(*rapid.T){h.deleteGrid, h.relabel, h.reselect, h.edit, h.moveCluster, h.deleteCluster, h.suspend}).Draw(t, "act")
	h.execute(Decide(o), versions, rapid.IntRange(0, 6).Draw(h.t, "steps"), func() {
		if len(h.hub.grids) > 0 {
			act(t)
		}
	})
}

// short decides on lists that are not whole.
func (h *history) short(t *rapid.T) {
	for _, c := range h.hub.clusters {
		if c.adopted {
			t.Skip("the hub cannot know what is in the bundles of a FleetCluster that was made again")
		}
	}
	clear(h.heard)
	o, versions := h.observe()
	slices.SortFunc(o.Grids, func(a, b Grid) int { return strings.Compare(a.UID, b.UID) })
	if n := len(o.Grids); n > 0 {
		i := rapid.IntRange(0, n-1).Draw(t, "missing")
		o.Grids = slices.Delete(o.Grids, i, i+1)
	}
	h.execute(Decide(o), versions, -1, nil)
}

// execute executes a plan as the hub does: as far as it gets. After so many steps something else
// happens; without it the process ends.
func (h *history) execute(p Plan, versions map[string]int, after int, happens func()) {
	allowed := map[string]map[string]bool{} // what may leave, as it was when it was decided; nil: nothing may change
	for name, c := range h.hub.clusters {
		if c.object == nil || h.untouchable(name, c.object) {
			continue
		}
		allowed[name] = map[string]bool{}
		for _, b := range c.bundles {
			for uid := range b.grids {
				allowed[name][uid] = h.hub.mayLeave(name, uid)
			}
		}
	}
	for i, step := range h.steps(p, versions, allowed) {
		if i == after && happens == nil {
			return
		}
		if i == after {
			happens()
		}
		if !step() {
			return
		}
		h.collect()
		h.check(nil)
	}
}

// untouchable reports whether nothing may be sent to a cluster.
func (h *history) untouchable(name string, o *v1alpha1.FleetCluster) bool {
	beat := h.heard[name]
	replaced := beat != nil && o.Status.ClusterUID != "" && beat.ClusterUID != o.Status.ClusterUID
	orphaned := o.DeletionTimestamp != nil && o.Spec.OnDelete == v1alpha1.Orphan
	return replaced || orphaned || o.Spec.Suspend
}

func (h *history) steps(p Plan, versions map[string]int, allowed map[string]map[string]bool) []func() bool {
	var steps []func() bool
	add := func(step func() bool) { steps = append(steps, step) }
	current := func(name string) bool {
		return h.hub.clusters[name].object != nil && h.hub.clusters[name].version == versions[name]
	}
	put := func(name string, change func(*v1alpha1.FleetCluster)) bool {
		if !current(name) {
			return false
		}
		h.hub.clusters[name].put(change)
		versions[name]++
		return true
	}
	setFinalizer := func(r Ref, to bool) bool {
		g, exists := h.hub.grids[r.UID]
		if !exists || to && g.deleting {
			return false
		}
		g.finalizer = to
		h.hub.grids[r.UID] = g
		return true
	}
	for _, r := range p.AddFinalizer {
		add(func() bool { return setFinalizer(r, true) })
	}
	for _, c := range p.Clusters {
		if c.AddFinalizer {
			add(func() bool {
				return put(c.Name, func(o *v1alpha1.FleetCluster) { o.Finalizers = []string{v1alpha1.Finalizer} })
			})
		}
		for _, namespace := range slices.Sorted(maps.Keys(c.Write)) {
			add(func() bool { h.send(c.Name, namespace, c.Write[namespace], allowed[c.Name]); return true })
		}
		for _, namespace := range c.Remove {
			add(func() bool { h.send(c.Name, namespace, Bundle{}, allowed[c.Name]); return true })
		}
	}
	for _, c := range p.Clusters {
		if o := h.hub.clusters[c.Name].object; !reflect.DeepEqual(o.Status, c.Status) {
			add(func() bool { return put(c.Name, func(o *v1alpha1.FleetCluster) { o.Status = stored(h.t, c.Status) }) })
		}
	}
	for _, c := range p.Clusters {
		if c.RemoveFinalizer {
			add(func() bool { return put(c.Name, func(o *v1alpha1.FleetCluster) { o.Finalizers = nil }) })
		}
	}
	for _, r := range p.RemoveFinalizer {
		before := h.hub.grids[r.UID]
		add(func() bool {
			stale := slices.ContainsFunc(slices.Collect(maps.Keys(versions)), func(name string) bool { return h.hub.clusters[name].object != nil && !current(name) })
			return !stale && h.hub.grids[r.UID] == before && setFinalizer(r, false)
		})
	}
	return steps
}

// stored is a status as the API server returns it.
func stored(t *rapid.T, s v1alpha1.FleetClusterStatus) v1alpha1.FleetClusterStatus {
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var to v1alpha1.FleetClusterStatus
	if err := json.Unmarshal(text, &to); err != nil {
		t.Fatal(err)
	}
	return to
}
