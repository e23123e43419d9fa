package site

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory holds the versions that were written and that the caches do not show yet. Nothing is
// decided on the older version of such an object.
type memory struct {
	mu      sync.Mutex
	written map[types.UID]string
}

func newMemory() *memory { return &memory{written: map[types.UID]string{}} }

// wrote remembers the version in the answer to a write.
func (m *memory) wrote(o client.Object) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.written[o.GetUID()] = o.GetResourceVersion()
}

// stale: the object is older than what was last written to it.
func (m *memory) stale(o client.Object) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	version, found := m.written[o.GetUID()]
	if !found {
		return false
	}
	if older, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), version); err == nil && older < 0 {
		return true
	}
	delete(m.written, o.GetUID())
	return false
}

// keep forgets all objects but these.
func (m *memory) keep(uids map[types.UID]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for uid := range m.written {
		if !uids[uid] {
			delete(m.written, uid)
		}
	}
}
