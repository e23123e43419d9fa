package metrics

import "github.com/prometheus/client_golang/prometheus"

// DNS is what metrics say about the DNS of this node.
type DNS struct {
	Paths      []DNSPath
	Services   int     // that have names
	Collisions int     // aliases that are not served, because an endpoint has that name
	Unnamed    int     // endpoints that have no names, because DNS has only so many of one Service
	Warnings   int     // Services with something that is left out
	Servers    int     // grid-dns that are connected
	Lag        float64 // seconds for which the last of them has answered from older names
}

// DNSPath is where queries of one family go.
type DNSPath struct {
	Address  string
	Local    bool
	Switches int
	Wait     float64 // seconds for which grid-dns must still be well until queries go back
}

func newDNSMetrics(f factory, kernel Kernel) {
	if kernel.DNS == nil {
		return
	}
	local := desc("dns_local", "1 while DNS queries of this node are led to grid-dns at the address; 0: they go to the DNS of the cluster.", "address")
	switches := desc("dns_switches_total", "How often DNS queries went elsewhere than before.", "address")
	wait := desc("dns_return_wait_seconds", "For how long grid-dns must still be well without a break until queries go back to it, because they left it more than once in a short time; 0 = nothing is waited for.", "address")
	services := desc("dns_services", "Services that have names on this node.")
	collisions := desc("dns_alias_collisions", "Names of a StatefulSetGrid that are not served, because an endpoint has that name.")
	incomplete := desc("dns_incomplete_services", "Services of which a name, an address or a port is left out; gridproxy explain --dns says why.")
	unnamed := desc("dns_unnamed_endpoints", "Endpoints that have no names, because DNS has at most 50,000 endpoints of one Service.")
	servers := desc("dns_servers", "grid-dns that are connected to the daemon.")
	behind := desc("dns_behind_seconds", "For how long a connected grid-dns has answered from older names than the daemon has, large Services aside; 0 = none does.")
	f.collect(func(all chan<- prometheus.Metric) {
		now := kernel.DNS() // once, so that the metrics of one scrape agree
		for _, p := range now.Paths {
			all <- prometheus.MustNewConstMetric(local, prometheus.GaugeValue, number(p.Local), p.Address)
			all <- prometheus.MustNewConstMetric(switches, prometheus.CounterValue, float64(p.Switches), p.Address)
			all <- prometheus.MustNewConstMetric(wait, prometheus.GaugeValue, p.Wait, p.Address)
		}
		gauge := func(d *prometheus.Desc, value float64) {
			all <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value)
		}
		gauge(services, float64(now.Services))
		gauge(collisions, float64(now.Collisions))
		gauge(incomplete, float64(now.Warnings))
		gauge(unnamed, float64(now.Unnamed))
		gauge(servers, float64(now.Servers))
		gauge(behind, now.Lag)
	}, local, switches, wait, services, collisions, incomplete, unnamed, servers, behind)
}
