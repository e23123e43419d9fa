package rules_test

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/topology"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// claimant is a Service that names addresses.
type claimant struct {
	name       string // "namespace/name"
	created    int    // in which minute; 0 = unknown
	clusterIP  string
	vip        string
	externalIP string
	nodePort   int32
	port       int32           // 0 = 80
	protocol   corev1.Protocol // "" = TCP
	endpoints  []string
}

func (c claimant) objects() (*corev1.Service, *discoveryv1.EndpointSlice) {
	namespace, name, _ := strings.Cut(c.name, "/")
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if c.created > 0 {
		meta.CreationTimestamp = metav1.Unix(int64(60*c.created), 0)
	}
	svc := &corev1.Service{ObjectMeta: meta}
	svc.Spec.Type, svc.Spec.ClusterIP = corev1.ServiceTypeLoadBalancer, c.clusterIP
	svc.Spec.Ports = []corev1.ServicePort{{Port: cmp.Or(c.port, 80), Protocol: c.protocol, NodePort: c.nodePort}}
	if c.externalIP != "" {
		svc.Spec.ExternalIPs = []string{c.externalIP}
	}
	if c.vip != "" {
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: c.vip}}
	}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: name}
	protocol := cmp.Or(c.protocol, corev1.ProtocolTCP)
	slice.Ports = []discoveryv1.EndpointPort{{Name: new(string), Port: new(int32(6443)), Protocol: &protocol}}
	for _, e := range c.endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{e}})
	}
	return svc, slice
}

func snapshot(all ...claimant) topology.Snapshot {
	s := topology.Snapshot{Node: "n1", Host: topology.Host{
		Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("192.168.0.2")}, IPv4: true,
	}}
	slices.SortFunc(all, func(a, b claimant) int { return strings.Compare(a.name, b.name) })
	for _, c := range all {
		svc, slice := c.objects()
		s.Services, s.Slices = append(s.Services, svc), append(s.Slices, topology.NewSlice(slice))
	}
	return s
}

// holders lists who answers where, such as "lb 203.0.113.7:80 ns/a".
func holders(rs rules.Ruleset) []string {
	all := []string{}
	for _, s := range rs.Services {
		for _, f := range s.Frontends {
			if f.Addr.Addr().String()[:3] != "10." { // not the cluster IPs that each has for itself
				kind := [...]string{"cluster", "external", "lb", "node"}[f.Kind]
				all = append(all, fmt.Sprintf("%s %v %s", kind, f.Addr, s.Name.NamespacedName))
			}
		}
	}
	slices.Sort(all)
	return all
}

func compileAll(all ...claimant) rules.Ruleset {
	return rules.Compile(topology.Resolve(snapshot(all...), topology.Config{}), rules.Config{})
}

// TestWhoGetsASharedAddress: a tenant who names another's address in externalIPs does not get it
// by a name that sorts first. The kind of the field decides, then the age, then the name.
func TestWhoGetsASharedAddress(t *testing.T) {
	const shared = "203.0.113.7"
	for _, tc := range []struct {
		name string
		all  []claimant
		want []string
	}{
		{"a load balancer's address beats an older external IP with a smaller name",
			[]claimant{{name: "a/thief", created: 1, externalIP: shared}, {name: "b/lb", created: 2, vip: shared}},
			[]string{"lb 203.0.113.7:80 b/lb"}},
		{"a cluster IP beats every other field",
			[]claimant{{name: "a/thief", created: 1, vip: shared}, {name: "b/victim", created: 2, clusterIP: shared}, {name: "c/thief", created: 1, externalIP: shared}},
			[]string{"cluster 203.0.113.7:80 b/victim"}},
		{"of two external IPs the older Service's wins",
			[]claimant{{name: "a/thief", created: 2, externalIP: shared}, {name: "b/victim", created: 1, externalIP: shared}},
			[]string{"external 203.0.113.7:80 b/victim"}},
		{"of two load balancers the older one wins",
			[]claimant{{name: "a/thief", created: 2, vip: shared}, {name: "b/victim", created: 1, vip: shared}},
			[]string{"lb 203.0.113.7:80 b/victim"}},
		{"of two of the same age the name decides",
			[]claimant{{name: "a/first", created: 1, externalIP: shared}, {name: "b/second", created: 1, externalIP: shared}},
			[]string{"external 203.0.113.7:80 a/first"}},
		{"one whose age is unknown counts as the youngest",
			[]claimant{{name: "a/unknown", externalIP: shared}, {name: "b/known", created: 9, externalIP: shared}},
			[]string{"external 203.0.113.7:80 b/known"}},
		{"other ports are no conflict",
			[]claimant{{name: "a/one", externalIP: shared}, {name: "b/two", externalIP: shared, port: 81}},
			[]string{"external 203.0.113.7:80 a/one", "external 203.0.113.7:81 b/two"}},
		{"other protocols are no conflict",
			[]claimant{{name: "a/one", externalIP: shared}, {name: "b/two", externalIP: shared, protocol: corev1.ProtocolUDP}},
			[]string{"external 203.0.113.7:80 a/one", "external 203.0.113.7:80 b/two"}},
		{"of two with one NodePort the older one wins",
			[]claimant{{name: "a/thief", created: 2, nodePort: 30080}, {name: "b/victim", created: 1, nodePort: 30080}},
			[]string{"node 0.0.0.0:30080 b/victim"}},
		{"of two with one cluster IP the older one wins",
			[]claimant{{name: "a/thief", created: 2, clusterIP: shared}, {name: "b/victim", created: 1, clusterIP: shared}},
			[]string{"cluster 203.0.113.7:80 b/victim"}},
		{"a Service that names its own load balancer's address keeps the source ranges of that",
			[]claimant{{name: "a/both", created: 1, externalIP: shared, vip: shared}},
			[]string{"lb 203.0.113.7:80 a/both"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for i := range tc.all {
				if tc.all[i].clusterIP == "" {
					tc.all[i].clusterIP = fmt.Sprintf("10.96.0.%d", i+1)
				}
			}
			if diff := gocmp.Diff(tc.want, holders(compileAll(tc.all...))); diff != "" {
				t.Errorf("who answers (-want +got):\n%s", diff)
			}
		})
	}
}

