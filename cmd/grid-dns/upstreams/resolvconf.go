package upstreams

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"

	"gridproxy/topology/regularfile"

	"github.com/miekg/dns"
)

// portDNS is that of the servers in resolv.conf.
const portDNS = 53

// ReadConfig returns the servers of this machine from a resolv.conf. It leaves out entries that
// are no addresses.
func ReadConfig(path string) ([]netip.AddrPort, error) {
	text, err := regularfile.Read(path, resolvConfMax)
	config := &dns.ClientConfig{}
	if err == nil {
		config, err = dns.ClientConfigFromReader(bytes.NewReader(text))
	}
	if err != nil {
		return nil, fmt.Errorf("reading the DNS servers of this machine from %s: %w", path, err)
	}
	var all []netip.AddrPort
	for _, server := range config.Servers {
		if addr, err := netip.ParseAddr(server); err == nil {
			all = append(all, netip.AddrPortFrom(addr, portDNS))
		}
	}
	return all, nil
}

// Without returns all without the servers at own addresses.
func Without(all []netip.AddrPort, own []netip.Addr) []netip.AddrPort {
	return slices.DeleteFunc(slices.Clone(all), func(a netip.AddrPort) bool { return slices.Contains(own, a.Addr().WithZone("")) })
}
