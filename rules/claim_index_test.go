package rules

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// claimsFromScratch is the definition of what claimIndex keeps current. It finds the Frontends that
// a Service does not get, because another Service has a better claim or because the address is
// reserved. lost are their indices by Service. A Service that names an address twice gets it in the
// better field. That is no conflict. shadowing are the addresses of other Frontends that have the
// port and protocol of a NodePort.
func claimsFromScratch(services []*Service, reserved reserved) (lost [][]int, conflicts []AddressConflict, shadowing []ClaimKey) {
	type position struct{ service, frontend int }
	claimOf := func(p position) claim {
		s := services[p.service]
		return claim{s, s.Frontends[p.frontend].Kind}
	}
	holders := make(map[ClaimKey]position, len(services))
	for i, s := range services {
		for j, f := range s.Frontends {
			key, p := s.claimKey(f), position{i, j}
			holder, taken := holders[key]
			if reserved.reservation(s, f) == NotReserved && (!taken || claimOf(p).compare(claimOf(holder)) < 0) {
				holders[key] = p
			}
		}
	}
	lost = make([][]int, len(services))
	for i, s := range services {
		for j, f := range s.Frontends {
			p, conflict := position{i, j}, AddressConflict{Service: s.Name, Kind: f.Kind, Addr: f.Addr, Reserved: reserved.reservation(s, f)}
			holder := holders[s.claimKey(f)]
			switch {
			case conflict.Reserved != NotReserved:
			case holder == p:
				continue
			default:
				conflict.Holder, conflict.Held = services[holder.service].Name, claimOf(holder).Kind
			}
			lost[i] = append(lost[i], j)
			if conflict.Holder.NamespacedName != s.Name.NamespacedName {
				conflicts = append(conflicts, conflict)
			}
		}
	}
	for key, holder := range holders {
		nodePort := ClaimKey{netip.AddrPortFrom(FamilyOf(key.Addr.Addr()).Unspecified(), key.Addr.Port()), key.Protocol}
		if p, found := holders[nodePort]; found && claimOf(p).Kind == NodePort && claimOf(holder).Kind != NodePort {
			shadowing = append(shadowing, key)
		}
	}
	slices.SortFunc(shadowing, ClaimKey.Compare)
	return lost, conflicts, shadowing
}

