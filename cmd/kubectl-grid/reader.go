package main

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	v1 "gridproxy/controller/api/v1"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/pager"
)

// patience is how long the API server may take to list one kind.
const patience = 30 * time.Second

// reader reads objects from the API server.
type reader struct {
	client kubernetes.Interface
	rest   rest.Interface
	server string
}

func newReader(config *rest.Config) (*reader, error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return &reader{client: client, rest: client.CoreV1().RESTClient(), server: config.Host}, nil
}

// listAll reads the objects of one kind in pages. what names them in the error.
func listAll[T runtime.Object](ctx context.Context, r *reader, what string, o metav1.ListOptions, page pager.ListPageFunc) ([]T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	var all []T
	err := pager.New(page).EachListItem(ctx, o, func(item runtime.Object) error {
		all = append(all, item.(T))
		return nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("listing %s of API server %s: %w", what, r.server, err)
	}
	return all, nil
}

// nodes are those that a label selector selects.
func (r *reader) nodes(ctx context.Context, selector string) ([]*corev1.Node, error) {
	return listAll[*corev1.Node](ctx, r, "Nodes", metav1.ListOptions{LabelSelector: selector}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Nodes().List(ctx, o)
	})
}

// services are all; o has selectors.
func (r *reader) services(ctx context.Context, o metav1.ListOptions) ([]*corev1.Service, error) {
	return listAll[*corev1.Service](ctx, r, "Services", o, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, o)
	})
}

// gridPath is the path of the Grids of one kind; namespace "" = of all namespaces.
func gridPath(resource, namespace string) string {
	path := "/apis/" + v1.Group + "/" + v1.Version
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource
}

// gridList lists one kind of Grids. A cluster without their definition has none.
func (r *reader) gridList(ctx context.Context, path string, list runtime.Object, o metav1.ListOptions) (runtime.Object, error) {
	request := r.rest.Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).Param("limit", fmt.Sprint(o.Limit))
	if o.Continue != "" {
		request = request.Param("continue", o.Continue)
	}
	text, err := rawOf(request.Do(ctx))
	if apierrors.IsNotFound(err) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(text, list)
}

// rawOf is the text of an answer. Unlike DoRaw, its error has the message of the API server.
func rawOf(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

// deploymentGrids are those of a namespace; "" = all.
func (r *reader) deploymentGrids(ctx context.Context, namespace string) ([]*v1.DeploymentGrid, error) {
	return listAll[*v1.DeploymentGrid](ctx, r, "DeploymentGrids", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.gridList(ctx, gridPath("deploymentgrids", namespace), &v1.DeploymentGridList{}, o)
	})
}

// statefulSetGrids are those of a namespace; "" = all.
func (r *reader) statefulSetGrids(ctx context.Context, namespace string) ([]*v1.StatefulSetGrid, error) {
	return listAll[*v1.StatefulSetGrid](ctx, r, "StatefulSetGrids", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return r.gridList(ctx, gridPath("statefulsetgrids", namespace), &v1.StatefulSetGridList{}, o)
	})
}

// getGrid reads one Grid into out. found is false if there is none, or no definition of its kind.
func (r *reader) getGrid(ctx context.Context, resource, namespace, name string, out any) (found bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("no answer within %s", patience))
	defer cancel()
	text, err := rawOf(r.rest.Get().AbsPath(gridPath(resource, namespace), name).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx))
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
		return false, fmt.Errorf("reading %s %s/%s from API server %s: %w", resource, namespace, name, r.server, err)
	}
	return true, nil
}
