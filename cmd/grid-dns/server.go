package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"

	"gridproxy/cmd/grid-dns/clusterzone"
	"gridproxy/cmd/grid-dns/upstreams"

	"github.com/coredns/caddy"
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/plugin"
	_ "github.com/coredns/coredns/plugin/cache"       // a plugin of the server
	_ "github.com/coredns/coredns/plugin/errors"      // a plugin of the server
	_ "github.com/coredns/coredns/plugin/loadbalance" // a plugin of the server
	_ "github.com/coredns/coredns/plugin/metrics"     // a plugin of the server
	"github.com/coredns/coredns/plugin/pkg/transport"
	"github.com/coredns/coredns/plugin/pkg/upstream"
	"github.com/prometheus/client_golang/prometheus"
)

const portDNS = 53

// registered is what CoreDNS made of the configuration.
type registered struct {
	config  *dnsserver.Config
	queries *limitedQueries
}

// register makes CoreDNS know our plugins, and the order of all. Call it once in a process: it is
// about global state of CoreDNS.
func register(zone *clusterzone.Handler, forwards *upstreams.Handler, addrs []netip.Addr) *registered {
	zone.Upstream = upstream.New()
	r := registered{queries: newLimitedQueries(addrs)}
	plugin.Register(limitedQueriesName, r.inChain(func(next plugin.Handler) plugin.Handler {
		r.queries.next = next
		return r.queries
	}))
	plugin.Register(clusterzone.Name, r.inChain(func(next plugin.Handler) plugin.Handler {
		zone.Next = next
		return zone
	}))
	plugin.Register(upstreams.Name, r.inChain(func(plugin.Handler) plugin.Handler { return forwards }))
	// Queries that are too many are dropped before any work. Names of the cluster are before the
	// cache: what changed is in the answers at once. loadbalance shuffles what the cache repeats.
	dnsserver.Directives = []string{limitedQueriesName, "prometheus", "errors", clusterzone.Name, "loadbalance", "cache", upstreams.Name}
	return &r
}

// inChain returns a function that adds p to CoreDNS, which then opens no socket: see coreDNS.
func (r *registered) inChain(p plugin.Plugin) caddy.SetupFunc {
	return func(c *caddy.Controller) error {
		r.config = dnsserver.GetConfig(c)
		r.config.ListenHosts = nil
		r.config.AddPlugin(p)
		return nil
	}
}

// configuration returns the configuration of CoreDNS. metrics is where metrics are served; "" =
// nowhere. The cache uses an expired entry only while upstreams do not answer, for a day.
func configuration(metrics string) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".:%d {\n\t%s\n\terrors {\n\t\tconsolidate 10s .*\n\t}\n", portDNS, limitedQueriesName)
	if metrics != "" {
		fmt.Fprintf(&b, "\tprometheus %s\n", metrics)
	}
	fmt.Fprintf(&b, "\t%s\n\tloadbalance\n\tcache 30 {\n\t\tserve_stale 24h verify 200ms\n\t\tservfail 1s\n\t}\n\t%s\n}\n", clusterzone.Name, upstreams.Name)
	return b.String()
}

// coreDNS is a server for each address. All have the same plugins, and so one cache.
// Each opens when its address exists: CoreDNS alone opens all at once, or none.
type coreDNS struct {
	plugins *caddy.Instance
	at      map[netip.Addr]*dnsserver.Server
	resets  prometheus.Counter
	log     *slog.Logger

	running sync.WaitGroup
	ended   chan error // of a server that ended before stop
}

// newCoreDNS starts the plugins, and with them the server of metrics, but opens no address.
func newCoreDNS(r *registered, addrs []netip.Addr, metrics string, log *slog.Logger) (*coreDNS, error) {
	caddy.Quiet, dnsserver.Quiet = true, true
	instance, err := caddy.Start(caddy.CaddyfileInput{Filepath: "memory", Contents: []byte(configuration(metrics)), ServerTypeName: "dns"})
	if err != nil {
		return nil, fmt.Errorf("starting CoreDNS: %w", err)
	}
	s := &coreDNS{plugins: instance, at: map[netip.Addr]*dnsserver.Server{}, log: log, ended: make(chan error, 2*len(addrs))}
	s.resets = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "grid_dns_tcp_resets_total", Help: "TCP connections that were reset, because the client had too many open, or all clients had.",
	})
	for _, c := range []prometheus.Collector{s.resets, r.queries.dropped} {
		if err := prometheus.Register(c); err != nil {
			return nil, fmt.Errorf("registering a metric: %w", err)
		}
	}
	for _, addr := range addrs {
		name := transport.DNS + "://" + netip.AddrPortFrom(addr, portDNS).String()
		if s.at[addr], err = dnsserver.NewServer(name, []*dnsserver.Config{r.config}); err != nil {
			return nil, fmt.Errorf("making the server for %s: %w", addr, err)
		}
	}
	return s, nil
}

// open starts to answer at an address, which must exist. If that ends, s.ended gets the reason.
func (s *coreDNS) open(addr netip.Addr) error {
	server := s.at[addr]
	stream, err := server.Listen()
	if err != nil {
		return fmt.Errorf("starting to answer at %s: %w", addr, err)
	}
	packets, err := server.ListenPacket()
	if err != nil {
		return errors.Join(fmt.Errorf("starting to answer at %s: %w", addr, err), stream.Close())
	}
	limited := newLimitedListener(stream, s.resets, s.log)
	serve := func(network string, run func() error) {
		err := run()
		if err == nil {
			err = errors.New("its socket was closed")
		}
		s.ended <- fmt.Errorf("answering over %s at %s has ended: %w", network, addr, err)
	}
	s.running.Go(func() { serve("TCP", func() error { return server.Serve(limited) }) })
	s.running.Go(func() { serve("UDP", func() error { return server.ServePacket(packets) }) })
	return nil
}

// stop ends the plugins, and then all servers. Queries under way are answered.
func (s *coreDNS) stop() error {
	for _, err := range s.plugins.ShutdownCallbacks() {
		return fmt.Errorf("ending the plugins: %w", err)
	}
	var errs []error
	for addr, server := range s.at {
		if err := server.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("ending the server at %s: %w", addr, err))
		}
	}
	s.running.Wait()
	return errors.Join(errs...)
}
