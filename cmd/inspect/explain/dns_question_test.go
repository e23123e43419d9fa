package explain

import (
	"net/netip"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/dnsview"
)

func TestParseDNSQuestion(t *testing.T) {
	six := "9.6.0.0.0.0.0.0.0.0.0.0.0.0.0.0.6.9.0.0.1.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa"
	for text, want := range map[string]DNSQuestion{
		"web.shop.svc":                   {text: "web.shop.svc.cluster.local", name: "web.shop.svc"},
		"Web.shop.svc.cluster.local":     {text: "web.shop.svc.cluster.local", name: "web.shop.svc"},
		"cluster.local.":                 {text: "cluster.local"},
		"10.0.0.1":                       {text: "10.0.0.1", addr: netip.MustParseAddr("10.0.0.1")},
		"::ffff:10.0.0.1":                {text: "::ffff:10.0.0.1", addr: netip.MustParseAddr("10.0.0.1")},
		"FD00::1":                        {text: "fd00::1", addr: netip.MustParseAddr("fd00::1")},
		"1.0.0.10.IN-ADDR.ARPA.":         {text: "1.0.0.10.in-addr.arpa", addr: netip.MustParseAddr("10.0.0.1")},
		six:                              {text: six, addr: netip.MustParseAddr("fd00:0:1:96::69")},
		"":                               {},
		"web.shop":                       {},
		"fe80::1%eth0":                   {},
		"0.0.10.in-addr.arpa":            {},
		"0.0.0.0.10.in-addr.arpa":        {},
		"256.0.0.10.in-addr.arpa":        {},
		"1.0.0.::ffff:10.in-addr.arpa":   {},
		"0." + six:                       {},
		"00" + six[1:]:                   {},
		"%" + six[1:]:                    {},
		"1.0.0.10.in-addr.arpa.ip6.arpa": {},
		"arpa":                           {},
	} {
		got, err := ParseDNSQuestion(text, "cluster.local")
		if got != want || (err == nil) == (want == DNSQuestion{}) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
}

// TestWhyNoPort: the reason is that of the kind of the Service, and names the ports that exist.
func TestWhyNoPort(t *testing.T) {
	addrs := []netip.Addr{netip.MustParseAddr("10.0.0.1")}
	ports := []dnsview.Port{{Name: "sql", Protocol: "TCP", Number: 5432}, {Name: "SQL", Protocol: "UDP", Number: 5432}, {Protocol: "TCP", Number: 80}, {Protocol: "TCP", Number: dnsview.NoPort}}
	endpoints := []dnsview.Endpoint{{Ports: ports[:1]}, {}, {Ports: ports[2:]}, {Ports: ports[:1]}}
	const no = "no port has this name and protocol; "
	for want, names := range map[string]dnsview.Names{
		"a Service of type ExternalName has no ports":                       {Kind: dnsview.ExternalName},
		"the Service has no cluster IP":                                     {Kind: dnsview.ClusterIP, Ports: ports},
		"no endpoint of the Service has a name here":                        {Kind: dnsview.Headless, Ports: ports},
		no + "it has no ports":                                              {Kind: dnsview.ClusterIP, ClusterIPs: addrs},
		no + "it has _sql._tcp, _sql._udp, and 80/TCP without a name":       {Kind: dnsview.ClusterIP, ClusterIPs: addrs, Ports: ports},
		no + "its EndpointSlices have _sql._tcp, and 80/TCP without a name": {Kind: dnsview.Headless, Ports: ports, Endpoints: endpoints},
		no + "its EndpointSlices have no ports":                             {Kind: dnsview.Headless, Ports: ports, Endpoints: endpoints[1:2]},
	} {
		if got := whyNoPort(&topology.DNSService{Names: names}); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
