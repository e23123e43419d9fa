package main

import (
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology/watch"
)

// holdBack makes the source hold back a Snapshot of an API server that cannot be true, because it
// lacks Service default/kubernetes. With --service-proxy-name that Service belongs to another
// proxy, so that it is not expected.
func (d *daemon) holdBack(o options.Options, kernel driver.Driver) {
	cluster, ok := d.source.(watch.Lists)
	if !ok || o.ServiceProxyName != "" {
		return
	}
	d.hold = watch.NewHold(cluster, watch.HoldConfig{Log: d.log, Written: kernel.Written})
	d.source = d.hold
}