// TestNoServiceTakesAnAPIServer: an external Frontend does not answer where an API server does:
// one that the daemon is configured with, one that Service default/kubernetes leads to, or one
// on this machine's own address, which a NodePort would cover.
func TestNoServiceTakesAnAPIServer(t *testing.T) {
	kubernetes := claimant{name: "default/kubernetes", created: 1, clusterIP: "10.96.0.1", port: 443, endpoints: []string{"172.16.0.1"}}
	all := []claimant{
		kubernetes,
		{name: "a/configured", clusterIP: "10.96.0.2", externalIP: "172.16.0.9", port: 6443},
		{name: "a/endpoint", clusterIP: "10.96.0.3", vip: "172.16.0.1", port: 6443},
		{name: "a/node", clusterIP: "10.96.0.4", nodePort: 30443, port: 6443},
		{name: "a/otherport", clusterIP: "10.96.0.5", externalIP: "172.16.0.9", port: 6444},
		{name: "a/udp", clusterIP: "10.96.0.6", externalIP: "172.16.0.9", port: 6443, protocol: corev1.ProtocolUDP},
	}
	s := snapshot(all...)
	config := rules.Config{APIServers: []netip.AddrPort{
		netip.MustParseAddrPort("172.16.0.9:6443"), netip.MustParseAddrPort("192.168.0.2:30443"),
	}}
	var views topology.Memo
	var memo rules.Memo
	got := memo.Compile(views.Resolve(s, topology.Config{}), config)
	want := []string{"external 172.16.0.9:6443 a/udp", "external 172.16.0.9:6444 a/otherport"}
	if diff := gocmp.Diff(want, holders(got)); diff != "" {
		t.Errorf("who answers (-want +got):\n%s", diff)
	}
	if diff := gocmp.Diff([]string{
		"a/configured externalIPs 172.16.0.9:6443/TCP has no effect: an API server answers there",
		"a/endpoint status.loadBalancer 172.16.0.1:6443/TCP has no effect: an API server answers there",
		"a/node nodePort 0.0.0.0:30443/TCP has no effect: an API server answers there",
	}, conflicts(got)); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}

	all[slices.IndexFunc(all, func(c claimant) bool { return c.name == kubernetes.name })].endpoints = []string{"172.16.0.2"} // it moves
	s = snapshot(all...)
	want = append(want, "lb 172.16.0.1:6443 a/endpoint")
	if diff := gocmp.Diff(want, holders(memo.Compile(views.Resolve(s, topology.Config{}), config))); diff != "" {
		t.Errorf("who answers after the API server moved (-want +got):\n%s", diff)
	}
}

// TestNoServiceTakesLocalDNS: no field of a Service answers at an address of the DNS server on this
// node, over any protocol and at any port. While local DNS is off, each field gets the address.
func TestNoServiceTakesLocalDNS(t *testing.T) {
	config := rules.Config{LocalDNS: []netip.Addr{netip.MustParseAddr("203.0.113.12"), netip.MustParseAddr("fd00:6772:6964::12")}}
	for own, dns := range map[string]string{"10.96.0.1": "203.0.113.12", "fd00::1": "fd00:6772:6964::12"} {
		for _, protocol := range []corev1.Protocol{corev1.ProtocolUDP, corev1.ProtocolTCP, corev1.ProtocolSCTP} {
			for field, thief := range map[string]claimant{
				"clusterIP":           {clusterIP: dns, port: 53},
				"externalIPs":         {clusterIP: own, externalIP: dns, port: 53},
				"status.loadBalancer": {clusterIP: own, vip: dns, port: 8053},
				"nodePort":            {clusterIP: own, nodePort: 53},
			} {
				thief.name, thief.created, thief.protocol = "a/thief", 1, protocol
				view := topology.Resolve(snapshot(thief), topology.Config{})
				free, kept := rules.Compile(view, rules.Config{}), rules.Compile(view, config)
				if n, m := len(free.Services[0].Frontends), len(kept.Services[0].Frontends); m != n-1 || len(free.AddressConflicts) > 0 {
					t.Errorf("%s %s/%s: %d Frontends with local DNS, %d without", field, dns, protocol, m, n)
				}
				got := strings.Join(conflicts(kept), "; ")
				if !strings.HasPrefix(got, "a/thief "+field+" ") ||
					!strings.HasSuffix(got, "has no effect: the DNS server of this Node answers there (--dns-address)") {
					t.Errorf("%s %s/%s: conflicts: %q", field, dns, protocol, got)
				}
			}
		}
	}
	one := rules.Config{LocalDNS: config.LocalDNS[:1]} // of IPv4
	v := topology.Resolve(snapshot(claimant{name: "a/six", clusterIP: "fd00::1", nodePort: 53}), topology.Config{})
	if got := conflicts(rules.Compile(v, one)); got != nil {
		t.Errorf("NodePort 53 of the other family: %v", got)
	}
}

