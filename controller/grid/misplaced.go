package grid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/grid/expand"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// misplaced finds the Pods of children that run on Nodes outside the child's unit. Pods have no
// informer, because a cluster has too many. Pods become misplaced when a Node's labels change: then
// one LIST of the Node's Pods finds them. One LIST for each selector of a Grid's children finds
// those from before this process. It is answered from the API server's watch cache, and its
// findings are acted on in the next reconcile.
type misplaced struct {
	client client.Reader // reads from the caches
	live   client.Reader
	now    func() time.Time
	of     map[expand.Kind]*watched // the kinds with units
	// namespaces are those whose Pods are looked at; none: all.
	namespaces []string
}

// watched is where the findings about the Grids of one kind go.
type watched struct {
	kind   kind
	memory *memory
	wake   chan event.GenericEvent // the Grids to reconcile
}

// Reconcile checks the Pods of a Node, and wakes the Grids that are concerned.
func (m *misplaced) Reconcile(ctx context.Context, q reconcile.Request) (reconcile.Result, error) {
	return reconcile.Result{}, m.look(ctx, q.Name, types.UID(""))
}

// look lists the Pods of a Node live, records those outside their unit, and wakes the Grids for
// which that changes, except the one with the UID except. A Node that is gone has none.
func (m *misplaced) look(ctx context.Context, name string, except types.UID) error {
	node := &corev1.Node{}
	err := m.client.Get(ctx, types.NamespacedName{Name: name}, node)
	var pods []metav1.PartialObjectMetadata
	if err == nil {
		pods, err = m.podsOn(ctx, name)
	}
	// Kubernetes deletes the Pods of a deleted Node.
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("looking for misplaced Pods on Node %s: %w", name, err)
	}
	found := map[grid][]expand.Pod{}
	for i := range pods {
		pod := &pods[i]
		g, child, err := m.outside(ctx, pod, node.Labels)
		if err != nil {
			return err
		}
		if g.Name != "" {
			found[g] = append(found[g], m.pod(pod, name, child))
		}
	}
	for k, w := range m.of {
		for _, known := range w.memory.withMisplaced(name) {
			g := grid{k, known}
			found[g] = slices.Clip(found[g]) // an entry also if no Pod is left
		}
	}
	for g, pods := range found {
		w := m.of[g.kind]
		news := w.memory.setMisplaced(g.NamespacedName, func(p expand.Pod) bool { return p.Node == name }, pods)
		if news && w.memory.uid(g.NamespacedName) != except {
			w.rouse(ctx, g.NamespacedName)
		}
	}
	return nil
}

// podsOn reads the Pods of a Node live. Only their metadata is read.
func (m *misplaced) podsOn(ctx context.Context, node string) ([]metav1.PartialObjectMetadata, error) {
	namespaces := m.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var all []metav1.PartialObjectMetadata
	for _, namespace := range namespaces {
		pods := &metav1.PartialObjectMetadataList{}
		pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
		if err := m.live.List(ctx, pods, client.InNamespace(namespace), client.MatchingFields{"spec.nodeName": node}); err != nil {
			return nil, err
		}
		all = append(all, pods.Items...)
	}
	return all, nil
}

// grid names a Grid of any kind.
type grid struct {
	kind expand.Kind
	types.NamespacedName
}

// outside returns the Grid of a Pod that runs outside its unit, and the name of the child that
// it belongs to. Both are empty for every other Pod. node has the labels of its Node.
func (m *misplaced) outside(ctx context.Context, pod client.Object, node map[string]string) (grid, string, error) {
	k, name, uid := workloadOf(pod)
	w := m.of[k]
	if w == nil || pod.GetDeletionTimestamp() != nil {
		return grid{}, "", nil
	}
	child := w.kind.newChild()
	err := m.client.Get(ctx, types.NamespacedName{Namespace: pod.GetNamespace(), Name: name}, child)
	if apierrors.IsNotFound(err) || err == nil && uid != "" && child.GetUID() != uid {
		return grid{}, "", nil
	}
	if err != nil {
		return grid{}, "", fmt.Errorf("reading the owner of Pod %s/%s: %w", pod.GetNamespace(), pod.GetName(), err)
	}
	l := child.read()
	of := grid{k, types.NamespacedName{Namespace: pod.GetNamespace(), Name: child.owner()}}
	o := w.kind.newGrid()
	err = m.client.Get(ctx, of.NamespacedName, o)
	if apierrors.IsNotFound(err) || l.Owner == "" || err == nil && l.Owner != o.GetUID() {
		return grid{}, "", nil
	}
	if err != nil {
		return grid{}, "", fmt.Errorf("reading %s %s: %w", k, of.NamespacedName, err)
	}
	if g := w.kind.read(o); node[g.Key] == expand.ValueOf(g, l) {
		return grid{}, "", nil
	}
	return of, name, nil
}

func (m *misplaced) pod(o client.Object, node, child string) expand.Pod {
	return expand.Pod{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), Node: node, Child: child, Since: m.now()}
}

