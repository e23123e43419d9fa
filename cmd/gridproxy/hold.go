package main

import (
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology/watch"
)

// holdBack makes the source hold back a Snapshot of an API server that cannot be true. With a
// service proxy name Service default/kubernetes is another proxy's, so that nothing can be
// expected.
func (d *daemon) holdBack(o options.Options, kernel driver.Driver) {
	cluster, ok := d.source.(watch.Lists)
	if !ok || o.ServiceProxyName != "" {
		return
	}
	d.hold = watch.NewHold(cluster, watch.HoldConfig{Log: d.log, Written: kernel.Written})
	d.source = d.hold
}
