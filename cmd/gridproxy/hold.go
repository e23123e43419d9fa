package main

import (
	"context"
	"time"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/topology/watch"
)

// lookLimit is how long the kernel is asked for rules of ours.
const lookLimit = 30 * time.Second

// holdBack makes the source hold back a Snapshot of an API server that cannot be true. With a
// service proxy name Service default/kubernetes is another proxy's, so that nothing can be
// expected.
func (d *daemon) holdBack(o options.Options, kernel mechanism) {
	cluster, ok := d.source.(watch.Lists)
	if !ok || o.ServiceProxyName != "" {
		return
	}
	d.hold = watch.NewHold(cluster, watch.HoldConfig{Log: d.log, Written: kernel.written})
	d.source = d.hold
}

// written reports whether the kernel holds rules of a service proxy with our names. Where it
// cannot be asked it may. A family that is not open is asked too: it may open later, over the
// rules that it has.
func (m mechanism) written() bool {
	var tables interface{ Variant() netfilter.Variant } = m.tables
	if m.shadow != nil {
		tables = m.shadow.tables
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookLimit)
	defer cancel()
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		chain, err := iptables.ServiceRulesIn(ctx, tables.Variant(), f, netfilter.KubeNames)
		if err != nil || chain != "" {
			return true
		}
	}
	return false
}
