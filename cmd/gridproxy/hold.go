package main

import (
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology/watch"
)

// holdBack makes the source hold back a Snapshot of an API server that cannot be true, because it
// lacks Service default/kubernetes. With --service-proxy-name that Service belongs to another
// proxy, so that it is not expected.
// written is driver.Driver.Written.
func (d *daemon) holdBack(o options.Options, written func() bool) {
	cluster, ok := d.source.(watch.Lists)
	if !ok || o.ServiceProxyName != "" {
		return
	}
	d.hold = watch.NewHold(cluster, watch.HoldConfig{Log: d.log, Written: written})
	d.source = d.hold
}
