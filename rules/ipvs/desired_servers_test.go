package ipvs

import (
	"cmp"
	"net/netip"
	"slices"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// drawCrowded draws Services that name the same few addresses.
func drawCrowded(t *rapid.T, before map[string]*topology.ServicePort) topology.View {
	v := topology.View{Self: topology.NodeFacts{HostAddrs: []netip.Addr{netip.MustParseAddr("192.168.0.2")}}}
	for _, name := range []string{"a", "b", "c"} {
		switch rapid.IntRange(0, 3).Draw(t, "service "+name) {
		case 0:
			delete(before, name)
		case 1:
			before[name] = drawCrowdedService(t, name)
		}
		if s := before[name]; s != nil {
			v.Ports = append(v.Ports, s)
		}
	}
	return v
}

func drawCrowdedService(t *rapid.T, name string) *topology.ServicePort {
	id := types.NamespacedName{Namespace: "ns", Name: name}
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: id.Namespace, Name: id.Name}}
	svc.CreationTimestamp = metav1.Unix(int64(rapid.IntRange(1, 2).Draw(t, "created")), 0)
	svc.Spec.Type = corev1.ServiceTypeLoadBalancer
	svc.Spec.ClusterIP = rapid.SampledFrom([]string{"10.96.0.1", "10.96.0.2"}).Draw(t, "cluster IP")
	svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
	svc.Spec.ExternalIPs = rapid.SampledFrom([][]string{nil, {"10.96.0.1"}, {"192.168.0.2"}, {"10.96.0.1", "192.168.0.2"}}).Draw(t, "external IPs")
	if rapid.Bool().Draw(t, "load balancer") {
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "192.168.0.2"}}
	}
	if rapid.Bool().Draw(t, "external local") { // no endpoint is local, so that chains drop
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	}
	sp := &topology.ServicePort{
		Name: topology.ServicePortName{NamespacedName: id}, Service: svc,
		Port:     rapid.SampledFrom([]int32{80, 30080}).Draw(t, "port"),
		NodePort: rapid.SampledFrom([]int32{0, 30080}).Draw(t, "node port"),
	}
	svc.Spec.Ports = []corev1.ServicePort{{Port: sp.Port, NodePort: sp.NodePort}}
	for i := range rapid.IntRange(0, 2).Draw(t, "endpoints") {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 180, name[0], byte(i)}), 80)
		sp.Cluster = append(sp.Cluster, topology.Endpoint{Addr: addr, Ready: true, Serving: true})
		sp.Serving = append(sp.Serving, addr)
	}
	return sp
}

// claimant is a Service that names an address and port, and in which field.
type claimant struct {
	name  string
	class int // of the field
	since time.Time
}

// holders are the Services that get each address and port, by the rule and not by the way.
func holders(v topology.View) map[ServerKey]string {
	all := map[ServerKey][]claimant{}
	for _, sp := range v.Ports {
		claim := func(class int, port int32, addrs ...string) {
			for _, a := range addrs {
				key := ServerKey{Addr: netip.AddrPortFrom(netip.MustParseAddr(a), uint16(port)), Proto: netfilter.TCP}
				all[key] = append(all[key], claimant{sp.Name.Name, class, sp.Service.CreationTimestamp.Time})
			}
		}
		claim(0, sp.Port, sp.Service.Spec.ClusterIP)
		for _, ingress := range sp.Service.Status.LoadBalancer.Ingress {
			claim(1, sp.Port, ingress.IP)
		}
		claim(2, sp.Port, sp.Service.Spec.ExternalIPs...)
		if sp.NodePort > 0 {
			claim(3, sp.NodePort, "192.168.0.2")
		}
	}
	first := map[ServerKey]string{}
	for key, claimants := range all {
		first[key] = slices.MinFunc(claimants, func(a, b claimant) int {
			return cmp.Or(cmp.Compare(a.class, b.class), a.since.Compare(b.since), cmp.Compare(a.name, b.name))
		}).name
	}
	return first
}

