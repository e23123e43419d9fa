package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

func drawConfig(t *rapid.T) topology.Config {
	choices := []topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}
	return topology.Config{NodesWithoutUnit: rapid.SampledFrom(choices).Draw(t, "without unit")}
}

// TestAccountsForEveryEndpoint: the kept endpoints are exactly those that the View uses, and every
// dropped one has a reason.
func TestAccountsForEveryEndpoint(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		v := topology.Resolve(s, drawConfig(t))
		for _, svc := range s.Services {
			e, err := Service(s, topology.Config{}, v, NameOf(svc))
			if err != nil {
				t.Fatal(err)
			}
			checkPorts(t, e, portsOf(v.Ports, NameOf(svc)))
		}
	})
}

// portsOf returns what topology.PortsOf does, without a search that needs an order.
func portsOf(all []*topology.ServicePort, name types.NamespacedName) []*topology.ServicePort {
	return slices.DeleteFunc(slices.Clone(all), func(sp *topology.ServicePort) bool { return sp.Name.NamespacedName != name })
}

func checkPorts(t *rapid.T, e Explanation, ports []*topology.ServicePort) {
	if len(e.Ports) != len(ports) {
		t.Fatalf("%d ports explained of %d", len(e.Ports), len(ports))
	}
	for i, sp := range ports {
		used := map[string]bool{}
		view := append([]topology.Endpoint{}, sp.Local...)
		if *sp.Service.Spec.InternalTrafficPolicy == "Cluster" || sp.NodePort != 0 || len(sp.Service.Spec.ExternalIPs) > 0 {
			view = append(view, sp.Cluster...) // else only local endpoints are used
		}
		for _, ep := range view {
			used[ep.Addr.String()+"@"+ep.Node] = true
		}
		kept, dropped := map[string]bool{}, 0
		for _, ep := range e.Ports[i].Endpoints {
			switch {
			case ep.Kept:
				kept[ep.Address+"@"+ep.Node] = true
			case ep.Reason == "":
				t.Fatalf("%s is dropped without a reason", ep.Address)
			default:
				dropped++
			}
		}
		if fmt.Sprint(kept) != fmt.Sprint(used) {
			t.Fatalf("kept %v, but the View uses %v", kept, used)
		}
		if dropped == 0 && len(sp.Closure.LeftOut) > 0 {
			t.Fatalf("closure left out %v, none explained", sp.Closure.LeftOut)
		}
	}
}

func TestUnknownService(t *testing.T) {
	var s topology.Snapshot
	for _, name := range []string{"default/web", "default/web-admin", "default/wob", "other/web", "default/database"} {
		ns, n, _ := strings.Cut(name, "/")
		s.Services = append(s.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: n}})
	}
	for name, want := range map[string]string{
		"default/webb": "there is no Service default/webb; did you mean default/web, default/wob, other/web?",
		"prod/web":     "there is no Service prod/web; did you mean default/web, other/web, default/web-admin?",
		"default/zzz":  "there is no Service default/zzz among the 5 of the source, and none with a similar name",
	} {
		parsed, err := ParseName(name, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Service(s, topology.Config{}, topology.View{}, parsed); err == nil || err.Error() != want {
			t.Errorf("%s: got  %v\nwant %s", name, err, want)
		}
	}
}

func TestParseName(t *testing.T) {
	for _, test := range []struct{ text, namespace, want string }{
		{"web", "", "default/web"}, {"web", "shop", "shop/web"}, {"a/b", "", "a/b"}, {"a/b", "a", "a/b"}, {"a/b", "shop", ""},
		{"svc/web", "", "default/web"}, {"service/web", "shop", "shop/web"}, {"svc/", "", ""},
		{"", "", ""}, {"a/", "", ""}, {"/b", "", ""}, {"A/b", "", ""}, {"a/b/c", "", ""}, {"a b", "", ""}, {"web", "A", ""},
	} {
		got, err := ParseName(test.text, test.namespace)
		if (err == nil) != (test.want != "") || err == nil && got.String() != test.want {
			t.Errorf("%q in %q: got %v, %v, want %q", test.text, test.namespace, got, err, test.want)
		}
	}
}

