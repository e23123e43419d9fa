package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
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

// connect makes the daemon's source and, if there is an API server, its recorder. It reads all
// files in the flags, before any setting is changed. One that cannot be read is an error, unless
// there is a saved state: then it is tried again while the daemon runs. written is
// driver.Driver.Written.
func (d *daemon) connect(ctx context.Context, o options.Options, in io.Reader, written func() bool, saved bool) error {
	if len(o.Manifests) > 0 {
		m := watch.NewManifests(watch.ManifestConfig{Paths: o.Manifests, Stdin: in, Node: o.NodeName, DNS: o.DNS.Enabled, Report: d.reportRead})
		d.source = m
		return m.Read()
	}
	if err := d.connectTo(ctx, func() (*rest.Config, error) { return apiserver.RestConfig(o, d.log) }, o, written); err != nil {
		return err
	}
	if err := d.cluster.Try(); err != nil && !saved { // with a saved state the Connection logs it and tries again
		return err
	}
	return nil
}

// connectTo uses one connection for watches and for Events, so that both go to the same API server.
// config is asked again until the connection can be made. Nothing is read yet.
func (d *daemon) connectTo(ctx context.Context, config func() (*rest.Config, error), o options.Options, written func() bool) error {
	if !o.Shadow { // there the proxy that serves the node sends Events
		var err error
		if d.events, err = newRecorder(ctx, o.NodeName); err != nil {
			return err
		}
	}
	d.cluster = watch.NewConnection(watch.ConnectionConfig{Log: d.log, Connect: func() (*watch.Cluster, error) {
		config, err := config()
		if err != nil {
			return nil, err
		}
		silence := watch.NewSilence()
		config.Dial = silence.Dial(config.Dial)
		shared, err := rest.HTTPClientFor(config)
		if err != nil {
			return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
		}
		servers := apiserver.RulesConfig(o).APIServers
		d.reserved.Store(&servers)
		if d.events != nil {
			if err := d.events.connect(config, shared); err != nil {
				return nil, err
			}
		}
		return watch.NewCluster(watch.ClusterConfig{Rest: config, HTTP: shared, Silence: silence, Node: o.NodeName, ServiceProxyName: o.ServiceProxyName, DNS: o.DNS.Enabled, LastKeys: d.saved.LastKeys, Written: written, Log: d.log})
	}})
	d.source = d.cluster
	return nil
}

// reportRead logs the result of reading the manifests, if it differs from the last result.
func (d *daemon) reportRead(warnings []string, err error) {
	for _, w := range warnings {
		d.log.Warn(w)
	}
	switch {
	case err != nil:
		loss := watch.Loss{Since: time.Now(), Reason: err.Error()}
		if before := d.unreadable.Load(); before != nil {
			loss.Since = before.Since
		}
		d.unreadable.Store(&loss)
		d.log.Error("the manifests cannot be read; the last good rules stay in force", "err", err)
	case d.unreadable.Swap(nil) != nil:
		d.log.Info("the manifests can be read again; the rules follow them")
	}
}

// lost returns since when and why the source cannot be read. The zero value means that it can.
func (d *daemon) lost() watch.Loss {
	switch loss := d.unreadable.Load(); {
	case d.cluster != nil:
		return d.cluster.Lost()
	case loss != nil:
		return *loss
	default:
		return watch.Loss{}
	}
}