// drawPorts draws the ports of a Service. Few addresses and ports exist, so most are claimed by
// several Services.
func drawPorts(t *rapid.T, name string) []*topology.ServicePort {
	pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
	if minute := rapid.IntRange(0, 2).Draw(t, "created"); minute > 0 {
		svc.CreationTimestamp = metav1.Unix(int64(60*minute), 0)
	}
	svc.Spec.ClusterIP = pick("cluster IP", "10.96.0.1", "10.96.0.2", "203.0.113.1", "fd00::1")
	for range rapid.IntRange(0, 2).Draw(t, "external IPs") {
		svc.Spec.ExternalIPs = append(svc.Spec.ExternalIPs, pick("external IP", "203.0.113.1", "203.0.113.2", "192.168.0.2"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "ingresses") {
		ingress := corev1.LoadBalancerIngress{IP: pick("ingress", "203.0.113.1", "203.0.113.2", "192.168.0.2")}
		svc.Status.LoadBalancer.Ingress = append(svc.Status.LoadBalancer.Ingress, ingress)
	}
	svc.Spec.Type, svc.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicy(pick("policy", "Local", "Cluster"))
	svc.Spec.HealthCheckNodePort = int32(rapid.SampledFrom([]int{0, 32000}).Draw(t, "health check"))
	endpoint := topology.Endpoint{Addr: netip.MustParseAddrPort("10.0.0.1:80"), Ready: true, Serving: true}
	var ports []*topology.ServicePort
	for n := range rapid.IntRange(1, 2).Draw(t, "ports") {
		ports = append(ports, &topology.ServicePort{
			Name: topology.ServicePortName{
				NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}, Port: fmt.Sprint(n), Protocol: corev1.Protocol(pick("protocol", "TCP", "TCP", "UDP")),
			},
			Service: svc, Port: int32(rapid.SampledFrom([]int{80, 30080}).Draw(t, "port")),
			NodePort:   int32(rapid.SampledFrom([]int{0, 30080, 30080, 80, PortDNS}).Draw(t, "node port")),
			Cluster:    []topology.Endpoint{endpoint}[:rapid.IntRange(0, 1).Draw(t, "endpoints")],
			ReadyLocal: topology.FamilyCount{IPv4: rapid.IntRange(0, 1).Draw(t, "ready")},
		})
	}
	return ports
}

// recreated are the same ports of a Service that was created at another time.
func recreated(ports []*topology.ServicePort, minute int) []*topology.ServicePort {
	var all []*topology.ServicePort
	for _, sp := range ports {
		again := *sp
		again.Service = sp.Service.DeepCopy()
		again.Service.CreationTimestamp = metav1.Unix(int64(60*minute), 0)
		all = append(all, &again)
	}
	return all
}

// TestClaimsFollowHistory: after any history of Services and reservations, each Service has the
// Frontends that it has when all claims are decided from scratch, and keeps its pointer unless it
// or what it loses changed. The same holds for conflicts, and for addresses that NodePorts lose.
func TestClaimsFollowHistory(t *testing.T) {
	contested := 0
	rapid.Check(t, func(t *rapid.T) {
		var memo Memo
		services := map[string][]*topology.ServicePort{}
		view := topology.View{Self: topology.NodeFacts{HostAddrs: []netip.Addr{netip.MustParseAddr("192.168.0.2")}}}
		var config Config
		before := map[*topology.ServicePort]memory{}
		for range rapid.IntRange(1, 12).Draw(t, "rulesets") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				name := rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name")
				switch rapid.SampledFrom([]string{"remove", "draw", "draw", "recreate"}).Draw(t, "change") {
				case "remove":
					delete(services, name)
				case "draw":
					services[name] = drawPorts(t, name)
				case "recreate":
					services[name] = recreated(services[name], rapid.IntRange(1, 3).Draw(t, "created"))
				}
			}
			if rapid.IntRange(0, 4).Draw(t, "API servers") == 0 {
				servers := []netip.AddrPort{netip.MustParseAddrPort("203.0.113.1:80"), netip.MustParseAddrPort("192.168.0.2:30080")}
				config.APIServers = servers[:rapid.IntRange(0, 2).Draw(t, "how many")]
			}
			if rapid.IntRange(0, 4).Draw(t, "local DNS") == 0 {
				config.LocalDNS = []netip.Addr{netip.MustParseAddr("203.0.113.2"), netip.MustParseAddr("fd00::1")}[:rapid.IntRange(0, 2).Draw(t, "addresses of DNS")]
			}
			view.Ports = nil
			for _, name := range slices.Sorted(maps.Keys(services)) {
				view.Ports = append(view.Ports, services[name]...)
			}
			got := memo.Compile(view, config)
			contested += len(got.AddressConflicts)
			compareWithScratch(t, view, config, got)
			before = compareWithBefore(t, view, got, before)
		}
	})
	if contested == 0 {
		t.Error("no address was ever contested: the histories drawn test nothing")
	}
}

var equateAddrs = cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}, netip.AddrPort{})

func compareWithScratch(t *rapid.T, view topology.View, config Config, got Ruleset) {
	t.Helper()
	var whole []*Service
	for _, sp := range view.Ports {
		whole = append(whole, compileService(sp, factsOf(view, config)))
	}
	lost, conflicts, shadowing := claimsFromScratch(whole, reserve(apiServers(view, config.APIServers), view.Self.HostAddrs, config.LocalDNS))
	want := got
	want.Services, want.HealthChecks = nil, nil
	for i, s := range whole {
		want.Services = append(want.Services, s.without(lost[i]))
		if i == 0 || whole[i-1].Name.NamespacedName != s.Name.NamespacedName {
			want.HealthChecks = append(want.HealthChecks, healthChecks(view.Ports[i:])...)
		}
	}
	want.AddressConflicts, want.NodePortsTaken = conflicts, takenFromNodePorts(shadowing, view.Self.HostAddrs)
	if diff := cmp.Diff(want, got, equateAddrs, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("incremental differs (-from scratch +incremental):\n%s", diff)
	}
}

// compareWithBefore returns what each port has now.
func compareWithBefore(t *rapid.T, view topology.View, got Ruleset, before map[*topology.ServicePort]memory) map[*topology.ServicePort]memory {
	t.Helper()
	now := map[*topology.ServicePort]memory{}
	for i, sp := range view.Ports {
		last, same := before[sp]
		if same && last.granted != got.Services[i] && cmp.Equal(last.granted, got.Services[i], equateAddrs) {
			t.Fatalf("%v is another pointer with the same content", sp.Name)
		}
		now[sp] = memory{granted: got.Services[i]}
	}
	return now
}
