package daemon

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/driver"
	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/health"
	"gridproxy/cmd/gridproxy/localdns"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/conntrack"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/host"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/watch"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"k8s.io/client-go/rest"
)

// daemon has the parts of `gridproxy run`, wired; only the source has been started.
type daemon struct {
	log     *slog.Logger
	source  *watch.Chain
	reading chan error // what source.Run returns
	syncer  *syncer.Syncer
	ports   *healthcheck.Server
	servers []server
	config  *watch.FileConfig // of --config; nil = it is not watched
	events  *recorder         // nil = with manifests

	reserved atomic.Pointer[[]netip.AddrPort] // rules.Config.APIServers; nil = there was no connection yet

	otherProxy *otherProxyObserver // nil = a shadow
	saver      *watch.Saver        // nil = no state is saved
	saved      topology.Snapshot   // was read from disk; the zero value = none was
	dns        *localdns.Node      // nil = without --local-dns
}

func newDaemon(ctx context.Context, o options.Options, in io.Reader, log *slog.Logger) (*daemon, error) {
	d := &daemon{log: log}
	here, err := host.Read()
	if err != nil {
		return nil, err
	}
	var kernel driver.Running
	written := sync.OnceValue(func() bool { return kernel.Written() }) // called by the syncer, before it writes
	d.loadState(o)
	config := func() (*rest.Config, error) { return apiserver.RestConfig(o, log) }
	if err := d.openSource(ctx, o, in, written, config); err != nil {
		return nil, err
	}
	reporter := event.NewReporter(log, nil) // which only logs
	if d.events != nil {
		reporter = event.NewReporter(log, d.events)
	}
	d.serveDNS(&o, here, reporter, func() []rules.Family { return kernel.Findings.WithoutLocalDNS() })
	d.reading = make(chan error, 1)
	go func() { d.reading <- d.source.Run(ctx) }() // the cluster is read while the kernel is asked what it can do
	if kernel, err = driver.New(ctx, o, log); err != nil {
		return nil, err
	}
	if !o.Beside() {
		for _, w := range (host.Machine{Log: log}).Apply(ctx, sysctls(o.Conntrack)) {
			log.Warn(w.Error())
		}
	}
	moved, err := host.Watch(ctx)
	if err != nil {
		log.Warn(fmt.Sprintf("a change of this machine's addresses is noticed only when another change or a verify causes a run: %v", err))
	}
	registry := prometheus.NewRegistry()
	d.lookForOtherProxy(o, kernel)
	m := newMetrics(registry, d.counts(kernel))
	healthz := d.newHealth(o, here, m)
	d.ports = healthcheck.New(healthz.FamilyHealthy)
	publisher := d.newPublisher(o, kernel, healthz, m)
	d.servers = []server{
		portServer("health", "healthz-bind-address", o.HealthzBindAddress, healthz.Handler(), o.BindHardFail),
		portServer("metrics", "metrics-bind-address", o.MetricsBindAddress, newMetricsHandler(named(registry, o), string(o.ProxyMode), o.Profiling), o.BindHardFail),
		socketServer(o.StatusSocket, publisher),
	}
	d.syncer = syncer.New(syncer.Config{
		Source:        d.source,
		Host:          host.Read,
		HostMoved:     moved,
		Backends:      []syncer.NamedBackend{{Name: string(o.ProxyMode), Backend: kernel}},
		Flows:         flows(o, kernel),
		Saved:         d.saved,
		Topology:      o.Topology(),
		Rules:         apiserver.RulesConfig(o),
		Reserved:      d.reservedNow,
		MinSyncPeriod: o.Periods().MinSync,
		VerifyPeriod:  o.VerifyPeriod,
		Observers:     append(d.observers(o, kernel, healthz, m, reporter), publisher), // after those that it asks
		Log:           log,
	})
	return d, nil
}

// serveDNS sets d.dns, if the options ask for it. o.DNS loses the addresses of families that
// this machine lacks. Where it has no netlink to redirect queries with, that is reported, and
// o.DNS.Enabled becomes false. unmatched returns the families whose match set the kernel lacks.
func (d *daemon) serveDNS(o *options.Options, here topology.Host, reporter *event.Reporter, unmatched func() []rules.Family) {
	if !o.DNS.Enabled {
		return
	}
	o.DNS.Addresses = slices.DeleteFunc(slices.Clone(o.DNS.Addresses), func(a netip.Addr) bool { return a.Is4() && !here.IPv4 || a.Is6() && !here.IPv6 })
	node, err := localdns.NewNode(localdns.NodeConfig{
		Options: o.DNS, Topology: o.Topology(), NodeName: o.NodeName, Source: d.source, SavedKeys: d.saved.LastKeys, Log: d.log,
		Report: d.reportDNS, ReportNames: reporter.Names, WithoutMatch: unmatched,
	})
	if err != nil {
		d.reportDNS(slog.LevelError, "DNSNotRedirected", fmt.Sprintf("--local-dns is not in force: this machine cannot lead queries to a DNS server on it, and the DNS of the cluster answers: %v", err))
		o.DNS.Enabled = false
		return
	}
	d.dns = node
}

