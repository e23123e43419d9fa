package daemon

import (
	"fmt"
	"net/netip"
	"time"

	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/watch"
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
	d.hold = watch.NewHold(cluster, watch.HoldConfig{Log: d.log, NodesOnly: o.ServiceProxyName != "", Written: func() bool { return apiserver.HasService(saved.Services) || written() }})
	d.source = d.hold
}

// holdWaves makes the source hold endpoints that turn not ready in a wave when the API server is
// back.
func (d *daemon) holdWaves(o options.Options) {
	if d.cluster == nil || o.ReconnectGrace <= 0 {
		return
	}
	d.grace = watch.NewGrace(d.source, watch.GraceConfig{Grace: o.ReconnectGrace, Losses: d.cluster.Losses, Saved: d.saved, Report: func(held []topology.HeldEndpoint) {
		d.reportHeld(o.ReconnectGrace, held)
	}})
	d.source = d.grace
}

// reportHeld logs that endpoints are held, and that they are not any more. An Event says the first.
func (d *daemon) reportHeld(grace time.Duration, held []topology.HeldEndpoint) {
	if len(held) == 0 {
		d.log.Info("no endpoint is held any more: each is ready again, is gone, or its --reconnect-grace is over")
		return
	}
	text := fmt.Sprintf("the API server is back, and says that half of this unit or more is not ready: %d endpoints, the first %s of Service %s, are used for up to %s, "+
		"until they are ready again, terminating or deleted; see --reconnect-grace", len(held), held[0].Addr, held[0].Service, grace)
	d.log.Warn(text)
	if d.events != nil {
		d.events.onNode(d.node, "EndpointsHeld", text)
	}
}

// probeAPIProxies makes the source find out which node-local API proxies answer. With
// --service-proxy-name Service default/kubernetes belongs to another proxy.
func (d *daemon) probeAPIProxies(o options.Options) {
	if o.ServiceProxyName != "" {
		return
	}
	d.prober = watch.NewProber(d.source, watch.ProberConfig{Log: d.log, Down: d.reportAPIProxy})
	d.source = d.prober
}

// reportAPIProxy makes an Event of a node-local API proxy that does not answer.
func (d *daemon) reportAPIProxy(addr netip.AddrPort, err error) {
	if d.events != nil {
		d.events.onNode(d.node, "APIProxyDown", excerpt.Message(fmt.Sprintf("the node-local API proxy %s does not answer (%v): default/kubernetes leads to the API servers until it does; "+
			"start it, or remove annotation %s of the EndpointSlice", addr, err, topology.AnnotationLocalEndpoint)))
	}
}
