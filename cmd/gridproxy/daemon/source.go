package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"time"

	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/manifest"
	"gridproxy/topology/watch"

	"k8s.io/client-go/rest"
)

// checkSource returns an error if the daemon would not start because of a path or address in its
// flags. Without them it checks nothing: preparing a machine needs no source.
func checkSource(o options.Options, in io.Reader, log *slog.Logger) error {
	if len(o.Manifests) > 0 {
		_, _, err := manifest.Read(o.Manifests, in)
		return err
	}
	if o.Kubeconfig == "" && o.Master == "" && len(o.APIServers) == 0 {
		return nil
	}
	config, err := apiserver.RestConfig(o, log)
	if err != nil {
		return err
	}
	if _, err := rest.HTTPClientFor(config); err != nil { // this reads certificates
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	return nil
}

// openSource sets d.source and, if there is an API server and this is no shadow, d.events. It
// reads all files in the flags, before any setting is changed. One that cannot be read is an
// error, unless there is a saved state: then it is tried again while the daemon runs. written
// is driver.Driver.Written; config is apiserver.RestConfig, with the daemon's options.
func (d *daemon) openSource(ctx context.Context, o options.Options, in io.Reader, written func() bool, config func() (*rest.Config, error)) error {
	c := watch.Config{
		Trial: o.ServiceProxyName != "", Written: written, Saved: d.saved, Down: d.reportAPIProxy, Log: d.log,
		ReconnectGrace: o.ReconnectGrace, ReportHeld: func(held []topology.HeldEndpoint) { d.reportHeld(o.ReconnectGrace, held) },
	}
	var err error
	if len(o.Manifests) > 0 {
		c.Manifests = watch.ManifestConfig{Paths: o.Manifests, Stdin: in, Node: o.NodeName, DNS: o.DNS.Enabled, Report: manifestReport(d.log)}
	} else {
		if !o.Shadow { // there the proxy that serves the node sends Events
			if d.events, err = newRecorder(ctx, o.NodeName); err != nil {
				return err
			}
		}
		c.Connect = func() (*watch.Cluster, error) { return d.connect(config, o, written) }
	}
	d.source, err = watch.New(c)
	return err
}

// connect makes one client for watches and for Events, so that both go to the same API server,
// and sets the addresses that no Service may take. Nothing is read yet.
func (d *daemon) connect(config func() (*rest.Config, error), o options.Options, written func() bool) (*watch.Cluster, error) {
	to, err := config()
	if err != nil {
		return nil, err
	}
	silence := watch.NewSilence()
	to.Dial = silence.Dial(to.Dial)
	shared, err := rest.HTTPClientFor(to)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", to.Host, err)
	}
	servers := apiserver.RulesConfig(o).APIServers
	d.reserved.Store(&servers)
	if d.events != nil {
		if err := d.events.connect(to, shared); err != nil {
			return nil, err
		}
	}
	return watch.NewCluster(watch.ClusterConfig{
		Rest: to, HTTP: shared, Silence: silence, Node: o.NodeName, ServiceProxyName: o.ServiceProxyName, DNS: o.DNS.Enabled,
		LastKeys: d.saved.LastKeys, Written: written, Log: d.log,
	})
}

// manifestReport returns a function for watch.ManifestConfig.Report. It logs the warnings or
// the error of reading the manifests, and that they can be read again.
func manifestReport(log *slog.Logger) func(warnings []string, err error) {
	failed := false
	return func(warnings []string, err error) {
		for _, w := range warnings {
			log.Warn(w)
		}
		switch {
		case err != nil:
			log.Error("the manifests cannot be read; the last good rules stay in force", "err", err)
		case failed:
			log.Info("the manifests can be read again; the rules follow them")
		}
		failed = err != nil
	}
}

// reportHeld logs that endpoints are held, with an Event on the Node, or that none is any more.
func (d *daemon) reportHeld(grace time.Duration, held []topology.HeldEndpoint) {
	if len(held) == 0 {
		d.log.Info("no endpoint is held any more: each is ready again, is gone, or its --reconnect-grace is over")
		return
	}
	text := fmt.Sprintf("the API server is back, and says that half of this unit or more is not ready: %d endpoints, the first %s of Service %s, are used for up to %s, "+
		"until they are ready again, terminating or deleted; see --reconnect-grace", len(held), held[0].Addr, held[0].Service, grace)
	d.log.Warn(text)
	d.events.onNode("EndpointsHeld", text)
}

// reportAPIProxy makes an Event of a node-local API proxy that does not answer.
func (d *daemon) reportAPIProxy(addr netip.AddrPort, err error) {
	d.events.onNode("APIProxyDown", excerpt.Message(fmt.Sprintf("the node-local API proxy %s does not answer (%v): default/kubernetes leads to the API servers until it does; "+
		"start it, or remove annotation %s of the EndpointSlice", addr, err, topology.AnnotationLocalEndpoint)))
}
