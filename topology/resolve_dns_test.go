package topology

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/topology/dnsview"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// namesOf is what DNS says about a headless Service db with these keys and these endpoints:
// "host name" and, where it follows, "@node", "!" (not ready).
func namesOf(keys string, own labels.Set, grids []string, endpoints ...string) *DNSService {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db", Annotations: map[string]string{AnnotationKeys: keys}},
		Spec:       corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}
	s := sliceOf("db", "db-1")
	s.Labels[LabelHeadless] = ""
	for i, text := range endpoints {
		text, unready := strings.CutSuffix(text, "!")
		hostname, node, _ := strings.Cut(text, "@")
		e := discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.%d.%d", (i+1)>>8, (i+1)&255)}, NodeName: new("me"), Hostname: &hostname}
		if node != "" {
			e.NodeName = &node
		}
		// What serves or terminates is not asked.
		e.Conditions = discoveryv1.EndpointConditions{Ready: new(!unready), Serving: new(unready), Terminating: new(!unready)}
		s.Endpoints = append(s.Endpoints, e)
	}
	snapshot := Snapshot{
		Node: "me", Nodes: map[string]labels.Set{"me": own, "far": {"zone": "far"}},
		Services: []*corev1.Service{svc}, Slices: []*Slice{NewSliceWithNames(s)}, Namespaces: []string{"default"},
	}
	for _, g := range grids {
		snapshot.Grids = append(snapshot.Grids, types.NamespacedName{Namespace: "default", Name: g})
	}
	slices.SortFunc(snapshot.Grids, CompareServices)
	return ResolveDNS(snapshot, Config{}).Services[0]
}

// TestAliases has the faults of SuperEdge's hosts file: a value that is a part of the Grid's name
// (D-01), a Grid whose name ends with another's, a host name shorter than the Grid's.
func TestAliases(t *testing.T) {
	long, x, hashed := strings.Repeat("a", 60), labels.Set{"zone": "x"}, StatefulSetName("db", "X.y")+"-3"
	for name, test := range map[string]struct {
		keys       string
		own        labels.Set
		grids      []string
		hostnames  []string
		want       string // "alias=host name" …
		collisions string
	}{
		"plain":                     {`["zone"]`, x, []string{"db"}, []string{"db-x-0", "db-x-11", "db-y-0"}, "db-0=db-x-0 db-11=db-x-11", ""},
		"value in the name (D-01)":  {`["zone"]`, labels.Set{"zone": "zone"}, []string{"zone-app"}, []string{"zone-app-zone-0"}, "zone-app-0=zone-app-zone-0", ""},
		"one letter (D-01)":         {`["zone"]`, labels.Set{"zone": "a"}, []string{"a-db"}, []string{"a-db-a-0"}, "a-db-0=a-db-a-0", ""},
		"end of another":            {`["zone"]`, x, []string{"web", "foo-web"}, []string{"foo-web-x-0", "web-x-0"}, "foo-web-0=foo-web-x-0 web-0=web-x-0", ""},
		"only the other":            {`["zone"]`, x, []string{"web"}, []string{"foo-web-x-0"}, "", ""},
		"short names":               {`["zone"]`, x, []string{"a-long-name"}, []string{"0", "a-0", "x", "a"}, "", ""},
		"no ordinal":                {`["zone"]`, x, []string{"db"}, []string{"db-x-00", "db-x-01", "db-x-a", "db-x"}, "", ""},
		"no Grid":                   {`["zone"]`, x, nil, []string{"db-x-0"}, "", ""},
		"not a key of the Service":  {`["zone"]`, labels.Set{"zone": "x", "rack": "r"}, []string{"db"}, []string{"db-r-0"}, "", ""},
		"open Service":              {`[]`, x, []string{"db"}, []string{"db-x-0"}, "", ""},
		"node without unit":         {`["zone"]`, labels.Set{}, []string{"db"}, []string{"db--0", "db-0"}, "", ""},
		"a hash":                    {`["zone"]`, labels.Set{"zone": "X.y"}, []string{"db"}, []string{hashed}, "db-3=" + hashed, ""},
		"real name":                 {`["zone"]`, x, []string{"db"}, []string{"db-x-0", "db-0", "db-x-1"}, "db-1=db-x-1", "db-0"},
		"real name, not ready":      {`["zone"]`, x, []string{"db"}, []string{"db-x-0", "db-0!"}, "", "db-0"},
		"real name, other unit":     {`["zone"]`, x, []string{"db"}, []string{"db-x-0", "db-0@far"}, "db-0=db-x-0", ""},
		"two keys":                  {`["rack","zone"]`, labels.Set{"zone": "x", "rack": "r"}, []string{"db"}, []string{"db-x-0", "db-r-0", "db-x-1"}, "db-0=db-r-0 db-1=db-x-1", "db-0"},
		"two keys, first not ready": {`["rack","zone"]`, labels.Set{"zone": "x", "rack": "r"}, []string{"db"}, []string{"db-x-0", "db-r-0!"}, "", "db-0"},
		"not ready":                 {`["zone"]`, x, []string{"db"}, []string{"db-x-0!"}, "", ""},
		"one host name twice":       {`["zone"]`, x, []string{"db"}, []string{"db-x-0", "db-x-0"}, "db-0=db-x-0", ""},
		"no label":                  {`["zone"]`, x, []string{"a.b"}, []string{StatefulSetName("a.b", "x") + "-0"}, "", ""},
		"too long":                  {`["zone"]`, x, []string{long + "aa"}, []string{StatefulSetName(long+"aa", "x") + "-0"}, "", ""},
	} {
		got := namesOf(test.keys, test.own, test.grids, test.hostnames...)
		var aliases []string
		for _, a := range got.Aliases {
			aliases = append(aliases, a.Alias+"="+a.Hostname)
		}
		if strings.Join(aliases, " ") != test.want || strings.Join(got.Collisions, " ") != test.collisions {
			t.Errorf("%s: aliases %v, collisions %v; want %s, %s", name, aliases, got.Collisions, test.want, test.collisions)
		}
		if refused := name == "no label" || name == "too long"; refused != (len(got.Warnings) == 1) {
			t.Errorf("%s: warnings %q", name, got.Warnings)
		}
	}
}

