package grid

import (
	"maps"
	"slices"
	"sync"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/flips"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/written"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is what is remembered of the Grids of one kind. All of it can be lost: see the package's
// invariant.
type memory struct {
	mu      sync.Mutex
	grids   map[types.NamespacedName]*remembered
	watched time.Time // when the first Grid was reconciled
}

// remembered is what is known of one Grid besides what the caches hold. Its reconciler alone uses
// it, one at a time, except for the fields behind memory's lock.
type remembered struct {
	uid     types.UID
	applied map[string]expand.Applied
	repairs map[string]expand.Repairs
	// answers hold children as our own writes left them, until the cache has seen that.
	answers map[string]answer
	memo    expand.Memo
	// deleted are the UIDs of children that we have deleted, by name, until the cache has seen that.
	deleted map[string]types.UID
	// taken are names at which an apply for a new child has met an object that the cache did not
	// show.
	taken map[string]bool
	// kept are the replicas of children that were replaced and are not created again yet; nil: the
	// template's.
	kept map[string]*int32
	// status is the one that we wrote last, until the cache has seen that, by written.
	status  any
	written written.Versions
	// removals are those that the status should have, once this process has spent some of the
	// budget: the status may be written later, or show places that were given back.
	removals *[]v1.Removal
	pause    pause // between two writes of the status
	// announced is the last status that this process has made, and sent Events about: see noticed.
	announced *v1.WorkloadGridStatus
	pruned    prunedTemplates
	// flips are the new values that Nodes have brought.
	flips flips.Log
	// version is the Grid's last known version without its status.
	version string
	retries retries
	missing map[string]missingService // by name
	// outrun is in how many consecutive reconciles other writers were always faster at writing a
	// child.
	outrun int
	// searched: the Pods of the children that existed when this Grid was first seen have been
	// checked.
	searched bool

	// Behind memory.mu:
	misplaced  map[types.UID]expand.Pod
	collisions []string // wanted names that foreign objects have
}

// answer is a child as a write of ours left it.
type answer struct {
	older map[string]bool // resourceVersions that the cache may still show, which are older than child
	child expand.Live
}

// prunedTemplates were removed from the Grid when it had the generation. The status is to say so.
type prunedTemplates struct {
	generation int64
	names      []string
}

func newMemory() *memory { return &memory{grids: map[types.NamespacedName]*remembered{}} }

// watchedSince returns since when the controller has watched the cluster: the next whole second
// after the first call. Then its caches have synced and it leads.
func (m *memory) watchedSince(now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.watched.IsZero() {
		m.watched = now.UTC().Truncate(time.Second).Add(time.Second)
	}
	return m.watched
}

// of returns what is remembered of the Grid with this UID, new and empty if nothing is. What is
// known of an earlier Grid with the same name is forgotten.
func (m *memory) of(name types.NamespacedName, uid types.UID) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.grids[name]
	if r == nil || r.uid != uid {
		r = &remembered{
			uid: uid, applied: map[string]expand.Applied{}, repairs: map[string]expand.Repairs{}, answers: map[string]answer{},
			taken: map[string]bool{}, deleted: map[string]types.UID{}, kept: map[string]*int32{},
			retries: retries{texts: map[string]string{}, groups: map[string]*retryGroup{}}, misplaced: map[types.UID]expand.Pod{},
		}
		m.grids[name] = r
	}
	return r
}

// uid returns the UID of a Grid, "" if the Grid is not remembered.
func (m *memory) uid(name types.NamespacedName) types.UID {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.grids[name]; r != nil {
		return r.uid
	}
	return ""
}

func (m *memory) forget(name types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.grids, name)
}

// setCollisions notes which names foreign objects occupy, in place of those noted before, so
// that their deletion wakes the Grid.
func (m *memory) setCollisions(r *remembered, names []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.collisions = names
}

// waiting returns the Grids that want the name of an object, as setCollisions noted.
func (m *memory) waiting(object types.NamespacedName) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var grids []types.NamespacedName
	for grid, r := range m.grids {
		if grid.Namespace == object.Namespace && slices.Contains(r.collisions, object.Name) {
			grids = append(grids, grid)
		}
	}
	return grids
}

// misplacedPods returns the Pods of a Grid on Nodes outside their units, sorted by Node and
// name.
func (m *memory) misplacedPods(r *remembered) []expand.Pod {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.SortedFunc(maps.Values(r.misplaced), comparePods)
}