// workloadOf returns the Deployment or StatefulSet that a Pod belongs to: kind of Grid, name and
// UID, all "" for another Pod. A Deployment's name is its ReplicaSet's without the hash, which
// is on the Pod; its UID is "", because it is not known from the Pod.
func workloadOf(pod client.Object) (expand.Kind, string, types.UID) {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return "", "", ""
	}
	switch owner.Kind {
	case "StatefulSet":
		return expand.StatefulSetGrid, owner.Name, owner.UID
	case "ReplicaSet":
		hash := pod.GetLabels()[appsv1.DefaultDeploymentUniqueLabelKey]
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok && hash != "" {
			return expand.DeploymentGrid, name, ""
		}
	}
	return "", "", ""
}

// refresh checks the Nodes on which a Grid has misplaced Pods with look, because Pods leave
// without an event. Usually there are none. An error does not stop it; it returns them joined.
func (m *misplaced) refresh(ctx context.Context, observed expand.Observed, known *remembered) error {
	w := m.of[observed.Grid.Kind]
	if w == nil {
		return nil
	}
	var errs []error
	nodes := map[string]bool{}
	for _, p := range w.memory.misplacedPods(known) {
		nodes[p.Node] = true
	}
	for _, node := range slices.Sorted(maps.Keys(nodes)) {
		errs = append(errs, m.look(ctx, node, observed.Grid.UID))
	}
	return errors.Join(errs...)
}

// searchOnce checks all Pods of a Grid's children, until that has succeeded once for the Grid.
// It reports whether the Grid has misplaced Pods; it returns false if it checks nothing.
func (m *misplaced) searchOnce(ctx context.Context, observed expand.Observed, known *remembered) (bool, error) {
	w := m.of[observed.Grid.Kind]
	if w == nil || known.searched {
		return false, nil
	}
	if err := m.search(ctx, w, observed, known); err != nil {
		return false, err
	}
	return len(w.memory.misplacedPods(known)) > 0, nil
}

func (m *misplaced) search(ctx context.Context, w *watched, observed expand.Observed, known *remembered) error {
	value := map[string]string{} // by Node
	for v, nodes := range observed.Units {
		for _, n := range nodes {
			value[n] = v
		}
	}
	children, selectors := map[string]string{}, map[expand.Pairs]bool{}
	for _, c := range observed.Children {
		if c.Owner == observed.Grid.UID && c.Selects != (expand.Pairs{}) {
			children[c.Name] = expand.ValueOf(observed.Grid, c)
			selectors[c.Selects] = true
		}
	}
	var found []expand.Pod
	for selector := range selectors {
		pods := &corev1.PodList{}
		// It is answered from the watch cache: a list from etcd for each Grid would be a load that
		// grows with all Pods of the namespace whenever a controller starts.
		cached := &client.ListOptions{
			Namespace: observed.Grid.Namespace, LabelSelector: labels.SelectorFromSet(selector.Map()), Raw: &metav1.ListOptions{ResourceVersion: "0"},
		}
		if err := m.live.List(ctx, pods, cached); err != nil {
			return fmt.Errorf("looking for misplaced Pods of %s %s/%s: %w", observed.Grid.Kind, observed.Grid.Namespace, observed.Grid.Name, err)
		}
		for i := range pods.Items {
			p := &pods.Items[i]
			k, child, _ := workloadOf(p)
			wanted, ours := children[child]
			if k == observed.Grid.Kind && ours && p.DeletionTimestamp == nil && p.Spec.NodeName != "" && value[p.Spec.NodeName] != wanted {
				found = append(found, m.pod(p, p.Spec.NodeName, child))
			}
		}
	}
	known.searched = true
	grid := types.NamespacedName{Namespace: observed.Grid.Namespace, Name: observed.Grid.Name}
	w.memory.setMisplaced(grid, func(expand.Pod) bool { return true }, found)
	return nil
}

func (w *watched) rouse(ctx context.Context, grid types.NamespacedName) {
	o := w.kind.newGrid()
	o.SetNamespace(grid.Namespace)
	o.SetName(grid.Name)
	select {
	case w.wake <- event.GenericEvent{Object: o}:
	case <-ctx.Done():
	}
}

// evict asks for the eviction of a misplaced Pod, so that disruption budgets are respected. If
// one refuses, it returns nil and retries later. It forgets a Pod that was evicted or is gone.
func (e *execution) evict(ctx context.Context, s expand.Evict) error {
	meta := metav1.ObjectMeta{Namespace: s.Pod.Namespace, Name: s.Pod.Name}
	eviction := &policyv1.Eviction{
		ObjectMeta:    meta,
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.Pod.UID}},
	}
	err := e.client.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: meta}, eviction, client.FieldOwner(Manager))
	switch {
	case apierrors.IsTooManyRequests(err):
		e.retry(evictionDelay)
		return nil
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err): // gone, or another Pod of that name
		return fmt.Errorf("evicting the misplaced Pod %s/%s from Node %s: %w", s.Pod.Namespace, s.Pod.Name, s.Pod.Node, err)
	case err == nil:
		log.FromContext(ctx).Info("evicted", "pod", s.Pod.Name, "node", s.Pod.Node, "child", s.Pod.Child)
	}
	e.memory.dropMisplaced(e.known, s.Pod.UID)
	e.observed.Misplaced = e.memory.misplacedPods(e.known)
	return nil
}

func comparePods(a, b expand.Pod) int {
	return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
