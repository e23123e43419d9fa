package grid

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gridproxy/controller/grid/expand"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe returns what is known about a Grid without live reads. last is from lastStatus.
func (r *reconciler) observe(ctx context.Context, o client.Object, last any, known *remembered) (expand.Observed, error) {
	observed := expand.Observed{
		Grid: r.kind.read(o), Status: r.kind.common(last), Applied: known.applied, Repairs: known.recentRepairs(r.now()), Kept: known.kept,
		Occupants: map[string]*expand.Live{}, Memo: &known.memo, Now: r.now(), Grace: r.grace, Budget: r.budget, MaxUnits: r.maxUnits,
		Flips: known.flips, NewUnits: r.newUnits,
		FederationOff: r.federationOff(o), Reported: known.announced,
	}
	if known.removals != nil {
		observed.Status.Removals = *known.removals
	}
	observed.Watched = r.memory.watchedSince(observed.Now)
	observed.Pruned = known.prunedFor(observed.Grid.Generation, observed.Status.PrunedTemplates)
	var err error
	if observed.Fleet, err = r.fleet(ctx, o); err != nil {
		return observed, err
	}
	if observed.Children, err = r.children(ctx, observed.Grid, known); err != nil {
		return observed, err
	}
	if r.kind.units() {
		found, err := units(ctx, r.client, observed.Grid.Key)
		if err != nil {
			return observed, err
		}
		observed.Units, observed.ReadyNodes, observed.ReadySince = found.nodes, found.ready, found.since
		if len(observed.Units) == 0 && len(observed.Children) == 0 && observed.Grid.Key != "" {
			if observed.NodeKeys, err = carriedKeys(ctx, r.client); err != nil {
				return observed, err
			}
		}
	}
	observed.Others, err = r.others(ctx, observed)
	return observed, err
}

// others returns the names of the Nodes for each key of expand.OtherKeys, by key and value.
func (r *reconciler) others(ctx context.Context, observed expand.Observed) (map[string]map[string][]string, error) {
	others := map[string]map[string][]string{}
	for _, key := range expand.OtherKeys(observed) {
		found, err := units(ctx, r.client, key)
		if err != nil {
			return nil, err
		}
		others[key] = found.nodes
	}
	return others, nil
}

// byValue is what is known of the Nodes that carry a label key, by its values.
type byValue struct {
	nodes map[string][]string // their names, sorted
	ready map[string]int      // how many of them are ready
	since map[string]time.Time
}

// units returns what is known of the Nodes of all units of a key; nothing for the key "".
func units(ctx context.Context, c client.Reader, key string) (byValue, error) {
	found := byValue{nodes: map[string][]string{}, ready: map[string]int{}, since: map[string]time.Time{}}
	if key == "" {
		return found, nil
	}
	nodes := &corev1.NodeList{}
	// Nothing is written to them, so they need not be copied.
	if err := c.List(ctx, nodes, client.MatchingFields{indexKey: key}, client.UnsafeDisableDeepCopy); err != nil {
		return byValue{}, fmt.Errorf("listing the Nodes with label %s: %w", key, err)
	}
	for i := range nodes.Items {
		n := &nodes.Items[i]
		value := n.Labels[key]
		found.nodes[value] = append(found.nodes[value], n.Name)
		c := readiness(n)
		if c.Status != corev1.ConditionTrue {
			continue
		}
		found.ready[value]++
		if since := found.since[value]; found.ready[value] == 1 || c.LastTransitionTime.Time.Before(since) {
			found.since[value] = c.LastTransitionTime.Time
		}
	}
	for _, names := range found.nodes {
		slices.Sort(names)
	}
	return found, nil
}

// readiness returns the condition Ready of a Node, empty if the Node does not have it.
func readiness(n *corev1.Node) corev1.NodeCondition {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// isReady reports whether the kubelet of a Node is well and in touch with the cluster.
func isReady(n *corev1.Node) bool { return readiness(n).Status == corev1.ConditionTrue }

// carriedKeys returns the label keys that Nodes carry with a value, sorted.
func carriedKeys(ctx context.Context, c client.Reader) ([]string, error) {
	nodes := &corev1.NodeList{}
	if err := c.List(ctx, nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Nodes: %w", err)
	}
	carried := map[string]bool{}
	for i := range nodes.Items {
		for _, key := range nodeKeys(&nodes.Items[i]) {
			carried[key] = true
		}
	}
	return slices.Sorted(maps.Keys(carried)), nil
}

// children returns the objects that the Grid controls, and those without a controller that
// carry its label, sorted by name, as our writes left them even if the cache is behind.
func (r *reconciler) children(ctx context.Context, g expand.Grid, known *remembered) ([]expand.Live, error) {
	var children []expand.Live
	for _, key := range childKeys(g) {
		list := r.kind.newChilds()
		// Nothing is written to them, so they need not be copied.
		err := r.client.List(ctx, list, client.InNamespace(g.Namespace), client.MatchingFields{indexGrid: key}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the children of %s %s/%s: %w", g.Kind, g.Namespace, g.Name, err)
		}
		err = meta.EachListItem(list, func(o runtime.Object) error {
			children = append(children, known.newest(o.(child).read()))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	known.markDeleted(children)
	slices.SortFunc(children, compareLive)
	return children, nil
}

// look reads the objects at wanted names about which nothing is known into observed.Occupants,
// nil for a free name, or into Children. An object in the cache is not the Grid's, or it would
// be among its children. It will not be written, so the cache is sufficient. If the cache has
// none, the name counts as free, because the apply does not change an object that is there
// after all (decision 15). A live read follows only if the cache may be behind.
func (r *reconciler) look(ctx context.Context, observed *expand.Observed, known *remembered, names []string) error {
	for _, name := range names {
		key := types.NamespacedName{Namespace: observed.Grid.Namespace, Name: name}
		found := r.kind.newChild()
		err := r.client.Get(ctx, key, found)
		behind := apierrors.IsNotFound(err) && known.mayExist(name)
		if behind {
			err = r.live.Get(ctx, key, found)
		}
		if apierrors.IsNotFound(err) || err == nil && !behind {
			delete(known.taken, name)
		}
		if apierrors.IsNotFound(err) {
			observed.Occupants[name] = nil
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", r.kind.name.Child().Kind, key, err)
		}
		l := found.read()
		if belongs(l, observed.Grid) {
			setChild(observed, l)
		} else {
			observed.Occupants[name] = &l
		}
	}
	return nil
}

func belongs(l expand.Live, g expand.Grid) bool {
	return slices.ContainsFunc(ownerKeys(l), func(key string) bool { return slices.Contains(childKeys(g), key) })
}

// setChild puts a child in the place of the observed one of that name, or among the others.
func setChild(observed *expand.Observed, l expand.Live) {
	i, found := slices.BinarySearchFunc(observed.Children, l, compareLive)
	if found {
		observed.Children[i] = l
		return
	}
	observed.Children = slices.Insert(observed.Children, i, l)
}

func dropChild(observed *expand.Observed, name string) {
	observed.Children = slices.DeleteFunc(observed.Children, func(l expand.Live) bool { return l.Name == name })
}

// markDeleting marks the deleted child of a lost unit. It stays until the cache has seen it go,
// which a finalizer of another program may delay. If it were dropped at once, its unit would
// leave the status, come back with the next read, and be reported as lost again.
func markDeleting(observed *expand.Observed, name string) {
	for i := range observed.Children {
		if observed.Children[i].Name == name {
			observed.Children[i].Deleting = true
		}
	}
}
