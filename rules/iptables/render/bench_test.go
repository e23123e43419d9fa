package render

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/netfilter/trace"
)

// bigRuleset has Services of two endpoints each: 5,000 have about 40,000 rules.
func bigRuleset(services int) rules.Ruleset {
	rs := rules.Ruleset{
		NodePorts: rules.NodePortScope{IPv4: rules.ListenAddrs{All: true}},
		Local:     rules.LocalDetector{Prefixes: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/9")}},
	}
	for i := range services {
		hi, lo := byte(i>>8), byte(i)
		endpoint := func(n byte) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 128 + n, hi, lo}), 8080)
		}
		rs.Services = append(rs.Services, &rules.Service{
			Name: portName(fmt.Sprintf("default/svc-%05d:http", i), "TCP"),
			Sets: []rules.EndpointSet{{Endpoints: []netip.AddrPort{endpoint(0), endpoint(1)}}},
			Frontends: []rules.Frontend{{
				Addr:   netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 96, hi, lo}), 80),
				Routes: []rules.Route{{From: rules.Any, Masquerade: rules.OffCluster}},
			}},
		})
	}
	return rs
}

func BenchmarkRenderService(b *testing.B) {
	rs := bigRuleset(1)
	o := Options{MasqueradeBit: 14}.For(rs)
	b.ReportAllocs()
	for b.Loop() {
		Service(rs.Services[0], o)
	}
}

func BenchmarkRender5000(b *testing.B) {
	rs := bigRuleset(5000)
	b.ReportAllocs()
	for b.Loop() {
		var text bytes.Buffer
		if _, err := Ruleset(rs, Options{MasqueradeBit: 14}).WriteTo(&text); err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(text.Len()))
	}
}

// BenchmarkScan5000 parses the iptables-save output of 5,000 Services.
func BenchmarkScan5000(b *testing.B) {
	text := rendered(b, Ruleset(bigRuleset(5000), Options{MasqueradeBit: 14}))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	count := 0
	for b.Loop() {
		count = 0
		for line, err := range netfilter.Scan(strings.NewReader(text), netfilter.IPv4) {
			if err != nil || line.Foreign {
				b.Fatal(line, err)
			}
			count++
		}
	}
	b.ReportMetric(float64(count), "lines")
}

func BenchmarkTrace5000(b *testing.B) {
	s := parsed(b, rendered(b, Ruleset(bigRuleset(5000), Options{MasqueradeBit: 14})), netfilter.IPv4)
	p := trace.Packet{Src: netip.MustParseAddr("10.128.0.9"), Dst: netip.MustParseAddr("10.96.19.135"), Proto: netfilter.TCP, DstPort: 80}
	b.ReportAllocs()
	for b.Loop() {
		if out := trace.Trace(s, p); len(out.Ends) != 2 {
			b.Fatal(out)
		}
	}
}