// setMisplaced records found as the misplaced ones of the Pods that in selects, and reports
// whether that adds or removes any. A known Pod keeps its time Since. For a Grid that is not
// remembered it records nothing and returns false.
func (m *memory) setMisplaced(grid types.NamespacedName, in func(expand.Pod) bool, found []expand.Pod) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.grids[grid]
	if r == nil {
		return false
	}
	now := map[types.UID]expand.Pod{}
	changed := false
	for _, p := range found {
		if known, ok := r.misplaced[p.UID]; ok {
			p.Since = known.Since
		} else {
			changed = true
		}
		now[p.UID] = p
	}
	for uid, p := range r.misplaced {
		if _, again := now[uid]; !again && in(p) {
			delete(r.misplaced, uid)
			changed = true
		}
	}
	maps.Copy(r.misplaced, now)
	return changed
}

// setGraces records since when the graces of those misplaced Pods run that are still recorded.
func (m *memory) setGraces(r *remembered, pods []expand.Pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range pods {
		if _, known := r.misplaced[p.UID]; known {
			r.misplaced[p.UID] = p
		}
	}
}

func (m *memory) dropMisplaced(r *remembered, pod types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(r.misplaced, pod)
}

// withMisplaced returns the Grids that have misplaced Pods on a Node.
func (m *memory) withMisplaced(node string) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var grids []types.NamespacedName
	for grid, r := range m.grids {
		for _, p := range r.misplaced {
			if p.Node == node {
				grids = append(grids, grid)
				break
			}
		}
	}
	return grids
}

// wrote notes the result of our write to a child that had the resourceVersion before, "" if it did
// not exist. The cache may still show that version, and those before our earlier writes.
func (r *remembered) wrote(before string, child expand.Live) {
	known := r.answers[child.Name]
	older := map[string]bool{before: true, known.child.ResourceVersion: true}
	maps.Copy(older, known.older)
	delete(older, child.ResourceVersion) // a write that changed nothing
	delete(older, "")                    // absent from the cache is looked up live, not remembered
	if len(older) == 0 {
		delete(r.answers, child.Name)
		return
	}
	r.answers[child.Name] = answer{older: older, child: child}
}

// newest returns a child as the cache has it, or the result of our write to it if the cache
// does not show that yet. Once it does, the result is forgotten.
func (r *remembered) newest(cached expand.Live) expand.Live {
	known, ok := r.answers[cached.Name]
	if !ok {
		return cached
	}
	if known.older[cached.ResourceVersion] && known.child.UID == cached.UID {
		return known.child
	}
	delete(r.answers, cached.Name)
	return cached
}

// markDeleted sets Deleting of the children that we have deleted and that the cache still
// shows: no other decision is about them. It forgets those that the cache shows no more.
func (r *remembered) markDeleted(children []expand.Live) {
	shown := map[string]bool{}
	for i := range children {
		if r.deleted[children[i].Name] == children[i].UID && children[i].UID != "" {
			children[i].Deleting, shown[children[i].Name] = true, true
		}
	}
	maps.DeleteFunc(r.deleted, func(name string, _ types.UID) bool { return !shown[name] })
}

// mayExist reports whether there may be an object at a name though the cache shows none: we have
// created it, or an apply has met it.
func (r *remembered) mayExist(name string) bool { return r.taken[name] || r.applied[name].UID != "" }

// wroteStatus notes a status that we wrote, and the Grid as the write left it.
func (r *remembered) wroteStatus(grid client.Object, status any, now time.Time) {
	r.written.Wrote(grid, now)
	r.status = status
}

// lastStatus returns the status that we wrote last if the cached Grid is older. Otherwise it
// forgets that status and returns nil.
func (r *remembered) lastStatus(cached client.Object) any {
	if _, stale := r.written.Stale(cached); !stale {
		r.status = nil
	}
	return r.status
}

// prunedFor returns the templates that were removed, as long as the cached Grid, of this
// generation, has them or its status (named) does not name them, else nil.
func (r *remembered) prunedFor(generation int64, named []string) []string {
	done := !slices.ContainsFunc(r.pruned.names, func(name string) bool { return !slices.Contains(named, name) })
	if r.pruned.generation != generation && done {
		r.pruned = prunedTemplates{}
	}
	return r.pruned.names
}
