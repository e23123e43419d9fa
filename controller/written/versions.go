package written

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Versions holds the last written version of each object that the caches do not show yet. Its zero
// value is empty. It is safe for concurrent use.
type Versions struct {
	mu   sync.Mutex
	last map[types.UID]write
}

type write struct {
	version string
	at      time.Time
}

// Wrote remembers the version of o, the answer to a write at this time.
func (v *Versions) Wrote(o metav1.Object, at time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.last == nil {
		v.last = map[types.UID]write{}
	}
	v.last[o.GetUID()] = write{o.GetResourceVersion(), at}
}

// Stale reports whether o is older than what was last written to it, and when that was. It forgets
// a version that o shows.
func (v *Versions) Stale(o metav1.Object) (at time.Time, stale bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	last, found := v.last[o.GetUID()]
	if !found {
		return time.Time{}, false
	}
	if order, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), last.version); err == nil && order < 0 {
		return last.at, true
	}
	delete(v.last, o.GetUID())
	return time.Time{}, false
}

// Keep forgets all objects but these.
func (v *Versions) Keep(uids map[types.UID]bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	maps.DeleteFunc(v.last, func(uid types.UID, _ write) bool { return !uids[uid] })
}