// Whoever came first, and whoever went meanwhile: the same Service has an address, and what
// it needs is there as long as anybody needs it.
func TestDesiredServersOfACrowd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var memo rules.Memo
		var compiler Compiler
		d := newDesiredServers()
		services := map[string]*topology.ServicePort{}
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			view := drawCrowded(t, services)
			compiled := compiler.Compile(memo.Compile(view, rules.Config{}), Config{})
			d.update(compiled.plans, touched{})
			want := State{Servers: map[ServerKey]Server{}, Destinations: map[DestinationKey]Destination{}, Addresses: map[netip.Addr]struct{}{}}
			expected, inChains := holders(view), map[ServerKey]bool{}
			for _, p := range compiled.plans {
				for _, slot := range p.slots {
					key := slot.key
					if p.service.Name.Name != expected[key] {
						t.Fatalf("%s is of Service %s, want %q, and only once", key, p.service.Name.Name, expected[key])
					}
					delete(expected, key)
					inChains[key] = slot.bits > 0
					if slot.set == "" {
						continue
					}
					want.Servers[key] = p.server
					for _, e := range slot.endpoints {
						want.Destinations[DestinationKey{Server: key, Addr: e}] = Destination{Weight: 1}
					}
					if key.Addr.Addr().Is4() && key.Addr.Addr().As4()[0] == 10 {
						want.Addresses[key.Addr.Addr()] = struct{}{}
					}
				}
			}
			if len(expected) > 0 {
				t.Fatalf("no Service has %v", expected)
			}
			got := d.state()
			want.Entries = got.Entries
			if diff := gocmp.Diff(want, got, equateAddrs); diff != "" {
				t.Fatalf("(-want +got):\n%s", diff)
			}
			for e := range got.Entries {
				if e.Set == netfilter.SetChains && !inChains[listedServer(e)] {
					t.Fatalf("entry %s is of a loser", e)
				}
			}
			if diff := gocmp.Diff(compiled.State(), got, equateAddrs); diff != "" {
				t.Fatalf("(-from scratch +kept):\n%s", diff)
			}
		}
		d.update(nil, touched{})
		if s := d.state(); len(d.services)+len(s.Servers)+len(s.Destinations)+len(s.Addresses)+len(s.Entries) > 0 {
			t.Fatalf("of nothing is left: %+v", d)
		}
	})
}

// TestTakenNodePortConcernsOneService: a tenant names an address of this machine as an external IP,
// with the port of a NodePort. Only the Service of that NodePort gets another plan.
func TestTakenNodePortConcernsOneService(t *testing.T) {
	host := []netip.Addr{netip.MustParseAddr("192.168.0.2")}
	rs := rules.Ruleset{HostAddrs: host, NodePorts: rules.NodePortScope{IPv4: rules.ListenAddrs{All: true, Addrs: host}}}
	for _, port := range []string{"0.0.0.0:30080", "0.0.0.0:30081", "0.0.0.0:30082"} {
		rs.Services = append(rs.Services, &rules.Service{
			Name:      topology.ServicePortName{Port: port},
			Frontends: []rules.Frontend{{Kind: rules.NodePort, Addr: netip.MustParseAddrPort(port), Verdict: rules.Reject}},
		})
	}
	var c Compiler
	before := c.Compile(rs, Config{}).plans
	rs.NodePortsTaken = []rules.ClaimKey{{Addr: netip.MustParseAddrPort("192.168.0.2:30081"), Protocol: rs.Services[1].Name.IPProtocol()}}
	after := c.Compile(rs, Config{}).plans
	for i, same := range []bool{true, false, true} {
		if (before[i] == after[i]) != same {
			t.Errorf("the plan of %s is the same: %t, want %t", rs.Services[i].Name, !same, same)
		}
	}
}
