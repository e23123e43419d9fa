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

// dnsMetrics are made at each scrape.
type dnsMetrics struct {
	kernel                                    Kernel
	local, switches, wait                     *prometheus.Desc
	services, collisions, incomplete, unnamed *prometheus.Desc
	servers, behind                           *prometheus.Desc
}

func newDNSMetrics(f factory, kernel Kernel) {
	if kernel.DNS == nil {
		return
	}
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "dns", name), help, labels, nil)
	}
	register(f, dnsMetrics{
		kernel:     kernel,
		local:      desc("local", "1 while DNS queries of this node are led to grid-dns at the address; 0: they go to the DNS of the cluster.", "address"),
		switches:   desc("switches_total", "How often DNS queries went elsewhere than before.", "address"),
		wait:       desc("return_wait_seconds", "For how long grid-dns must still be well without a break until queries go back to it, because they left it more than once in a short time; 0 = nothing is waited for.", "address"),
		services:   desc("services", "Services that have names on this node."),
		collisions: desc("alias_collisions", "Names of a StatefulSetGrid that are not served, because an endpoint has that name."),
		incomplete: desc("incomplete_services", "Services of which a name, an address or a port is left out; gridproxy explain --dns says why."),
		unnamed:    desc("unnamed_endpoints", "Endpoints that have no names, because DNS has at most 50,000 endpoints of one Service."),
		servers:    desc("servers", "grid-dns that are connected to the daemon."),
		behind:     desc("behind_seconds", "For how long a connected grid-dns has answered from older names than the daemon has, large Services aside; 0 = none does."),
	})
}

// Describe implements prometheus.Collector.
func (m dnsMetrics) Describe(all chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{m.local, m.switches, m.wait, m.services, m.collisions, m.incomplete, m.unnamed, m.servers, m.behind} {
		all <- d
	}
}

// Collect implements prometheus.Collector.
func (m dnsMetrics) Collect(all chan<- prometheus.Metric) {
	d := m.kernel.DNS()
	for _, p := range d.Paths {
		all <- prometheus.MustNewConstMetric(m.local, prometheus.GaugeValue, number(p.Local), p.Address)
		all <- prometheus.MustNewConstMetric(m.switches, prometheus.CounterValue, float64(p.Switches), p.Address)
		all <- prometheus.MustNewConstMetric(m.wait, prometheus.GaugeValue, p.Wait, p.Address)
	}
	for _, g := range []struct {
		desc  *prometheus.Desc
		value float64
	}{
		{m.services, float64(d.Services)}, {m.collisions, float64(d.Collisions)}, {m.incomplete, float64(d.Warnings)},
		{m.unnamed, float64(d.Unnamed)}, {m.servers, float64(d.Servers)}, {m.behind, d.Lag},
	} {
		all <- prometheus.MustNewConstMetric(g.desc, prometheus.GaugeValue, g.value)
	}
}
