//go:build !kubeproxy136 && !kubeproxy133

package agreement

import (
	"fmt"
	"slices"
	"strings"

	"github.com/miekg/dns"
)

// dnsTypes are the types of the questions about each name.
var dnsTypes = []uint16{
	dns.TypeA, dns.TypeAAAA, dns.TypeSRV, dns.TypePTR, dns.TypeCNAME, dns.TypeTXT, dns.TypeNS, dns.TypeSOA, dns.TypeMX, dns.TypeANY,
	dns.TypeHTTPS, dns.TypeAXFR,
}

const (
	dnsDomain = "cluster.local."
	missing   = "missing"
)

// dnsNames returns the names in questions to a cluster: those that exist, those that nearly do, and
// the reverse names of all addresses. Some are spelled in mixed case too.
func dnsNames(c dnsCluster) []string {
	names := []string{
		"", "svc", "pod", "ns.dns", "x.ns.dns", "ns.dns." + dnsDomain + "shop.svc", "apex.dns", "dns-version", "x.dns-version", missing,
		missing + ".svc", "x.y.z.db.shop.svc", `x\.db.shop.svc`, `a\.b.db.shop.svc`, `shop\.svc`, `_\..db.shop.svc`,
	}
	for _, namespace := range append(slices.Clone(dnsNamespaces), missing) {
		names = append(names, namespace+".svc", namespace+".pod", missing+"."+namespace+".svc", "x."+missing+"."+namespace+".svc")
	}
	for _, pod := range []string{
		"10-244-0-1", "10-244-0-99", "1-2-3", "10-0-0-300", "fd00--1", "fd00-10-244--1", "--1", "1--", "--", "--ffff-a00-1", "fe80--1%eth0", "web", "x.10-244-0-1",
		"_x._y.10-244-0-1", "a.b.c.10-244-0-1", "010-0-0-1",
	} {
		names = append(names, pod+".shop.pod", pod+"."+missing+".pod")
	}
	for _, svc := range c.Services {
		for _, below := range dnsBelowService {
			names = append(names, below+svc.Name+"."+svc.Namespace+".svc")
		}
	}
	for i, name := range names {
		names[i] = strings.TrimPrefix(name+".", ".") + dnsDomain
	}
	names = append(names, reverseNames()...)
	for i, name := range names {
		if i%4 == 0 {
			names = append(names, mixedCase(name))
		}
	}
	return names
}

// dnsBelowService is what precedes the name of a Service.
var dnsBelowService = func() []string {
	below := []string{
		"", missing + ".", "_http._tcp.", "_http._udp.", "http.tcp.", "_metrics._tcp.", "_sip._sctp.", "_missing._tcp.", "_http._missing.", "_._tcp.", "_http._.", "_._.",
		"_tcp.", "_http.", "__http._tcp.", "x._http._tcp.", "x.db-0.", "pod-10-244-0-1.",
	}
	for _, h := range dnsHostnames {
		below = append(below, strings.ToLower(h)+".")
	}
	for _, addr := range slices.Concat(dnsIPv4, dnsIPv6) {
		below = append(below, dnsHostnameOf(addr)+".")
	}
	return below
}()

// reverseNames are those of all addresses, and some that are nearly names of addresses.
func reverseNames() []string {
	names := []string{
		"in-addr.arpa.", "ip6.arpa.", "svc.in-addr.arpa.", "shop.svc.in-addr.arpa.", "ns.dns.in-addr.arpa.", "dns-version.ip6.arpa.",
		"10.in-addr.arpa.", "1.0.244.10.in-addr.arpa.x.", "x.1.0.244.10.in-addr.arpa.", "01.0.244.10.in-addr.arpa.", "example.com.",
		"1.0.ip6.arpa.", "0.1.0.0.10.in-addr.arpa.",
	}
	outside := []string{"192.0.2.1", "2001:db8::1", dnsPod4, dnsPod6, "10.96.0.10", "fd00:10:96::a"}
	for _, addr := range slices.Concat(dnsIPv4, dnsIPv6, dnsCluster4, dnsCluster6, outside) {
		name, err := dns.ReverseAddr(addr)
		if err != nil {
			panic(fmt.Sprintf("%s is no address: %v", addr, err))
		}
		names = append(names, name)
	}
	return names
}

// mixedCase spells every third character in upper case.
func mixedCase(name string) string {
	spelled := []byte(name)
	for i := 0; i < len(spelled); i += 3 {
		spelled[i] = strings.ToUpper(string(spelled[i]))[0]
	}
	return string(spelled)
}