func hostnamesOf(s *DNSService) string {
	var all []string
	for _, e := range s.Endpoints {
		all = append(all, e.Hostname)
	}
	return strings.Join(all, " ")
}

// TestEmptyUnit: who has no endpoints, and that readiness is CoreDNS's.
func TestEmptyUnit(t *testing.T) {
	x := labels.Set{"zone": "x"}
	for name, test := range map[string]struct {
		keys      string
		hostnames []string
		want      string
	}{
		"other unit":                {`["zone"]`, []string{"a@far"}, ""},
		"unknown node of it":        {`["zone"]`, []string{"a@ghost"}, ""},
		"malformed":                 {`["zone"`, []string{"a@far", "b"}, "b"},
		"malformed, none here":      {`["zone"`, []string{"a@far"}, ""},
		"open":                      {`[]`, []string{"a@far", "b@ghost", "c!"}, "a b"},
		"ready while it terminates": {`["zone"]`, []string{"b", "a", "c!"}, "a b"},
		"ordered":                   {`["zone","*"]`, []string{"a@far", "b!"}, ""}, // without the policy it is malformed
	} {
		if got := hostnamesOf(namesOf(test.keys, x, nil, test.hostnames...)); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

// TestManyEndpoints: of one Service the first 50,000 endpoints by host name have names, of those
// that are ready and of this unit. What is left out is reported, and no alias leads to it.
func TestManyEndpoints(t *testing.T) {
	const limit = 50_000
	for name, test := range map[string]struct {
		keys        string
		here, extra int
		suffix      string // of the extra endpoints
		unnamed     int
	}{
		"as many as there may be": {`["zone"]`, limit, 0, "", 0},
		"three more":              {`["zone"]`, limit, 3, "", 3},
		"three more, and open":    {`[]`, limit, 3, "@far", 3},
		"in another unit":         {`["zone"]`, limit, 3, "@far", 0},
		"not ready":               {`["zone"]`, limit, 3, "!", 0},
	} {
		var endpoints []string
		for i := range test.here {
			endpoints = append(endpoints, fmt.Sprintf("web-%05d", i))
		}
		for i := range test.extra {
			endpoints = append(endpoints, fmt.Sprintf("web-x-%d%s", i, test.suffix))
		}
		got := namesOf(test.keys, labels.Set{"zone": "x"}, []string{"web"}, endpoints...)
		if n := len(got.Endpoints); n != limit || got.Endpoints[n-1].Hostname != "web-49999" || got.Unnamed != test.unnamed || len(got.Aliases) > 0 {
			t.Errorf("%s: %d endpoints have names, %d have none, and %d have aliases", name, n, got.Unnamed, len(got.Aliases))
		}
		doubts := strings.Join(got.Doubts(), " ")
		if said := strings.Contains(doubts, "at most 50000 endpoints of one Service"); said != (test.unnamed > 0) || said && !strings.Contains(doubts, "here 3") {
			t.Errorf("%s: %q", name, doubts)
		}
	}
}

// TestManyPorts: the different lists of ports of a Service have 4,000 ports together, and equal
// ones are one list. Endpoints of further ones have addresses alone, with a warning.
func TestManyPorts(t *testing.T) {
	s := Snapshot{Node: "me", Nodes: map[string]labels.Set{"me": {}}, Namespaces: []string{"default"}}
	s.Services = []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}}
	for i, first := range []int32{1, 2001, 2001, 4001, 1} {
		slice := sliceOf("db", fmt.Sprintf("db-%d", i), fmt.Sprintf("10.0.0.%d", i))
		slice.Ports = nil
		for n := range int32(2000) {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(""), Port: new(first + n)})
		}
		s.Slices = append(s.Slices, NewSliceWithNames(slice))
	}
	got := ResolveDNS(s, Config{}).Services[0]
	for i, want := range []int{2000, 2000, 2000, 0, 2000} {
		if e := got.Endpoints[i]; len(e.Ports) != want {
			t.Errorf("%s has %d ports, want %d", e.Hostname, len(e.Ports), want)
		}
	}
	if &got.Endpoints[1].Ports[0] != &got.Endpoints[2].Ports[0] {
		t.Error("two equal lists have two pointers")
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "more than 4000 different ports") {
		t.Errorf("warnings %q", got.Warnings)
	}
}

