package main

import (
	"context"
	"encoding/json"
	"fmt"

	"gridproxy/cmd/inspect/clusterlist"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
)

// reader reads objects from the API server.
type reader struct {
	client kubernetes.Interface
	server clusterlist.GridServer
}

func newReader(config *rest.Config) (*reader, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &reader{client: client, server: clusterlist.GridServer{Client: client.CoreV1().RESTClient(), Address: config.Host}}, nil
}

// listAll reads the objects of one kind. what names them in the error.
func listAll[T runtime.Object](ctx context.Context, r *reader, what string, o metav1.ListOptions, page pager.ListPageFunc) (all []T, err error) {
	if err := clusterlist.Each(ctx, r.server.Address, what, o, page, func(item T) { all = append(all, item) }); err != nil {
		return nil, err
	}
	return all, nil
}

func (r *reader) nodes(ctx context.Context, selector string) ([]*corev1.Node, error) {
	return listAll[*corev1.Node](ctx, r, "Nodes", metav1.ListOptions{LabelSelector: selector}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Nodes().List(ctx, o)
	})
}

func (r *reader) services(ctx context.Context) ([]*corev1.Service, error) {
	return listAll[*corev1.Service](ctx, r, "Services", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, o)
	})
}

// getGrid reads one Grid into out. found is false if the Grid or the definition of its kind
// does not exist.
func (r *reader) getGrid(ctx context.Context, resource, namespace, name string, out any) (found bool, err error) {
	return r.get(ctx, clusterlist.GridPath(resource, namespace)+"/"+name, resource+" "+namespace+"/"+name, out)
}

// warnOfAPIProxy returns the warning of topology.WarnOfAPIProxy, or why nothing is known.
func (r *reader) warnOfAPIProxy(ctx context.Context) string {
	var endpoints metav1.PartialObjectMetadata
	if _, err := r.get(ctx, "/api/v1/namespaces/default/endpoints/kubernetes", "Endpoints default/kubernetes", &endpoints); err != nil {
		return err.Error()
	}
	return topology.WarnOfAPIProxy(&endpoints)
}

// get reads one object into out. what names it in the error. The API server's warnings, such as the
// one that Endpoints are deprecated, are not printed.
func (r *reader) get(ctx context.Context, path, what string, out any) (found bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, clusterlist.ListTimeout, fmt.Errorf("no answer within %s", clusterlist.ListTimeout))
	defer cancel()
	text, err := clusterlist.Raw(r.server.Client.Get().AbsPath(path).WarningHandler(rest.NoWarnings{}).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx))
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err == nil {
		err = json.Unmarshal(text, out)
	}
	if err != nil {
		return false, fmt.Errorf("reading %s from API server %s: %w", what, r.server.Address, err)
	}
	return true, nil
}