// reportDNS logs what is wrong with the DNS of this node, and sends it as an Event.
func (d *daemon) reportDNS(level slog.Level, reason, text string) {
	d.log.Log(context.Background(), level, text)
	d.events.onNode(reason, excerpt.Message(text))
}

// flows returns what deletes UDP flows. It returns nil for a shadow, which deletes none.
func flows(o options.Options, kernel driver.Running) syncer.Flows {
	if o.Shadow {
		return nil
	}
	return &quarantineFlows{Flows: &conntrack.Cleaner{}, quarantined: kernel.Findings.Quarantine}
}

// observers returns the observers of each run, in the order of their calls. What /readyz vouches
// for comes before healthz: loopback routing for NodePorts, and health-check node ports.
func (d *daemon) observers(o options.Options, kernel driver.Running, healthz *health.Server, m *metrics.Metrics, reporter *event.Reporter) []syncer.Observer {
	watching := []syncer.Observer{
		healthz,
		&memoryObserver{settle: func() { setGCPercent(percentAfterStart(o)) }, free: debug.FreeOSMemory, heap: heapInUse},
		m,
		reporter,
		&nodeObserver{log: d.log},
	}
	if d.saver != nil {
		watching = append(watching, saveObserver{d.saver})
	}
	if d.dns != nil {
		watching = append(watching, d.dns)
	}
	watching = append(watching, kernel.Observers(reporter, d.log)...)
	if o.Shadow {
		return watching
	}
	if d.dns == nil && !o.Beside() {
		watching = append(watching, &localdns.Leftovers{Options: o.DNS, Log: d.log})
	}
	return append([]syncer.Observer{
		&loopbackObserver{log: d.log, route: func() error { return routeLocalnet(kernel.Guard, o.Beside(), d.log) }},
		portObserver{d.ports, reporter, kernel.Findings.Quarantine},
		quarantineObserver{kernel.Findings, reporter},
		d.otherProxy, // before m, which asks it
	}, watching...)
}

// reservedNow returns the addresses that no Service may take. It returns nil before the first
// connection: a kubeconfig that is missing at the start names them later.
func (d *daemon) reservedNow() []netip.AddrPort {
	if servers := d.reserved.Load(); servers != nil {
		return *servers
	}
	return nil
}

// newHealth returns the Server that answers /healthz, /livez and /readyz. d.syncer may be set
// later, but before any server starts.
func (d *daemon) newHealth(o options.Options, here topology.Host, m *metrics.Metrics) *health.Server {
	return health.New(health.Config{
		Pending:      func(f rules.Family) time.Time { return d.syncer.PendingOf(f) },
		LastSuccess:  func(f rules.Family) time.Time { return d.syncer.LastSuccessOf(f) },
		Progress:     func() time.Time { return d.syncer.Progress() },
		Timeout:      2 * o.Periods().Sync,
		FirstStep:    driver.StepTimeout + 10*time.Second,
		Families:     rules.FamilySet{here.IPv4, here.IPv6},
		NodeOptional: len(o.Manifests) > 0,
		Answered:     m.Answered,
	})
}

func newMetrics(registry *prometheus.Registry, counts metrics.Kernel) *metrics.Metrics {
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewBuildInfoCollector())
	b := command.ThisBuild()
	metrics.ObserveBuild(registry, b.Version, b.Commit, b.Go)
	metrics.ObserveRequests(registry)
	return metrics.New(registry, time.Now(), counts)
}

// named returns g, with kube-proxy's names too if the options ask for them.
func named(g prometheus.Gatherer, o options.Options) prometheus.Gatherer {
	if o.KubeProxyMetrics {
		return metrics.WithKubeProxyNames(g)
	}
	return g
}

func sysctls(c options.Conntrack) host.Sysctls {
	return host.Sysctls{
		MaxPerCore:            int(c.MaxPerCore),
		Min:                   int(c.Min),
		TCPTimeoutEstablished: c.TCPTimeoutEstablished,
		TCPTimeoutCloseWait:   c.TCPTimeoutCloseWait,
		TCPBeLiberal:          c.TCPBeLiberal,
		UDPTimeout:            c.UDPTimeout,
		UDPTimeoutStream:      c.UDPTimeoutStream,
	}
}

// serverFailed logs that a port of the daemon is not open. It sends an Event too if that is the
// port of health or metrics.
func (d *daemon) serverFailed(s server, err error) {
	d.log.Error(err.Error())
	switch s.name { // the reasons are kube-proxy's
	case "metrics":
		d.events.onNode("FailedToStartMetricServer", err.Error())
	case "health":
		d.events.onNode("FailedToStartProxierHealthcheck", err.Error())
	}
}

func (d *daemon) close() {
	d.ports.Close()
	if d.dns != nil {
		d.dns.Close()
	}
	if d.events != nil {
		d.events.close()
	}
}
