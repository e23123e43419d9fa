package grid

import (
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

// wishes lets changes of a Grid's metadata and spec pass, but not those of the status, which only
// we write.
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

// onChild wakes the Grids that own an object, owned it, or want its name.
func (r *reconciler) onChild() childHandler {
	wake := func(q queue, objects ...child) {
		for _, o := range objects {
			if grid := o.owner(); grid != "" {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: grid}})
			}
		}
	}
	waiting := func(q queue, o child) {
		for _, grid := range r.memory.waiting(client.ObjectKeyFromObject(o)) {
			q.Add(reconcile.Request{NamespacedName: grid})
		}
	}
	return childHandler{
		CreateFunc: func(_ context.Context, e event.TypedCreateEvent[child], q queue) {
			if !e.IsInInitialList { // every Grid is reconciled at the start anyway
				wake(q, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.TypedUpdateEvent[child], q queue) {
			if e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() {
				return
			}
			wake(q, e.ObjectOld, e.ObjectNew)
			if e.ObjectOld.owner() != e.ObjectNew.owner() {
				waiting(q, e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.TypedDeleteEvent[child], q queue) {
			wake(q, e.Object)
			waiting(q, e.Object)
		},
	}
}

// onNode calls do with the keys that a change of a Node concerns, if there are any. concerns finds
// them in a Node before and after the change; one of the two is empty if the Node is new or gone.
func onNode(concerns func(old, new *corev1.Node) []string, do func(ctx context.Context, node string, keys []string, q queue)) nodeHandler {
	changed := func(ctx context.Context, name string, old, new *corev1.Node, q queue) {
		if keys := concerns(old, new); len(keys) > 0 {
			do(ctx, name, keys, q)
		}
	}
	return nodeHandler{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Node], q queue) {
			if !e.IsInInitialList {
				changed(ctx, e.Object.Name, &corev1.Node{}, e.Object, q)
			}
		},
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Node], q queue) {
			changed(ctx, e.ObjectNew.Name, e.ObjectOld, e.ObjectNew, q)
		},
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Node], q queue) {
			changed(ctx, e.Object.Name, e.Object, &corev1.Node{}, q)
		},
	}
}

type (
	childHandler = handler.TypedFuncs[child, reconcile.Request]
	nodeHandler  = handler.TypedFuncs[*corev1.Node, reconcile.Request]
)

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

// wakeByKey queues the Grids of a kind that form units by one of some keys.
func (r *reconciler) wakeByKey(ctx context.Context, _ string, keys []string, q queue) {
	for _, grid := range byKeys(ctx, r.client, r.kind, keys) {
		q.Add(reconcile.Request{NamespacedName: grid})
	}
}

// byKeys returns the Grids of a kind that form units by one of some keys.
func byKeys(ctx context.Context, c client.Reader, k kind, keys []string) []types.NamespacedName {
	var found []types.NamespacedName
	for _, key := range keys {
		grids := k.newGrids()
		err := c.List(ctx, grids, client.MatchingFields{indexKey: key}, client.UnsafeDisableDeepCopy)
		if err == nil {
			err = meta.EachListItem(grids, func(o runtime.Object) error {
				found = append(found, client.ObjectKeyFromObject(o.(client.Object)))
				return nil
			})
		}
		if err != nil { // of a cache that has synced: a mistake of ours
			log.FromContext(ctx).Error(fmt.Errorf("listing the %ss by key %s: %w", k.name, key, err), "missed a change of a Node")
		}
	}
	return found
}

// wakeForPods queues a Node whose Pods may be misplaced now.
func (m *misplaced) wakeForPods(ctx context.Context, node string, keys []string, q queue) {
	for _, w := range m.of {
		if len(byKeys(ctx, m.client, w.kind, keys)) > 0 {
			q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: node}})
			return
		}
	}
}
