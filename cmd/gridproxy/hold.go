package main

import (
	"slices"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"
	"gridproxy/topology/watch"

	corev1 "k8s.io/api/core/v1"
)

// holdBack makes the source hold back a Snapshot of an API server that cannot be true. With
// --service-proxy-name Service default/kubernetes belongs to another proxy, so that it is not
// expected.
// written is driver.Driver.Written; a saved state that has the Service is as good a witness.
func (d *daemon) holdBack(o options.Options, written func() bool, saved topology.Snapshot) {
	cluster, ok := d.source.(watch.Lists)
	if !ok {
		return
	}
	d.hold = watch.NewHold(cluster, watch.HoldConfig{Log: d.log, NodesOnly: o.ServiceProxyName != "", Written: func() bool { return hasAPIServer(saved) || written() }})
	d.source = d.hold
}

// hasAPIServer looks for Service default/kubernetes.
func hasAPIServer(s topology.Snapshot) bool {
	return slices.ContainsFunc(s.Services, func(svc *corev1.Service) bool {
		return svc.Namespace == corev1.NamespaceDefault && svc.Name == "kubernetes"
	})
}
