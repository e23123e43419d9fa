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

// list calls do for the objects at a path. Each page is read into a copy of empty. what names
// the objects in the error. A cluster without their definition has none.
func list[T runtime.Object](ctx context.Context, s GridServer, what, path string, empty runtime.Object, do func(T)) error {
	return Each(ctx, s.Address, what, metav1.ListOptions{}, func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
		request := s.Client.Get().AbsPath(path).SetHeader("Accept", runtime.ContentTypeJSON).Param("limit", fmt.Sprint(o.Limit))
		if o.Continue != "" {
			request = request.Param("continue", o.Continue)
		}
		page := empty.DeepCopyObject()
		text, err := raw(request.Do(ctx))
		if apierrors.IsNotFound(err) {
			return page, nil
		}
		if err != nil {
			return nil, err
		}
		return page, json.Unmarshal(text, page)
	}, do)
}

// raw returns the text of an answer. Unlike DoRaw, its error has the message of the API server.
func raw(answer rest.Result) ([]byte, error) {
	if err := answer.Error(); err != nil {
		return nil, err
	}
	return answer.Raw()
}

// Get reads the object at a path into out, and reports false if it does not exist. It prints no
// warning of the API server, such as the one that Endpoints are deprecated.
func (s GridServer) Get(ctx context.Context, path string, out any) (found bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, listTimeout, fmt.Errorf("no answer within %s", listTimeout))
	defer cancel()
	text, err := raw(s.Client.Get().AbsPath(path).WarningHandler(rest.NoWarnings{}).SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx))
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil && ctx.Err() != nil:
		return false, context.Cause(ctx)
	case err != nil:
		return false, err
	}
	return true, json.Unmarshal(text, out)
}

// DeploymentGrids calls do for those of a namespace; "" = all.
func (s GridServer) DeploymentGrids(ctx context.Context, namespace string, do func(*v1.DeploymentGrid)) error {
	return list(ctx, s, "DeploymentGrids", GridPath("deploymentgrids", namespace), &v1.DeploymentGridList{}, do)
}

// StatefulSetGrids calls do for those of a namespace; "" = all.
func (s GridServer) StatefulSetGrids(ctx context.Context, namespace string, do func(*v1.StatefulSetGrid)) error {
	return list(ctx, s, "StatefulSetGrids", GridPath("statefulsetgrids", namespace), &v1.StatefulSetGridList{}, do)
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
			return list(ctx, s, "ServiceGrids", GridPath("servicegrids", namespace), &v1.ServiceGridList{},
				func(g *v1.ServiceGrid) { all = append(all, gridspec.FromServiceGrid(g)) })
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
	var list metav1.APIResourceList
	if _, err := s.Get(ctx, "/apis/"+v1.GroupVersion().String(), &list); err != nil {
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
	return list(ctx, s, "FleetClusters", FleetClusterPath(), &v1alpha1.FleetClusterList{}, do)
}

// GridReports calls do for those of a FleetCluster.
func (s GridServer) GridReports(ctx context.Context, cluster string, do func(*v1alpha1.GridReport)) error {
	path := resourcePath(v1alpha1.GroupVersion(), "gridreports", v1alpha1.NamespacePrefix+cluster)
	return list(ctx, s, "GridReports", path, &v1alpha1.GridReportList{}, do)
}
