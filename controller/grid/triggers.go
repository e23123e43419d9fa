package grid

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// wishes returns a filter that lets changes of a Grid's metadata and spec pass, but not those
// of the status, which only we write.
func wishes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return wishVersion(e.ObjectOld) != wishVersion(e.ObjectNew)
	}}
}

// wishVersion returns a text that differs if two versions of a Grid differ in more than the
// status. It is only to be compared.
func wishVersion(o client.Object) string {
	return fmt.Sprintf("%s %d %t %q %q", // maps are printed in order
		o.GetUID(), o.GetGeneration(), o.GetDeletionTimestamp() != nil, o.GetLabels(), o.GetAnnotations())
}

type changeHandler[T client.Object] = handler.TypedFuncs[T, reconcile.Request]

// onChange returns a handler that calls do with an object before and after each change: one is
// empty if the object is new or gone. It skips the start, when every Grid is reconciled anyway.
func onChange[T client.Object](empty T, do func(ctx context.Context, q queue, old, new T)) changeHandler[T] {
	return changeHandler[T]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[T], q queue) {
			if !e.IsInInitialList {
				do(ctx, q, empty, e.Object)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[T], q queue) {
			do(ctx, q, e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[T], q queue) {
			do(ctx, q, e.Object, empty)
		},
	}
}

// onChild returns a handler that wakes Grids that own an object, owned it, or want its name.
func (r *reconciler) onChild() changeHandler[child] {
	return onChange(r.kind.newChild(), func(_ context.Context, q queue, old, new child) {
		if old.GetResourceVersion() == new.GetResourceVersion() {
			return
		}
		for _, o := range []child{old, new} {
			if grid := o.owner(); grid != "" {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: grid}})
			}
		}
		isNew, isGone := old.GetName() == "", new.GetName() == ""
		if isGone || !isNew && old.owner() != new.owner() { // a Grid that waits for its name may get it
			for _, grid := range r.memory.waiting(client.ObjectKeyFromObject(old)) {
				q.Add(reconcile.Request{NamespacedName: grid})
			}
		}
	})
}

// onNode returns a handler that calls do with the keys, if any, that a Node's change concerns.
func onNode(
	concerns func(old, new *corev1.Node) []string, do func(ctx context.Context, node string, keys []string, q queue),
) changeHandler[*corev1.Node] {
	return onChange(&corev1.Node{}, func(ctx context.Context, q queue, old, new *corev1.Node) {
		if keys := concerns(old, new); len(keys) > 0 {
			do(ctx, cmp.Or(new.Name, old.Name), keys, q)
		}
	})
}

// movedKeys returns the keys by which a Node has changed its unit.
func movedKeys(old, new *corev1.Node) []string { return changedKeys(old.Labels, new.Labels) }

// reachedKeys returns the keys by which units have changed: those of movedKeys, and all keys of
// a Node that has become ready or is no longer ready. Heartbeats change nothing.
func reachedKeys(old, new *corev1.Node) []string {
	if isReady(old) == isReady(new) {
		return movedKeys(old, new)
	}
	keys := slices.Concat(movedKeys(old, new), nodeKeys(new))
	slices.Sort(keys)
	return slices.Compact(keys)
}

// changedKeys returns the keys whose values differ, sorted. An empty value counts as a missing
// key.
func changedKeys(old, new map[string]string) []string {
	var keys []string
	for key, value := range old {
		if new[key] != value {
			keys = append(keys, key)
		}
	}
	for key, value := range new {
		if _, both := old[key]; !both && value != "" {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

func (r *reconciler) wakeByKey(ctx context.Context, _ string, keys []string, q queue) {
	for _, grid := range byKeys(ctx, r.client, r.kind, keys) {
		q.Add(reconcile.Request{NamespacedName: grid})
	}
}

// byKeys returns the Grids of a kind that form units by one of some keys, found with findGrids.
func byKeys(ctx context.Context, c client.Reader, k kind, keys []string) (found []types.NamespacedName) {
	for _, key := range keys {
		found = append(found, findGrids(ctx, c, k, client.MatchingFields{indexKey: key}, "key "+key, "missed a change of a Node")...)
	}
	return found
}

// findGrids returns the Grids of a kind that an index of the cache has. If it cannot, it
// returns none, and logs by what they were listed, and what was missed.
func findGrids(ctx context.Context, c client.Reader, k kind, index client.MatchingFields, by, missed string) (found []types.NamespacedName) {
	grids := k.newGrids()
	err := c.List(ctx, grids, index, client.UnsafeDisableDeepCopy)
	if err == nil {
		err = meta.EachListItem(grids, func(o runtime.Object) error {
			found = append(found, client.ObjectKeyFromObject(o.(client.Object)))
			return nil
		})
	}
	if err != nil { // of a cache that has synced: a mistake of ours
		log.FromContext(ctx).Error(fmt.Errorf("listing the %ss by %s: %w", k.name, by, err), missed)
	}
	return found
}

// wakeForPods queues a Node, for its Pods, if any Grid forms units by one of the keys.
func (m *misplaced) wakeForPods(ctx context.Context, node string, keys []string, q queue) {
	for _, w := range m.of {
		if len(byKeys(ctx, m.client, w.kind, keys)) > 0 {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}})
			return
		}
	}
}
