package hub

import (
	"maps"
	"slices"
	"sync"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"
	"gridproxy/controller/written"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writes is what was written and what the caches may not show yet. No decision is taken before
// they do. It has an end: what is gone from the caches is forgotten.
type writes struct {
	mu       sync.Mutex
	versions written.Versions
	// applied are bundles, and when they were applied; deleted are the UIDs of bundles.
	applied map[client.ObjectKey]time.Time
	deleted map[types.UID]time.Time
	// sent is when bundles were last written, for as long as they rest.
	sent map[client.ObjectKey]time.Time
	// told is when the statuses of FleetClusters were last written, by their names, for as long.
	told map[string]time.Time
}

func newWrites() *writes {
	return &writes{
		applied: map[client.ObjectKey]time.Time{}, deleted: map[types.UID]time.Time{},
		sent: map[client.ObjectKey]time.Time{}, told: map[string]time.Time{},
	}
}

// tell remembers that the status of a FleetCluster was written.
func (w *writes) tell(o client.Object, now time.Time) {
	w.versions.Wrote(o, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.told[o.GetName()] = now
}

// apply remembers that a bundle was written, which may be new.
func (w *writes) apply(o client.Object, now time.Time) {
	w.versions.Wrote(o, now)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.applied[client.ObjectKeyFromObject(o)], w.sent[client.ObjectKeyFromObject(o)] = now, now
}

// delete remembers that a bundle was deleted; uid is its UID in the cache.
func (w *writes) delete(uid types.UID, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.deleted[uid] = now
}

// shown reports whether the lists show everything that was written, and forgets what they show.
// missed is how much they do not show after cacheTimeout, which is not waited for any more.
func (w *writes) shown(l lists, now time.Time) (shown bool, missed int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	late := func(at time.Time) bool {
		if now.Sub(at) < cacheTimeout {
			return false
		}
		missed++
		return true
	}
	older, still := map[types.UID]bool{}, map[types.UID]time.Time{}
	for _, o := range l.written() {
		uid := o.GetUID()
		if at, stale := w.versions.Stale(o); stale && !late(at) {
			older[uid] = true
		}
		// One that waits for a finalizer of others is shown as deleted.
		if at, found := w.deleted[uid]; found && o.GetDeletionTimestamp() == nil && !late(at) {
			still[uid] = at
		}
	}
	for i := range l.bundles {
		delete(w.applied, client.ObjectKeyFromObject(&l.bundles[i]))
	}
	maps.DeleteFunc(w.applied, func(_ client.ObjectKey, at time.Time) bool { return late(at) })
	// If the clock was set back, they are forgotten.
	maps.DeleteFunc(w.sent, func(_ client.ObjectKey, at time.Time) bool {
		return now.Sub(at) >= plan.BundleDelayMax || now.Before(at)
	})
	maps.DeleteFunc(w.told, func(_ string, at time.Time) bool { return now.Sub(at) >= plan.StatusPeriod || now.Before(at) })
	if len(w.applied) == 0 {
		w.versions.Keep(older)
	}
	w.deleted = still
	return len(older)+len(still)+len(w.applied) == 0, missed
}

// written returns the objects of the lists that are written: Grids, FleetClusters and bundles.
func (l lists) written() []client.Object {
	objects := append([]client.Object{}, l.grids...)
	for i := range l.clusters {
		objects = append(objects, &l.clusters[i])
	}
	for i := range l.bundles {
		objects = append(objects, &l.bundles[i])
	}
	return objects
}

// rests adds to the clusters when their statuses and bundles were last written.
func (w *writes) rests(clusters []plan.Cluster) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, c := range clusters {
		clusters[i].Told = w.told[c.Object.Name]
	}
	for key, at := range w.sent {
		i := slices.IndexFunc(clusters, func(c plan.Cluster) bool { return v1alpha1.NamespacePrefix+c.Object.Name == key.Namespace })
		if i < 0 {
			continue
		}
		if clusters[i].Sent == nil {
			clusters[i].Sent = map[string]time.Time{}
		}
		clusters[i].Sent[key.Name] = at
	}
}
