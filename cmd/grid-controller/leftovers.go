package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// leftovers looks once, at the start of a process without --federation=hub, for objects with the
// finalizer of a hub: without a hub they cannot be deleted.
type leftovers struct {
	live       client.Reader
	namespaces []string // of Grids; none: all
	log        *slog.Logger
}

// Start logs what it finds, and returns nil. Kinds that are not served or must not be listed
// have nothing. The account may list FleetClusters on a hub alone: there is a request for them
// only where there are Grids of a hub.
func (l leftovers) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, searchTimeout)
	defer cancel()
	namespaces := l.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	hasGrids := false
	for _, kind := range []string{"DeploymentGrid", "StatefulSetGrid", "ServiceGrid"} {
		found := l.report(ctx, v1.GroupVersion().WithKind(kind), namespaces)
		hasGrids = hasGrids || found
	}
	if hasGrids {
		l.report(ctx, v1alpha1.GroupVersion().WithKind("FleetCluster"), []string{metav1.NamespaceAll})
	}
	return nil
}

// report logs how many objects of a kind have the finalizer, and reports whether any has.
func (l leftovers) report(ctx context.Context, kind schema.GroupVersionKind, namespaces []string) bool {
	found, example := 0, ""
	for _, namespace := range namespaces {
		n, first := l.find(ctx, kind, namespace)
		found, example = found+n, cmp.Or(example, first)
	}
	if found > 0 {
		l.log.Warn("objects have the finalizer "+v1alpha1.Finalizer+", which only --federation=hub takes off: until then a deletion of them does not end. "+
			"If this cluster is to be a hub no longer, remove it from each; what members have stays there",
			"kind", kind.Kind, "count", found, "remedy", example)
	}
	return found > 0
}

// find counts the objects of a kind that have the finalizer, and returns the command that
// removes it from the first; "" = none. After an error, which it logs, it returns what it has.
func (l leftovers) find(ctx context.Context, kind schema.GroupVersionKind, namespace string) (count int, example string) {
	resource, next := strings.ToLower(kind.Kind)+"s."+kind.Group, ""
	for range pagesMax {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		if err := l.live.List(ctx, &list, client.InNamespace(namespace), client.Limit(pageMax), client.Continue(next)); err != nil {
			l.log.Debug("not known whether objects have the finalizer "+v1alpha1.Finalizer, "of", resource, "err", err)
			return count, example
		}
		for i := range list.Items {
			o := &list.Items[i]
			place := slices.Index(o.Finalizers, v1alpha1.Finalizer)
			if place < 0 {
				continue
			}
			if count++; example == "" {
				example = withoutFinalizer(o, resource, place)
			}
		}
		if next = list.Continue; next == "" {
			break
		}
	}
	return count, example
}

// withoutFinalizer returns the command that removes the finalizer from an object. The command
// fails if the finalizer is not at that place any more.
func withoutFinalizer(o client.Object, resource string, place int) string {
	words := []string{"kubectl"}
	if o.GetNamespace() != "" {
		words = append(words, "--namespace", o.GetNamespace())
	}
	patch := fmt.Sprintf(`[{"op": "test", "path": "/metadata/finalizers/%d", "value": %q}, {"op": "remove", "path": "/metadata/finalizers/%[1]d"}]`,
		place, v1alpha1.Finalizer)
	return strings.Join(append(words, "patch", resource, o.GetName(), "--type=json", "--patch", "'"+patch+"'"), " ")
}