// TestNamesAndRulesAgree: an address has a name if and only if rules lead to it because it is
// ready, however many slices repeat it, whatever they say, and whichever of their ports differ.
func TestNamesAndRulesAgree(t *testing.T) {
	port := func(number int32) []discoveryv1.EndpointPort {
		return []discoveryv1.EndpointPort{{Name: new("http"), Port: &number}}
	}
	rapid.Check(t, func(t *rapid.T) {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}}
		svc.Spec = corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Name: "http", Port: 80}}}
		if rapid.Bool().Draw(t, "closed") {
			svc.Annotations = map[string]string{AnnotationKeys: `["zone"]`}
		}
		s := Snapshot{Node: "me", Nodes: map[string]labels.Set{"me": {"zone": "x"}, "far": {"zone": "y"}}, Services: []*corev1.Service{svc}}
		for i := range rapid.IntRange(1, 3).Draw(t, "slices") {
			slice := sliceOf("db", fmt.Sprintf("db-%d", i))
			slice.Ports = port(rapid.SampledFrom([]int32{80, 80, 81}).Draw(t, "port"))
			for range rapid.IntRange(0, 3).Draw(t, "endpoints") {
				slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
					Addresses: []string{rapid.SampledFrom([]string{"10.0.0.1", "10.0.0.2"}).Draw(t, "address")},
					NodeName:  new(rapid.SampledFrom([]string{"me", "me", "far"}).Draw(t, "node")),
					Hostname:  rapid.SampledFrom([]*string{nil, new("a"), new("b")}).Draw(t, "hostname"),
					Conditions: discoveryv1.EndpointConditions{
						Ready: new(rapid.Bool().Draw(t, "ready")), Serving: new(rapid.Bool().Draw(t, "serving")), Terminating: new(rapid.Bool().Draw(t, "terminating")),
					},
				})
			}
			s.Slices = append(s.Slices, NewSliceWithNames(slice))
		}
		named, ruled := map[netip.AddrPort]bool{}, map[netip.AddrPort]bool{}
		for _, e := range ResolveDNS(s, Config{}).Services[0].Endpoints {
			named[netip.AddrPortFrom(e.Addr, uint16(e.Ports[0].Number))] = true
		}
		for _, e := range Resolve(s, Config{}).Ports[0].Cluster {
			if e.Ready {
				ruled[e.Addr] = true
			}
		}
		if !maps.Equal(named, ruled) {
			t.Fatalf("named %v, ready in the rules %v", named, ruled)
		}
	})
}

