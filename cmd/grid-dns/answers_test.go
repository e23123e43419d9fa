package main

import (
	"net/netip"
	"testing"

	"gridproxy/cmd/grid-dns/upstreams"
	"gridproxy/topology/dnsview"
)

func servers(all ...string) []netip.AddrPort {
	var out []netip.AddrPort
	for _, text := range all {
		out = append(out, netip.MustParseAddrPort(text))
	}
	return out
}

// TestServersOf: which upstreams follow from the cluster's DNS Service and from resolv.conf.
func TestServersOf(t *testing.T) {
	udp := func(name string, number int32) dnsview.Port {
		return dnsview.Port{Name: name, Protocol: "UDP", Number: number}
	}
	at := func(addr string, ports ...dnsview.Port) dnsview.Endpoint {
		return dnsview.Endpoint{Addr: netip.MustParseAddr(addr), Ports: ports}
	}
	service := func(all ...dnsview.Endpoint) *dnsview.Names {
		return &dnsview.Names{Kind: dnsview.ClusterIP, ClusterIPs: []netip.Addr{netip.MustParseAddr("10.96.0.10")}, Endpoints: all}
	}
	own := []netip.Addr{netip.MustParseAddr("169.254.20.12"), netip.MustParseAddr("fd00:6772:6964::12")}
	tcp := dnsview.Port{Name: "dns", Protocol: "TCP", Number: 53}
	for _, c := range []struct {
		name    string
		svc     *dnsview.Names
		machine []netip.AddrPort
		want    upstreams.Servers
	}{
		{name: "nothing is known"},
		{"no Service", nil, servers("192.0.2.1:53"), upstreams.Servers{Machine: servers("192.0.2.1:53")}},
		{"Pods at a port of their own, sorted, each once", service(at("10.0.1.2", udp("dns", 5353)), at("10.0.0.2", udp("dns", 5353)), at("10.0.1.2", udp("dns", 5353))), nil,
			upstreams.Servers{Cluster: servers("10.0.0.2:5353", "10.0.1.2:5353")}},
		{"both families", service(at("10.0.0.2", udp("", 53)), at("fd00::2", udp("domain", 53))), servers("192.0.2.1:53"),
			upstreams.Servers{Cluster: servers("10.0.0.2:53", "[fd00::2]:53"), Machine: servers("192.0.2.1:53")}},
		{"ports that are not of queries over UDP", service(at("10.0.0.2", tcp, udp("metrics", 9153), udp("dns", dnsview.NoPort), udp("dns", 1<<16)), at("10.0.0.3")), nil, upstreams.Servers{}},
		{"own addresses and the cluster IP", service(at("169.254.20.12", udp("dns", 53)), at("10.96.0.10", udp("dns", 53))),
			servers("10.96.0.10:53", "169.254.20.12:53", "[fd00:6772:6964::12]:53", "192.0.2.1:53"), upstreams.Servers{Machine: servers("192.0.2.1:53")}},
		{"the order of resolv.conf", nil, servers("192.0.2.9:53", "192.0.2.1:53"), upstreams.Servers{Machine: servers("192.0.2.9:53", "192.0.2.1:53")}},
	} {
		if got := serversOf(c.svc, c.machine, own); !got.Equal(c.want) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
}
