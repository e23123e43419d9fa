package main

import (
	"context"
	"fmt"

	"gridproxy/cmd/inspect/clusterlist"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

type reader struct {
	config *rest.Config
	client kubernetes.Interface
	server clusterlist.GridServer
}

func (c *connection) reader() (*reader, error) {
	config, err := c.config()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &reader{config, client, clusterlist.GridServer{Client: client.CoreV1().RESTClient(), Address: config.Host}}, nil
}

// listAll reads the objects of one kind in pages. what names them in the error.
func listAll[T, L runtime.Object](
	ctx context.Context, r *reader, what string, o metav1.ListOptions, page func(context.Context, metav1.ListOptions) (L, error),
) (all []T, err error) {
	next := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return page(ctx, o) }
	if err := clusterlist.Each(ctx, r.server.Address, what, o, next, func(item T) { all = append(all, item) }); err != nil {
		return nil, err
	}
	return all, nil
}

func (r *reader) nodes(ctx context.Context, selector string) ([]*corev1.Node, error) {
	return listAll[*corev1.Node](ctx, r, "Nodes", metav1.ListOptions{LabelSelector: selector}, r.client.CoreV1().Nodes().List)
}

func (r *reader) services(ctx context.Context) ([]*corev1.Service, error) {
	return listAll[*corev1.Service](ctx, r, "Services", metav1.ListOptions{}, r.client.CoreV1().Services(metav1.NamespaceAll).List)
}

// getGrid reads one Grid into out. found is false if the Grid or the definition of its kind
// does not exist.
func (r *reader) getGrid(ctx context.Context, resource, namespace, name string, out any) (found bool, err error) {
	return r.get(ctx, clusterlist.GridPath(resource, namespace)+"/"+name, resource+" "+namespace+"/"+name, out)
}

// warnOfAPIProxy returns the warning of topology.WarnOfAPIProxy, if any, or why none is known.
func (r *reader) warnOfAPIProxy(ctx context.Context) string {
	var endpoints metav1.PartialObjectMetadata
	if _, err := r.get(ctx, "/api/v1/namespaces/default/endpoints/kubernetes", "Endpoints default/kubernetes", &endpoints); err != nil {
		return err.Error()
	}
	return topology.WarnOfAPIProxy(&endpoints)
}

// get reads one object into out; found is false if it does not exist. what names it in errors.
func (r *reader) get(ctx context.Context, path, what string, out any) (found bool, err error) {
	if found, err = r.server.Get(ctx, path, out); err != nil {
		return false, fmt.Errorf("reading %s from API server %s: %w", what, r.server.Address, err)
	}
	return found, nil
}
