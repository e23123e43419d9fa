package main

import (
	"context"
	"log/slog"

	v1 "gridproxy/controller/api/v1"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// givenNamespaces warns, once at the start, of namespaces of --namespaces that do not exist. It is
// no error: they may be made later.
type givenNamespaces struct {
	live  client.Reader
	names []string
	log   *slog.Logger
}

// Start asks for each namespace. The account need not have the right to read Namespaces: then it
// cannot list Grids in one that does not exist, since its RoleBinding is in it.
func (g givenNamespaces) Start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leftoverTimeout)
	defer cancel()
	for _, name := range g.names {
		namespace := &metav1.PartialObjectMetadata{}
		namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		err := g.live.Get(ctx, types.NamespacedName{Name: name}, namespace)
		if apierrors.IsForbidden(err) {
			grids := &metav1.PartialObjectMetadataList{}
			grids.SetGroupVersionKind(v1.GroupVersion().WithKind("DeploymentGridList"))
			err = g.live.List(ctx, grids, client.InNamespace(name), client.Limit(1))
		}
		if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
			g.log.Warn("a namespace of --namespaces does not exist, or the account has no rights in it: correct the name, or create it with its RoleBinding", "namespace", name, "err", err)
		}
	}
	return nil
}