// TestSharedAddress: two Pods of one address, such as two of the Node's own network, both have
// their names while one of them is ready and does not terminate, as far as they are ready.
func TestSharedAddress(t *testing.T) {
	entry := func(hostname string, ready, terminating bool) discoveryv1.Endpoint {
		conditions := discoveryv1.EndpointConditions{Ready: &ready, Serving: &ready, Terminating: &terminating}
		return discoveryv1.Endpoint{Addresses: []string{"10.0.0.1"}, Hostname: &hostname, Conditions: conditions}
	}
	for want, entries := range map[string][]discoveryv1.Endpoint{
		"a b": {entry("a", true, false), entry("b", true, false)},
		"a c": {entry("a", true, true), entry("b", false, false), entry("c", true, false)},
		"":    {entry("a", true, true), entry("b", false, false)},
		"a":   {entry("a", true, true), entry("b", false, true)},
	} {
		slice := sliceOf("db", "db-1")
		slice.Endpoints = entries
		s := Snapshot{Node: "me", Slices: []*Slice{NewSliceWithNames(slice)}}
		s.Services = []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}}
		if got := hostnamesOf(ResolveDNS(s, Config{}).Services[0]); got != want {
			t.Errorf("%q are named, want %q", got, want)
		}
	}
}

// TestOrderedNames: one key is in use for the Service as a whole.
func TestOrderedNames(t *testing.T) {
	s := Snapshot{Node: "me", Nodes: map[string]labels.Set{"me": {"rack": "r", "zone": "x"}, "near": {"zone": "x"}, "far": {}}, Namespaces: []string{"default"}}
	s.Services = []*corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "db", Annotations: map[string]string{AnnotationKeys: `["rack","zone","*"]`, AnnotationPolicy: "Ordered"},
		},
		Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone},
	}}
	for want, endpoints := range map[string][]string{
		"10-0-0-1":          {"10.0.0.1@me", "10.0.0.2@near", "10.0.0.3@far"},
		"10-0-0-2":          {"10.0.0.1@me unready", "10.0.0.2@near", "10.0.0.3@far"},
		"10-0-0-2 10-0-0-3": {"10.0.0.1@far unready", "10.0.0.2@far", "10.0.0.3@far"},
	} {
		first, second := sliceOf("db", "db-1", endpoints[0]), sliceOf("db", "db-2", endpoints[1:]...)
		second.Ports[0].Name = new("other") // one port's endpoints alone would choose another key
		s.Slices = []*Slice{NewSliceWithNames(first), NewSliceWithNames(second)}
		if got := hostnamesOf(ResolveDNS(s, Config{}).Services[0]); got != want {
			t.Errorf("%v: %s, want %s", endpoints, got, want)
		}
	}
}

