package watch

import (
	"context"
	"log/slog"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/object"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// namesPause is the pause before a kind is listed again after the API server refused that.
	namesPause = time.Minute
	// namesLimit is how long the first Snapshot waits for both after everything else was read.
	namesLimit = 5 * time.Second
)

// nameWatches are the watches for the names of Namespaces and StatefulSetGrids, which only DNS
// needs. Grids may be of a kind that the API server does not know, or this Node may not read one of
// the two: then there are none.
type nameWatches struct {
	namespaces, grids *nodeCollection
	pause             time.Duration
	log               *slog.Logger
	// These are closed once Namespaces, or Grids, were refused.
	noNamespaces, noGrids chan struct{}

	// These are the names in a Snapshot, sorted.
	namespaceNames []string
	gridNames      []types.NamespacedName
	version        [2]int // of the collections that they were made of
}

func newNameWatches(of clients, trim *object.Trimmer, changed pulse, log *slog.Logger) (*nameWatches, error) {
	n := &nameWatches{pause: namesPause, log: log, noNamespaces: make(chan struct{}), noGrids: make(chan struct{}), version: [2]int{-1, -1}}
	var err error
	if n.namespaces, err = newCollection(access{
		what: "Namespaces",
		lister: n.patient(listerOf(of.metadata.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))), n.noNamespaces,
			"Namespaces cannot be listed: grid-dns is not told any name, and the DNS of the cluster answers"),
		// They have no outage: rules do not depend on them, and the kind of Grids may never exist.
	}, apiKind(trim.Identity), changed); err != nil {
		return nil, err
	}
	n.grids, err = newCollection(access{
		what: "StatefulSetGrids",
		lister: n.patient(listerOf(of.metadata.Resource(gridResource())), n.noGrids,
			"StatefulSetGrids cannot be listed: no Pod has a name that is the same in every unit"),
	}, apiKind(trim.Identity), changed)
	return n, err
}

// gridResource returns how paths of the API server name StatefulSetGrids.
func gridResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "superedge.io", Version: "v1", Resource: "statefulsetgrids"}
}

// patient returns l with a pause before it lists again where the API server refused to list.
// The first refusal is logged, and closes refused. Other errors are retried as for every kind.
func (n *nameWatches) patient(l lister, refused chan struct{}, effect string) lister {
	var next time.Time // one reflector lists, one list at a time
	list := l.list
	l.list = func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if !next.IsZero() && !sleep(ctx, time.Until(next)) {
			return nil, ctx.Err()
		}
		next = time.Time{}
		all, err := list(ctx, o)
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			next = time.Now().Add(n.pause)
			if !closed(refused) {
				n.log.Warn(effect+"; they are asked for again every minute", "err", err)
				close(refused)
			}
		}
		return all, err
	}
	return l
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// read waits until everything has been read once, or was refused, and for namesLimit at most:
// rules do not depend on names. False = ctx has ended.
func (n *nameWatches) read(ctx context.Context) bool {
	limit := time.NewTimer(namesLimit)
	defer limit.Stop()
	for _, w := range []struct{ read, refused <-chan struct{} }{{n.namespaces.read(), n.noNamespaces}, {n.grids.read(), n.noGrids}} {
		select {
		case <-w.read:
		case <-w.refused:
		case <-limit.C:
			return ctx.Err() == nil
		case <-ctx.Done():
			return false
		}
	}
	return true
}

// list returns what the collections hold now: the same list until its collection changes.
// namespaceNames is nil before Namespaces have been read: there are no names then.
func (n *nameWatches) list() (namespaceNames []string, gridNames []types.NamespacedName) {
	namespaces, a := n.namespaces.list()
	grids, b := n.grids.list()
	if a != n.version[0] && closed(n.namespaces.read()) {
		n.namespaceNames = make([]string, len(namespaces)) // not nil: names are enabled
		for i, o := range namespaces {
			n.namespaceNames[i] = o.Name
		}
	}
	if b != n.version[1] {
		n.gridNames = make([]types.NamespacedName, len(grids))
		for i, o := range grids {
			n.gridNames[i] = topology.NameOf(o)
		}
	}
	if n.namespaceNames != nil {
		n.version[0] = a
	}
	n.version[1] = b
	return n.namespaceNames, n.gridNames
}