// TestAPIProxy: explain says whether the node-local API proxy or the API servers are used, and why.
func TestAPIProxy(t *testing.T) {
	name := types.NamespacedName{Namespace: "default", Name: "kubernetes"}
	meta := metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}
	spec := corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Name: "https", Port: 443}}}
	s := topology.Snapshot{Services: []*corev1.Service{{ObjectMeta: meta, Spec: spec}}}
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: name.Name}
	meta.Annotations = map[string]string{topology.AnnotationLocalEndpoint: "169.254.20.11", topology.AnnotationLocalPort: "51003"}
	s.Slices = []*topology.Slice{topology.NewSlice(&discoveryv1.EndpointSlice{
		ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4,
		Ports:     []discoveryv1.EndpointPort{{Name: new("https"), Port: new(int32(6443))}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"192.168.0.10"}}},
	})}
	proxy := topology.APIProxies(s.Slices)[0]
	for want, probed := range map[string]topology.ProbedProxies{
		"169.254.20.11:51003 which is assumed here":        nil,
		"169.254.20.11:51003 answers: it takes the place":  {proxy: true},
		"192.168.0.10:6443 does not answer: the API serve": {proxy: false},
	} {
		s.APIProxies = probed
		e, err := Service(s, topology.Config{}, topology.Resolve(s, topology.Config{}), name)
		if err != nil {
			t.Fatal(err)
		}
		address, note, _ := strings.Cut(want, " ")
		if len(e.Ports[0].Endpoints) != 1 || e.Ports[0].Endpoints[0].Address != address || !strings.Contains(strings.Join(e.Notes, "\n"), note) {
			t.Errorf("%v: endpoints %v, notes %q, want %q", probed, e.Ports[0].Endpoints, e.Notes, want)
		}
	}
}

// TestNamesTheDecidingSlice: of an address that two slices have, the reason names the slice that
// decides, whether its endpoint is used or not, and none that has the address at another port.
func TestNamesTheDecidingSlice(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "default", Name: "pg"}
	svc := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.70", Ports: []corev1.ServicePort{{Name: "pg", Port: 5432}}}}
	slice := func(name, port string, number int32, ready, terminating bool) *topology.Slice {
		return topology.NewSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: "pg"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Ports:       []discoveryv1.EndpointPort{{Name: &port, Port: &number}},
			Endpoints: []discoveryv1.Endpoint{
				{Addresses: []string{"10.0.1.5"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready, Terminating: &terminating}},
			},
		})
	}
	const reason = "EndpointSlice decides has its address too, and decides"
	for name, test := range map[string]struct {
		decides, other *topology.Slice
		unused         string // why the deciding one is not used
	}{
		"the other one is not ready": {slice("decides", "pg", 5432, true, false), slice("other", "pg", 5432, false, false), ""},
		"the other one terminates":   {slice("decides", "pg", 5432, false, false), slice("other", "pg", 5432, true, true), "not ready"},
		"both are ready":             {slice("decides", "pg", 5432, true, false), slice("other", "pg", 5432, true, true), ""},
	} {
		ready := test.decides.Endpoints[0].Ready
		s := topology.Snapshot{Services: []*corev1.Service{svc}, Slices: []*topology.Slice{
			slice("another-name", "admin", 5432, ready, false), slice("another-port", "pg", 5433, ready, false), test.other, test.decides,
		}}
		e, err := Service(s, topology.Config{}, topology.Resolve(s, topology.Config{}), types.NamespacedName{Namespace: "default", Name: "pg"})
		if err != nil {
			t.Fatal(err)
		}
		var reasons []string
		for _, endpoint := range e.Ports[0].Endpoints {
			if endpoint.Address == "10.0.1.5:5432" {
				reasons = append(reasons, endpoint.Reason)
			}
		}
		slices.Sort(reasons)
		if want := slices.Sorted(slices.Values([]string{reason, test.unused})); !slices.Equal(reasons, want) {
			t.Errorf("%s: %q, want %q", name, reasons, want)
		}
	}
}
