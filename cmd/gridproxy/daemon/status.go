package daemon

import (
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/health"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/gridproxy/socket"
	"gridproxy/cmd/gridproxy/status"
)

// socketServer returns the server that answers `gridproxy status` at a unix socket.
func socketServer(path string, publisher *status.Publisher) server {
	return server{
		name: "status", flag: "status-socket", addr: path, remedy: "gridproxy status cannot ask this daemon; make the path available",
		listen: socket.Listen, serving: publisher.Server,
	}
}

// newPublisher makes what answers at the status socket.
func (d *daemon) newPublisher(o options.Options, kernel driver.Running, healthz *health.Server, m *metrics.Metrics) *status.Publisher {
	build := command.ThisBuild()
	config := status.Config{
		Daemon: status.Daemon{
			Version: build.Version, Commit: build.Commit, Started: time.Now(),
			Mode: string(o.ProxyMode), Variant: string(kernel.Variant()), Shadow: o.Shadow, Source: status.SourceManifests,
		},
		Node:     o.NodeName,
		Services: m.Services,
		Checks:   healthz.Checks,
		Lost:     d.source.Lost,
		HeldBack: d.source.Holding,
		Held:     d.source.Held,

		APIProxies: d.source.Answers,
	}
	if d.source.On().APIServer {
		config.Daemon.Source = status.SourceAPIServer
	}
	if d.dns != nil {
		config.DNS = d.dns.Paths
	}
	if d.otherProxy != nil {
		config.OtherProxy = d.otherProxy.now
	}
	if !o.Shadow {
		config.UnopenedPorts = d.ports.Failed
	}
	if kernel.Findings != nil {
		config.Quarantined = kernel.Findings.Quarantine
	}
	return status.NewPublisher(config)
}
