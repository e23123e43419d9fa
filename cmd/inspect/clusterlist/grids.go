package clusterlist

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/gridspec"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// GridServer is an API server as far as it has Grids.
type GridServer struct {
	Client  rest.Interface // of any group
	Address string         // for messages
}

// GridPath returns the path of the Grids of one kind; namespace "" means all namespaces.
func GridPath(resource, namespace string) string {
	return resourcePath(v1.GroupVersion(), resource, namespace)
}

func resourcePath(of schema.GroupVersion, resource, namespace string) string {
	path := "/apis/" + of.String()
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource
}

// page lists one kind. A cluster without their definition has none.
func (s GridServer) page(ctx context.Context, path string, list runtime.Object, o metav1.ListOptions) (runtime.Object, error) {
	request := s.Client.Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).Param("limit", fmt.Sprint(o.Limit))
	if o.Continue != "" {
		request = request.Param("continue", o.Continue)
	}
	text, err := Raw(request.Do(ctx))
	if apierrors.IsNotFound(err) {
		return list, nil
	}
	if err != nil {
		return nil, err
	}
	return list, json.Unmarshal(text, list)
}

// Raw returns the text of an answer. Unlike DoRaw, its error has the message of the API server.
func Raw(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

// DeploymentGrids calls do for those of a namespace; "" = all.
func (s GridServer) DeploymentGrids(ctx context.Context, namespace string, do func(*v1.DeploymentGrid)) error {
	return Each(ctx, s.Address, "DeploymentGrids", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.page(ctx, GridPath("deploymentgrids", namespace), &v1.DeploymentGridList{}, o)
	}, do)
}

// StatefulSetGrids calls do for those of a namespace; "" = all.
func (s GridServer) StatefulSetGrids(ctx context.Context, namespace string, do func(*v1.StatefulSetGrid)) error {
	return Each(ctx, s.Address, "StatefulSetGrids", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.page(ctx, GridPath("statefulsetgrids", namespace), &v1.StatefulSetGridList{}, o)
	}, do)
}

// ServiceGrids calls do for those of a namespace; "" = all.
func (s GridServer) ServiceGrids(ctx context.Context, namespace string, do func(*v1.ServiceGrid)) error {
	return Each(ctx, s.Address, "ServiceGrids", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.page(ctx, GridPath("servicegrids", namespace), &v1.ServiceGridList{}, o)
	}, do)
}

// Grids returns those of all kinds in a namespace, or in all for "": none if the cluster has not
// their definitions. If the right to list some kinds is missing, denied is a line that says so, and
// the others are listed.
func (s GridServer) Grids(ctx context.Context, namespace string) (all []gridspec.Grid, denied string, err error) {
	defined, err := s.defined(ctx)
	if err != nil {
		return nil, "", err
	}
	var kinds []string
	for _, kind := range []struct {
		resource, name string
		list           func() error
	}{
		{"deploymentgrids", "DeploymentGrids", func() error {
			return s.DeploymentGrids(ctx, namespace, func(g *v1.DeploymentGrid) { all = append(all, gridspec.FromDeploymentGrid(g)) })
		}},
		{"statefulsetgrids", "StatefulSetGrids", func() error {
			return s.StatefulSetGrids(ctx, namespace, func(g *v1.StatefulSetGrid) { all = append(all, gridspec.FromStatefulSetGrid(g)) })
		}},
		{"servicegrids", "ServiceGrids", func() error {
			return s.ServiceGrids(ctx, namespace, func(g *v1.ServiceGrid) { all = append(all, gridspec.FromServiceGrid(g)) })
		}},
	} {
		if !defined[kind.resource] {
			continue
		}
		switch err := kind.list(); {
		case apierrors.IsForbidden(err):
			kinds = append(kinds, kind.name)
		case err != nil:
			return nil, "", err
		}
	}
	if len(kinds) > 0 {
		denied = fmt.Sprintf("%s are not looked at: API server %s does not allow listing them; ask for the right to list them in API group %s",
			strings.Join(kinds, ", "), s.Address, v1.Group)
	}
	return all, denied, nil
}

// defined returns the resources of the Grids' API group that the cluster has. Without the right to
// list Grids an API server does not say whether they exist.
func (s GridServer) defined(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, ListTimeout, fmt.Errorf("no answer within %s", ListTimeout))
	defer cancel()
	text, err := Raw(s.Client.Get().AbsPath("/apis/"+v1.GroupVersion().String()).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	var list metav1.APIResourceList
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("reading which resources API group %s has on API server %s: %w", v1.Group, s.Address, err)
	}
	found := map[string]bool{}
	for _, r := range list.APIResources {
		found[r.Name] = true
	}
	return found, nil
}

// FleetClusterPath returns the path of the FleetClusters.
func FleetClusterPath() string { return resourcePath(v1alpha1.GroupVersion(), "fleetclusters", "") }

// FleetClusters calls do for each. A cluster without their definition has none.
func (s GridServer) FleetClusters(ctx context.Context, do func(*v1alpha1.FleetCluster)) error {
	return Each(ctx, s.Address, "FleetClusters", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.page(ctx, FleetClusterPath(), &v1alpha1.FleetClusterList{}, o)
	}, do)
}

// GridReports calls do for those of a FleetCluster.
func (s GridServer) GridReports(ctx context.Context, cluster string, do func(*v1alpha1.GridReport)) error {
	path := resourcePath(v1alpha1.GroupVersion(), "gridreports", v1alpha1.NamespacePrefix+cluster)
	return Each(ctx, s.Address, "GridReports", metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		return s.page(ctx, path, &v1alpha1.GridReportList{}, o)
	}, do)
}
