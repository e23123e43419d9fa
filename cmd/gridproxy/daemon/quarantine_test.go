package daemon

import (
	"net/netip"
	"slices"
	"testing"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/rules"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// A load balancer must not send to a node on which the Service is quarantined, in that family only.
func TestQuarantinedServiceReportsNoEndpoint(t *testing.T) {
	web, api := types.NamespacedName{Namespace: "default", Name: "web"}, types.NamespacedName{Namespace: "default", Name: "api"}
	checks := []rules.HealthCheck{
		{Service: api, Port: 30000, LocalReady: 1},
		{Service: web, Port: 30001, LocalReady: 2},
		{Service: web, IPv6: true, Port: 30001, LocalReady: 2},
	}
	port := topology.ServicePortName{NamespacedName: web, Port: "http"}
	got := checksWithout(checks, []event.Quarantined{{Service: port, Family: rules.IPv4}})
	for i, want := range []int{1, 0, 2} {
		if got[i].LocalReady != want {
			t.Errorf("%+v, want %d endpoints", got[i], want)
		}
	}
	if checks[1].LocalReady != 2 {
		t.Error("the Ruleset was changed in place")
	}
	if got = checksWithout(checks, []event.Quarantined{{Service: port, Kept: true}}); got[1].LocalReady != 2 {
		t.Errorf("kept: %+v", got[1])
	}
}

// Flows to a Service are deleted in the family in which it is quarantined: they are translated
// before they meet a REJECT. Those of default/kubernetes stay, because its last good rules do.
func TestFlowsOfQuarantinedServicesEnd(t *testing.T) {
	name := topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: "default", Name: "dns"}, Protocol: "UDP"}
	ipv4, ipv6 := netip.MustParseAddrPort("10.1.0.1:53"), netip.MustParseAddrPort("[fd00::1]:53")
	want := rules.Ruleset{Services: []*rules.Service{{Name: name, Serving: []netip.AddrPort{ipv4, ipv6}}}}
	var now []event.Quarantined
	f := quarantineFlows{quarantined: func() []event.Quarantined { return now }}
	check := func(step string, serving ...netip.AddrPort) *rules.Service {
		t.Helper()
		got := f.enforced(want).Services[0]
		if !slices.Equal(got.Serving, serving) {
			t.Errorf("%s: flows may go to %v, want %v", step, got.Serving, serving)
		}
		return got
	}
	check("not refused", ipv4, ipv6)
	now = []event.Quarantined{{Service: name, Family: rules.IPv4}}
	first := check("refused in IPv4", ipv6)
	if check("the same again", ipv6) != first {
		t.Error("an equal Service is another pointer, so its flows are swept in each run")
	}
	now = append(now, event.Quarantined{Service: name, Family: rules.IPv6})
	check("refused in both")
	now = []event.Quarantined{{Service: name, Family: rules.IPv4, Kept: true}}
	check("its last good rules stay", ipv4, ipv6)
	if len(want.Services[0].Serving) != 2 {
		t.Error("the Ruleset was changed in place")
	}
}