func conflicts(rs rules.Ruleset) []string {
	var all []string
	for _, c := range rs.AddressConflicts {
		all = append(all, c.Service.NamespacedName.String()+" "+c.String())
	}
	return all
}

// TestAddressConflicts: the conflict of a Service that names an address in vain says which Service
// has it. A Service that names its own address twice has no conflict.
func TestAddressConflicts(t *testing.T) {
	got := conflicts(compileAll(
		claimant{name: "a/thief", created: 2, clusterIP: "10.96.0.1", externalIP: "203.0.113.7", nodePort: 30080},
		claimant{name: "b/victim", created: 1, clusterIP: "10.96.0.2", externalIP: "203.0.113.7", vip: "203.0.113.7", nodePort: 30080},
	))
	if diff := gocmp.Diff([]string{
		"a/thief externalIPs 203.0.113.7:80/TCP has no effect: Service b/victim has the address in status.loadBalancer",
		"a/thief nodePort 0.0.0.0:30080/TCP has no effect: Service b/victim has the address too, and is older or sorts first by name",
	}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestConflictsEndWithTheirServices: no conflict is left when all Services go in the same moment
// in which the operator's settings change.
func TestConflictsEndWithTheirServices(t *testing.T) {
	compile := func(memo *rules.Memo, s topology.Snapshot, c rules.Config) int {
		return len(memo.Compile(topology.Resolve(s, topology.Config{}), c).AddressConflicts)
	}
	var memo rules.Memo
	both := snapshot(
		claimant{name: "a/web", clusterIP: "10.96.0.1", externalIP: "198.51.100.1"},
		claimant{name: "b/web", clusterIP: "10.96.0.2", externalIP: "198.51.100.1"},
	)
	if n := compile(&memo, both, rules.Config{}); n != 1 {
		t.Fatalf("%d conflicts at first, want 1", n)
	}
	if n := compile(&memo, snapshot(), rules.Config{MasqueradeAll: true}); n != 0 {
		t.Errorf("%d conflicts without any Service, want 0", n)
	}
}

// TestNodePortsTaken: on an address of this machine a NodePort yields to a Frontend of another
// field with the same port and protocol, of whichever Service; everywhere else it answers.
func TestNodePortsTaken(t *testing.T) {
	node := claimant{name: "a/node", created: 1, clusterIP: "10.96.0.1", nodePort: 30080}
	for _, tc := range []struct {
		name  string
		other claimant
		want  []string
	}{
		{"an external IP", claimant{externalIP: "192.168.0.2", port: 30080}, []string{"192.168.0.2:30080 6"}},
		{"a load balancer's address", claimant{vip: "192.168.0.2", port: 30080}, []string{"192.168.0.2:30080 6"}},
		{"an address of another machine", claimant{externalIP: "203.0.113.7", port: 30080}, nil},
		{"another port", claimant{externalIP: "192.168.0.2", port: 30081}, nil},
		{"another protocol", claimant{externalIP: "192.168.0.2", port: 30080, protocol: corev1.ProtocolUDP}, nil},
		{"the same Service", claimant{name: "a/node", created: 1, externalIP: "192.168.0.2", port: 30080, nodePort: 30080}, []string{"192.168.0.2:30080 6"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all := []claimant{tc.other}
			if all[0].clusterIP = "10.96.0.2"; all[0].name == "" {
				all[0].name = "b/other"
				all = append(all, node)
			}
			var memo rules.Memo
			compile := func(all ...claimant) (taken []string) {
				for _, key := range memo.Compile(topology.Resolve(snapshot(all...), topology.Config{}), rules.Config{}).NodePortsTaken {
					taken = append(taken, fmt.Sprintf("%v %d", key.Addr, key.Protocol))
				}
				return taken
			}
			if diff := gocmp.Diff(tc.want, compile(all...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if left := compile(node); left != nil {
				t.Errorf("taken when the other has gone: %v", left)
			}
		})
	}
}
