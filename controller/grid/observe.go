package grid

import (
	"context"
	"fmt"
	"slices"

	"gridproxy/controller/expand"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// observe is what is known about a Grid before anything is read live.
func (r *reconciler) observe(ctx context.Context, o client.Object, standing any, known *remembered) (expand.World, error) {
	w := expand.World{
		Grid: r.kind.read(o), Status: r.kind.common(standing), Applied: known.applied, Kept: known.kept,
		Occupants: map[string]*expand.Live{}, Now: r.now(), Grace: r.grace,
	}
	w.Pruned = known.prunedFor(w.Grid.Generation, w.Status.PrunedTemplates)
	var err error
	if w.Children, err = r.children(ctx, w.Grid, known); err != nil || !r.kind.units() {
		return w, err
	}
	w.Units, err = units(ctx, r.client, w.Grid.Key)
	return w, err
}

// units holds for each value of a label key the Nodes that carry it, sorted.
func units(ctx context.Context, c client.Reader, key string) (map[string][]string, error) {
	if key == "" {
		return nil, nil
	}
	nodes := newNodes()
	// Nothing is written to them, so they need not be copied.
	if err := c.List(ctx, nodes, client.MatchingFields{indexKey: key}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Nodes with label %s: %w", key, err)
	}
	units := map[string][]string{}
	for i := range nodes.Items {
		value := nodes.Items[i].Labels[key]
		units[value] = append(units[value], nodes.Items[i].Name)
	}
	for _, names := range units {
		slices.Sort(names)
	}
	return units, nil
}

// children are the objects that the Grid controls, and those that no one controls and that carry its label.
func (r *reconciler) children(ctx context.Context, g expand.Grid, known *remembered) ([]expand.Live, error) {
	var children []expand.Live
	for _, claim := range claimsOf(g) {
		list := r.kind.newChilds()
		if err := r.client.List(ctx, list, client.InNamespace(g.Namespace), client.MatchingFields{indexGrid: claim}); err != nil {
			return nil, fmt.Errorf("listing the children of %s %s/%s: %w", g.Kind, g.Namespace, g.Name, err)
		}
		err := meta.EachListItem(list, func(o runtime.Object) error {
			l, err := live(o.(client.Object))
			if err == nil {
				children = append(children, known.newest(l))
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(children, compareLive)
	return children, nil
}

// look takes up what stands at names that are wanted and that nothing is known about. What the cache has is not the
// Grid's, or it would be among its children, and nothing will be done to it, so that is enough; where the cache has
// nothing the API server is asked.
func (r *reconciler) look(ctx context.Context, w *expand.World, names []string) error {
	for _, name := range names {
		key := types.NamespacedName{Namespace: w.Grid.Namespace, Name: name}
		found := r.kind.newChild()
		err := r.client.Get(ctx, key, found)
		if apierrors.IsNotFound(err) {
			err = r.live.Get(ctx, key, found)
		}
		if apierrors.IsNotFound(err) {
			w.Occupants[name] = nil
			continue
		}
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", r.kind.name.Child().Kind, key, err)
		}
		l, err := live(found)
		if err != nil {
			return err
		}
		if belongs(found, w.Grid) {
			setChild(w, l)
		} else {
			w.Occupants[name] = &l
		}
	}
	return nil
}

func belongs(o client.Object, g expand.Grid) bool {
	return slices.ContainsFunc(claims(o), func(claim string) bool { return slices.Contains(claimsOf(g), claim) })
}

// setChild puts a child in the place of the one of that name, or among the others.
func setChild(w *expand.World, l expand.Live) {
	i, found := slices.BinarySearchFunc(w.Children, l, compareLive)
	if found {
		w.Children[i] = l
		return
	}
	w.Children = slices.Insert(w.Children, i, l)
}

func dropChild(w *expand.World, name string) {
	w.Children = slices.DeleteFunc(w.Children, func(l expand.Live) bool { return l.Name == name })
}

// markDeleting: a child of a lost unit that was deleted stands until the cache has seen it go, which somebody's finalizer
// may put off. Were it dropped at once, its unit would leave the status, come back with the next look, and be told as lost
// again.
func markDeleting(w *expand.World, name string) {
	for i := range w.Children {
		if w.Children[i].Name == name {
			w.Children[i].Deleting = true
		}
	}
}
