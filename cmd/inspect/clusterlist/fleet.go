package clusterlist

import (
	"context"

	"gridproxy/controller/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

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
