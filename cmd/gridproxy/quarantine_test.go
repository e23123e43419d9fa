package main

import (
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/iptables"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// A load balancer must not send to a node that refuses the Service, and only in the family in
// which it does.
func TestQuarantinedServiceReportsNoEndpoint(t *testing.T) {
	web, api := types.NamespacedName{Namespace: "default", Name: "web"}, types.NamespacedName{Namespace: "default", Name: "api"}
	checks := []rules.HealthCheck{
		{Service: api, Port: 30000, LocalReady: 1},
		{Service: web, Port: 30001, LocalReady: 2},
		{Service: web, IPv6: true, Port: 30001, LocalReady: 2},
	}
	port := topology.ServicePortName{NamespacedName: web, Port: "http"}
	got := checksWithout(checks, []iptables.Quarantined{{Service: port, Family: iptables.IPv4}})
	for i, want := range []int{1, 0, 2} {
		if got[i].LocalReady != want {
			t.Errorf("%+v, want %d endpoints", got[i], want)
		}
	}
	if checks[1].LocalReady != 2 {
		t.Error("the Ruleset was changed in place")
	}
	if got = checksWithout(checks, []iptables.Quarantined{{Service: port, Kept: true}}); got[1].LocalReady != 2 {
		t.Errorf("kept: %+v", got[1])
	}
}