// TestKindsOfNames: each kind of Service, bad input, and two Services on one cluster IP.
func TestKindsOfNames(t *testing.T) {
	named := func(name string, change func(*corev1.Service)) *corev1.Service {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		svc.Labels = map[string]string{LabelServiceProxyName: "other"} // is about rules
		svc.Spec.Ports = []corev1.ServicePort{{Name: "http", Port: 80}, {Name: "bad", Port: 70000}}
		change(svc)
		return svc
	}
	at := func(second int64) metav1.Time { return metav1.NewTime(time.Unix(second, 0)) }
	s := Snapshot{Node: "me", Services: []*corev1.Service{
		named("a", func(s *corev1.Service) {
			s.Spec.ClusterIPs, s.CreationTimestamp = []string{"10.96.0.1", "fd00::1"}, at(2)
		}),
		named("b", func(s *corev1.Service) { s.Spec.ClusterIP, s.CreationTimestamp = "10.96.0.1", at(1) }),
		named("c", func(s *corev1.Service) { s.Spec.ClusterIPs = []string{"fd00::1", "x"} }),
		named("d", func(s *corev1.Service) {
			s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "a.example."
		}),
		named("e", func(s *corev1.Service) { s.Spec.Type, s.Spec.ExternalName = corev1.ServiceTypeExternalName, "10.0.0.1" }),
	}}
	got := ResolveDNS(s, Config{}).Services
	want := map[string]string{
		"a": "ClusterIP [fd00::1] ", "b": "ClusterIP [10.96.0.1] ", "c": "ClusterIP [] ", "d": "ExternalName [] a.example", "e": "ExternalName [] ",
	}
	count := map[string]int{"a": 2, "b": 1, "c": 2, "d": 0, "e": 1}
	for _, svc := range got {
		if text := fmt.Sprint(svc.Kind, " ", svc.ClusterIPs, " ", svc.ExternalName); text != want[svc.Service.Name] || len(svc.Warnings) != count[svc.Service.Name] {
			t.Errorf("%s: %s, warnings %q; want %s, %d", svc.Service.Name, text, svc.Warnings, want[svc.Service.Name], count[svc.Service.Name])
		}
	}
	if ports := []dnsview.Port{{Name: "http", Protocol: "TCP", Number: 80}}; !cmp.Equal(got[0].Ports, ports) {
		t.Errorf("ports %v, want %v", got[0].Ports, ports)
	}
}

// TestNamesOfTheAPIServer: the node-local API proxy takes the place of the API servers in names as
// in rules.
func TestNamesOfTheAPIServer(t *testing.T) {
	slice := sliceOf("kubernetes", "kubernetes", "192.0.2.1")
	slice.Annotations = map[string]string{AnnotationLocalEndpoint: "169.254.20.11", AnnotationLocalPort: "51003"}
	proxy := netip.MustParseAddrPort("169.254.20.11:51003")
	for want, probed := range map[string]ProbedProxies{"169-254-20-11": {proxy: true}, "192-0-2-1": {}} {
		s := Snapshot{Node: "me", APIProxies: probed, Slices: []*Slice{NewSliceWithNames(slice)}, Services: []*corev1.Service{{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes", Annotations: map[string]string{AnnotationKeys: `["zone"]`}},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1"},
		}}}
		got := hostnamesOf(ResolveDNS(s, Config{NodesWithoutUnit: WithoutUnitOpen}).Services[0])
		if len(probed) == 0 {
			want = "" // this node is unknown: closed
		}
		if got != want {
			t.Errorf("proxies %v: %q, want %q", probed, got, want)
		}
	}
}

// TestAddrHostname has CoreDNS' names of addresses.
func TestAddrHostname(t *testing.T) {
	for text, want := range map[string]string{"10.0.0.1": "10-0-0-1", "fd00::1": "fd00--1", "fd00::": "fd00--0", "::1": "--1"} {
		if got := addrHostname(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// BenchmarkNamesOfLargeService decides about 16 slices of 1,000 endpoints and 100 ports.
func BenchmarkNamesOfLargeService(b *testing.B) {
	s := Snapshot{Node: "me", Nodes: map[string]labels.Set{"me": {}}, Namespaces: []string{"default"}}
	s.Services = []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "db"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}}
	for i := range 16 {
		var endpoints []string
		for n := range 1000 {
			endpoints = append(endpoints, fmt.Sprintf("10.%d.%d.%d@me", i, n/250, n%250))
		}
		slice := sliceOf("db", fmt.Sprintf("db-%d", i), endpoints...)
		slice.Ports = nil
		for n := range int32(100) {
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: new(fmt.Sprintf("port-%d", n)), Port: new(8000 + n)})
		}
		s.Slices = append(s.Slices, NewSliceWithNames(slice))
	}
	for b.Loop() {
		ResolveDNS(s, Config{})
	}
}
