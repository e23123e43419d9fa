package main

import (
	"context"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"gridproxy/cmd/grid-dns/clusterzone"
	"gridproxy/cmd/grid-dns/feed"
	"gridproxy/cmd/grid-dns/upstreams"
	"gridproxy/topology/dnsview"
)

type answers struct {
	own        []netip.Addr // the server's addresses
	resolvConf string
	zone       *clusterzone.Handler
	upstreams  *upstreams.Handler
	log        *slog.Logger
	first      chan struct{} // closed when something is known
	known      sync.Once

	mu       sync.Mutex // of upstreams.Set, and of what follows
	contents *feed.Contents
	machine  []netip.AddrPort
	failed   string // why the file could not be read, which was logged
}

// apply makes the server answer from c, and sets the upstreams for it.
func (a *answers) apply(c *feed.Contents) {
	a.zone.Serve(c.Zone)
	a.mu.Lock()
	defer a.mu.Unlock()
	a.contents = c
	a.setUpstreams()
	a.known.Do(func() { close(a.first) })
}

// keepReading reads the file with the machine's servers every resolvConfPeriod until ctx ends.
func (a *answers) keepReading(ctx context.Context) {
	tick := time.NewTicker(resolvConfPeriod)
	defer tick.Stop()
	for {
		a.readMachine()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// readMachine reads that file, and sets the upstreams. If it cannot be read, nothing changes.
func (a *answers) readMachine() {
	servers, err := upstreams.ReadConfig(a.resolvConf)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err != nil {
		if err.Error() != a.failed {
			a.failed = err.Error()
			a.log.Warn("the DNS servers of this machine are not known: only the cluster's are asked", "err", err)
		}
		return
	}
	a.failed, a.machine = "", servers
	a.setUpstreams()
}

// setUpstreams sets the upstreams from what is known. The caller holds mu.
func (a *answers) setUpstreams() {
	var svc *dnsview.Names
	if a.contents != nil {
		svc = a.contents.ClusterDNS()
	}
	a.upstreams.Set(serversOf(svc, a.machine, a.own))
}

// serversOf returns the upstreams: the endpoints of the cluster's DNS Service, unless svc is
// nil, then the servers of this machine. It leaves out the server's own addresses, and the
// cluster IPs, since they lead to it.
func serversOf(svc *dnsview.Names, machine []netip.AddrPort, own []netip.Addr) upstreams.Servers {
	var s upstreams.Servers
	if svc != nil {
		own = slices.Concat(own, svc.ClusterIPs)
		for _, e := range svc.Endpoints {
			for _, p := range e.Ports {
				if p.Protocol == "UDP" && p.Number > 0 && p.Number < 1<<16 && isDNS(p.Name) {
					s.Cluster = append(s.Cluster, netip.AddrPortFrom(e.Addr, uint16(p.Number)))
				}
			}
		}
	}
	s.Cluster, s.Machine = upstreams.Without(s.Cluster, own), upstreams.Without(machine, own)
	slices.SortFunc(s.Cluster, netip.AddrPort.Compare)
	s.Cluster = slices.Compact(s.Cluster)
	return s
}

// isDNS reports whether a port of the cluster's DNS is that of queries, by the names that kubeadm
// and others give it.
func isDNS(port string) bool {
	return port == "dns" || port == "" || port == "domain" || port == "udp-53"
}
