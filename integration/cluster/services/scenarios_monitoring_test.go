package services

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gridproxy/integration/env/netns"
)

// The proxies' servers, at the ports that are kube-proxy's.
const (
	proxyHealth  = 10256
	proxyMetrics = 10249
)

func loopback(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port)
}

// proxyURLs are those that monitoring of kube-proxy asks for.
func proxyURLs(w *world) {
	for _, node := range []string{bj, gz} {
		w.page(w.host(node), loopback(proxyHealth), "/healthz", func(p netns.Page) error {
			if err := wantOK(p); err != nil || strings.Contains(string(p.Text), "lastUpdated") {
				return err
			}
			return fmt.Errorf("no lastUpdated in %s", p.Text)
		})
		w.page(w.host(node), loopback(proxyMetrics), "/proxyMode", func(p netns.Page) error {
			if err := wantOK(p); err != nil || strings.TrimSpace(string(p.Text)) == "iptables" {
				return err
			}
			return fmt.Errorf("the mode is %s", p.Text)
		})
	}
}

// localhostMetric: packets to a NodePort on a loopback address are counted by the kernel, and told by a metric
// whose name begins with the proxy's own.
func localhostMetric(w *world) {
	w.join(shared()...)
	s := w.service(nodePort)
	to := []netip.AddrPort{loopback(uint16(s.Spec.Ports[0].NodePort))}
	before := w.localhostPackets(-1)
	w.reaches("tcp", w.host(bj), to, shared()...)
	w.localhostPackets(before)
}

// localhostPackets waits until the metric is more than some value, and returns it.
func (w *world) localhostPackets(more float64) float64 {
	w.Helper()
	const name = "proxy_iptables_localhost_nodeports_accepted_packets_total"
	var value float64
	w.page(w.host(bj), loopback(proxyMetrics), "/metrics", func(p netns.Page) error {
		for line := range strings.Lines(string(p.Text)) {
			metric, number, _ := strings.Cut(strings.TrimSpace(line), " ")
			if strings.HasPrefix(metric, "#") || !strings.HasSuffix(metric, name) {
				continue
			}
			var err error
			if value, err = strconv.ParseFloat(number, 64); err != nil || value > more {
				return err
			}
			return fmt.Errorf("%s is %v, want more than %v", metric, value, more)
		}
		return fmt.Errorf("no metric ends in %s", name)
	})
	return value
}
