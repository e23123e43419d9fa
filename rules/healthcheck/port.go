package healthcheck

import (
	"net/netip"
	"slices"

	"gridproxy/rules"

	"k8s.io/apimachinery/pkg/types"
)

// port is where the health of a Service is reported. An unspecified address means every address of
// its family.
type port struct {
	service types.NamespacedName
	addr    netip.AddrPort
}

func (p port) family() rules.Family { return rules.FamilyOf(p.addr.Addr()) }

type wantedPort struct {
	port
	ready int
}

// wantedPorts returns the ports that want asks for, in the order of its HealthChecks. Pure.
func wantedPorts(want rules.Ruleset) []wantedPort {
	var out []wantedPort
	for _, check := range want.HealthChecks {
		on, unspecified := want.NodePorts.IPv4, netip.IPv4Unspecified()
		if check.IPv6 {
			on, unspecified = want.NodePorts.IPv6, netip.IPv6Unspecified()
		}
		addrs := slices.Clone(on.Addrs)
		for _, a := range want.NodePorts.HealthLoopback {
			if a.Is6() == check.IPv6 {
				addrs = append(addrs, a)
			}
		}
		if on.All {
			addrs = []netip.Addr{unspecified}
		}
		for _, a := range addrs {
			p := port{service: check.Service, addr: netip.AddrPortFrom(a, check.Port)}
			out = append(out, wantedPort{port: p, ready: check.LocalReady})
		}
	}
	return out
}
