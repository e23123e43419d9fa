package grid

import (
	"context"
	"fmt"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/topology"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The indexes of the caches.
const (
	indexGrid = "grid" // of children: what ownerKeys says
	indexKey  = "key"  // of Grids: gridUniqKey; of Nodes: each label key with a value
)

// addIndexes adds indexGrid for a kind's children, and indexKey for its Grids, to the caches.
func addIndexes(ctx context.Context, indexer client.FieldIndexer, k kind) error {
	err := indexer.IndexField(ctx, k.newChild(), indexGrid, func(o client.Object) []string { return ownerKeys(o.(child).read()) })
	if err == nil {
		err = indexer.IndexField(ctx, k.newGrid(), indexKey, func(o client.Object) []string { return []string{k.read(o).Key} })
	}
	if err != nil {
		return fmt.Errorf("indexing the cache of %ss: %w", k.name, err)
	}
	return nil
}

func nodeKeys(o client.Object) []string {
	var keys []string
	for key, value := range o.GetLabels() {
		if value != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// ownerKeys returns the index key of the Grid that an object may belong to: the UID of its
// controller, else its selector label. It returns nil if the object has neither.
func ownerKeys(l expand.Live) []string {
	if l.Owner != "" {
		return []string{byUID(l.Owner)}
	}
	if label := l.Labels.Get(v1.LabelSelector); label != "" {
		return []string{byLabel(label)}
	}
	return nil
}

func byUID(uid types.UID) string { return "uid/" + string(uid) }

func byLabel(label string) string { return "label/" + label }

// childKeys returns the index keys by which a Grid finds its children.
func childKeys(g expand.Grid) []string {
	return []string{byUID(g.UID), byLabel(topology.LabelValue(g.Name))}
}

// ownerGrid returns the name of the Grid of kind k that controls an object, or that an object
// without a controller names; else "".
func ownerGrid(k expand.Kind, o client.Object) string {
	owner := metav1.GetControllerOfNoCopy(o)
	if owner == nil {
		return gridName(o)
	}
	gv, err := schema.ParseGroupVersion(owner.APIVersion)
	if err != nil || gv.Group != v1.Group || owner.Kind != string(k) {
		return ""
	}
	return owner.Name
}
