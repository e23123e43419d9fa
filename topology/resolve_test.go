package topology

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// cluster builds a Snapshot from words, for one Service "default/svc" on port 80.
type cluster struct {
	node      string
	nodes     string   // "a zone=x, b zone=y rack=1"
	keys      string   // annotation; "-" = absent
	policy    string   // annotation; "" = absent
	endpoints []string // "10.0.0.1@a ready|unready|draining|gone"
	lastKeys  []string
	config    Config
}

func (c cluster) snapshot() Snapshot {
	s := Snapshot{Node: c.node, Nodes: map[string]labels.Set{}, LastKeys: map[types.UID][]string{}}
	for _, text := range strings.Split(c.nodes, ", ") {
		words := strings.Fields(text)
		set := labels.Set{}
		for _, w := range words[min(1, len(words)):] {
			key, value, _ := strings.Cut(w, "=")
			set[key] = value
		}
		if len(words) > 0 {
			s.Nodes[words[0]] = set
		}
	}
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "svc", UID: "uid", Annotations: map[string]string{}},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Port: 80}}},
	}
	if c.keys != "-" {
		svc.Annotations[AnnotationKeys] = c.keys
	}
	if c.policy != "" {
		svc.Annotations[AnnotationPolicy] = c.policy
	}
	s.LastKeys["uid"] = c.lastKeys
	s.Services = []*corev1.Service{svc}
	s.Slices = readSlices(sliceOf("svc", "any-name", c.endpoints...))
	return s
}

func readSlices(all ...*discoveryv1.EndpointSlice) (read []*Slice) {
	for _, s := range all {
		read = append(read, NewSlice(s))
	}
	return read
}

func sliceOf(service, name string, endpoints ...string) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080))}},
	}
	for _, text := range endpoints {
		where, state, _ := strings.Cut(text, " ")
		address, node, _ := strings.Cut(where, "@")
		e := discoveryv1.Endpoint{Addresses: []string{address}}
		if node != "" {
			e.NodeName = &node
		}
		switch state {
		case "unready":
			e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}
		case "draining":
			e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(true), Terminating: new(true)}
		case "gone":
			e.Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(true)}
		}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	return slice
}

func addressesOf(all []Endpoint) string {
	var out []string
	for _, e := range all {
		out = append(out, e.Addr.Addr().String())
	}
	return strings.Join(out, " ")
}

func TestClosure(t *testing.T) {
	const abc, everywhere = "a zone=x, b zone=x, c zone=y, d", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4 10.0.0.5 10.0.0.6"
	open := Config{NodesWithoutUnit: WithoutUnitOpen}
	all := []string{"10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@c", "10.0.0.4@d", "10.0.0.5@ghost", "10.0.0.6"}
	for _, tc := range []struct {
		name    string
		cluster cluster
		want    string
	}{
		{"ordinary", cluster{node: "a", nodes: abc, keys: "-"}, everywhere},
		{"empty list is ordinary", cluster{node: "a", nodes: abc, keys: "[]"}, everywhere},
		{"one unit", cluster{node: "a", nodes: abc, keys: `["zone"]`}, "10.0.0.1 10.0.0.2"},
		{"other unit", cluster{node: "c", nodes: abc, keys: `["zone"]`}, "10.0.0.3"},
		{"node without unit", cluster{node: "d", nodes: abc, keys: `["zone"]`}, ""},
		{"node without unit, local", cluster{node: "d", nodes: abc, keys: `["zone"]`, config: Config{NodesWithoutUnit: WithoutUnitLocal}}, "10.0.0.4"},
		{"node without unit, open", cluster{node: "d", nodes: abc, keys: `["zone"]`, config: open}, everywhere},
		{"open changes nothing for a node with unit", cluster{node: "a", nodes: abc, keys: `["zone"]`, config: open}, "10.0.0.1 10.0.0.2"},
		{"unknown node", cluster{node: "ghost", nodes: abc, keys: `["zone"]`}, ""},
		{"unknown node stays closed under open", cluster{node: "ghost", nodes: abc, keys: `["zone"]`, config: open}, ""},
		{"unknown node, ordinary Service", cluster{node: "ghost", nodes: abc, keys: "-"}, everywhere},
		{"empty values are no unit", cluster{node: "a", nodes: "a zone=, b zone=", keys: `["zone"]`}, ""},
		{"malformed, never good", cluster{node: "a", nodes: abc, keys: `["zone"`}, "10.0.0.1"},
		{"malformed, never good, unknown node", cluster{node: "ghost", nodes: abc, keys: `["zone"`}, "10.0.0.5"},
		{"malformed, last good keys", cluster{node: "a", nodes: abc, keys: `["zone"`, lastKeys: []string{"zone"}}, "10.0.0.1 10.0.0.2"},
		{"last good keys do not outlive a good annotation", cluster{node: "a", nodes: abc, keys: `["rack"]`, lastKeys: []string{"zone"}}, ""},
		{"star without Ordered never opens", cluster{node: "a", nodes: abc, keys: `["zone","*"]`}, "10.0.0.1"},
		{"unknown policy never opens", cluster{node: "a", nodes: abc, keys: `["zone"]`, policy: "Some"}, "10.0.0.1"},
		{"ordered, first key", cluster{node: "a", nodes: "a zone=x rack=1, b zone=x rack=2, c zone=x rack=1, d", keys: `["rack","zone"]`, policy: "Ordered"}, "10.0.0.1 10.0.0.3"},
		{"ordered, star", cluster{node: "d", nodes: abc, keys: `["zone","*"]`, policy: "Ordered"}, everywhere},
		{"ordered, star, unknown node", cluster{node: "ghost", nodes: abc, keys: `["zone","*"]`, policy: "Ordered"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.cluster.endpoints = all
			view := Resolve(tc.cluster.snapshot(), tc.cluster.config)
			if got := addressesOf(view.Ports[0].Cluster); got != tc.want {
				t.Errorf("endpoints = %q, want %q; closure %+v", got, tc.want, view.Ports[0].Closure)
			}
		})
	}
}

func TestOrderedPrefersReadyThenDraining(t *testing.T) {
	nodes := "a rack=1 zone=x, b rack=1 zone=x, c rack=2 zone=x"
	for _, tc := range []struct {
		name      string
		endpoints []string
		want      string
		inUse     string
	}{
		{"ready under the first key", []string{"10.0.0.2@b", "10.0.0.3@c"}, "10.0.0.2", "rack"},
		{"a ready one further away beats a draining one near", []string{"10.0.0.2@b draining", "10.0.0.3@c"}, "10.0.0.3", "zone"},
		{"draining ones only: the nearest", []string{"10.0.0.2@b draining", "10.0.0.3@c draining"}, "10.0.0.2", "rack"},
		{"none usable", []string{"10.0.0.2@b unready", "10.0.0.3@c gone"}, "", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster{node: "a", nodes: nodes, keys: `["rack","zone"]`, policy: "Ordered", endpoints: tc.endpoints}
			sp := Resolve(c.snapshot(), Config{}).Ports[0]
			if got := addressesOf(sp.Cluster); got != tc.want || sp.Closure.KeyInUse != tc.inUse {
				t.Errorf("endpoints = %q by key %q, want %q by %q", got, sp.Closure.KeyInUse, tc.want, tc.inUse)
			}
		})
	}
}

func TestReadiness(t *testing.T) {
	for _, tc := range []struct {
		name, cluster, local, serving string
		endpoints                     []string
		ready                         int
	}{
		{"ready wins", "10.0.0.1 10.0.0.2", "10.0.0.1", "10.0.0.1 10.0.0.2 10.0.0.3", []string{"10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@b draining", "10.0.0.4@a unready"}, 1},
		{"fallback to draining, in the unit only", "10.0.0.1 10.0.0.2", "10.0.0.1", "10.0.0.1 10.0.0.2", []string{"10.0.0.1@a draining", "10.0.0.2@b draining", "10.0.0.3@c"}, 0},
		{"local falls back by itself", "10.0.0.2", "10.0.0.1", "10.0.0.1 10.0.0.2", []string{"10.0.0.1@a draining", "10.0.0.2@b"}, 0},
		{"nothing usable", "", "", "", []string{"10.0.0.1@a unready", "10.0.0.2@b gone"}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := cluster{node: "a", nodes: "a zone=x, b zone=x, c zone=y", keys: `["zone"]`, endpoints: tc.endpoints}
			view := Resolve(c.snapshot(), Config{})
			sp := view.Ports[0]
			var serving []string
			for _, a := range sp.Serving {
				serving = append(serving, a.Addr().String())
			}
			if addressesOf(sp.Cluster) != tc.cluster || addressesOf(sp.Local) != tc.local || strings.Join(serving, " ") != tc.serving {
				t.Errorf("cluster %q local %q serving %q", addressesOf(sp.Cluster), addressesOf(sp.Local), serving)
			}
			if got := sp.ReadyLocal.IPv4; got != tc.ready {
				t.Errorf("ready on this node = %d, want %d", got, tc.ready)
			}
		})
	}
}

// A terminating endpoint must not hide the Pod that has its address now, whichever slice
// comes first; and one outside of the unit must not hide one inside.
func TestSameAddressTwice(t *testing.T) {
	const here, gone, outside = "10.0.0.1@a", "10.0.0.1@a gone", "10.0.0.1@c"
	for _, order := range [][2]string{{here, gone}, {gone, here}, {here, outside}, {outside, here}} {
		c := cluster{node: "a", nodes: "a zone=x, c zone=y", keys: `["zone"]`}
		s := c.snapshot()
		s.Slices = readSlices(sliceOf("svc", "1", order[0]), sliceOf("svc", "2", order[1]))
		if got := addressesOf(Resolve(s, Config{}).Ports[0].Cluster); got != "10.0.0.1" {
			t.Errorf("%v: endpoints = %q", order, got)
		}
	}
}

// A slice belongs to the Service of its label (SuperEdge bug W-01 went by its name).
func TestSliceBelongsToItsLabel(t *testing.T) {
	c := cluster{node: "a", nodes: "a zone=x, c zone=y", keys: `["zone"]`}
	s := c.snapshot()
	s.Slices = readSlices(
		sliceOf("svc", "web-manual-1", "10.0.0.1@a", "10.0.0.3@c"),
		sliceOf("other", "svc-abcde", "10.0.0.9@a"),
	)
	if got := addressesOf(Resolve(s, Config{}).Ports[0].Cluster); got != "10.0.0.1" {
		t.Errorf("endpoints = %q, want only 10.0.0.1", got)
	}
}

func TestHints(t *testing.T) {
	c := cluster{node: "a", nodes: "a topology.kubernetes.io/zone=x, b topology.kubernetes.io/zone=x, c topology.kubernetes.io/zone=y", keys: "-",
		endpoints: []string{"10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@c"}}
	resolve := func(hints ...discoveryv1.EndpointHints) string {
		s, slice := c.snapshot(), sliceOf("svc", "any-name", c.endpoints...)
		for i := range hints {
			slice.Endpoints[i].Hints = &hints[i]
		}
		s.Slices = readSlices(slice)
		return addressesOf(Resolve(s, Config{}).Ports[0].Cluster)
	}
	zone := func(z string) discoveryv1.EndpointHints {
		return discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: z}}}
	}
	both := func(z, n string) discoveryv1.EndpointHints {
		h := zone(z)
		h.ForNodes = []discoveryv1.ForNode{{Name: n}}
		return h
	}
	const everywhere = "10.0.0.1 10.0.0.2 10.0.0.3"
	if got := resolve(zone("x"), zone("x"), zone("y")); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("zone hints on all: %q", got)
	}
	if got := resolve(zone("x"), zone("x")); got != everywhere {
		t.Errorf("one endpoint without hint turns hints off: %q", got)
	}
	if got := resolve(zone("y"), zone("y"), zone("y")); got != everywhere {
		t.Errorf("no hint for this zone turns hints off: %q", got)
	}
	if got := resolve(both("x", "a"), both("x", "b"), both("y", "c")); got != "10.0.0.1" {
		t.Errorf("node hints come before zone hints: %q", got)
	}
}

func TestLocalAPIServer(t *testing.T) {
	s := Snapshot{Node: "a", Nodes: map[string]labels.Set{"a": {}}}
	s.Services = []*corev1.Service{{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"},
		Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1", Ports: []corev1.ServicePort{{Name: "https", Port: 443}}},
	}}
	resolve := func(annotations map[string]string) string {
		slice := sliceOf("kubernetes", "kubernetes", "192.168.0.10")
		slice.Ports[0].Name = new("https")
		slice.Annotations = annotations
		s.Slices = readSlices(slice)
		var out []string
		for _, e := range Resolve(s, Config{}).Ports[0].Cluster {
			out = append(out, e.Addr.String())
		}
		return strings.Join(out, " ")
	}
	with := func(ip, port string) map[string]string {
		return map[string]string{AnnotationLocalEndpoint: ip, AnnotationLocalPort: port}
	}
	const masters = "192.168.0.10:8080"
	for name, tc := range map[string]struct {
		annotations map[string]string
		want        string
	}{
		"set":          {with("169.254.20.11", "51003"), "169.254.20.11:51003"},
		"none":         {nil, masters},
		"no port":      {map[string]string{AnnotationLocalEndpoint: "169.254.20.11"}, masters},
		"bad port":     {with("169.254.20.11", "http"), masters},
		"bad address":  {with("nowhere", "51003"), masters},
		"other family": {with("fd00::1", "51003"), masters},
	} {
		if got := resolve(tc.annotations); got != tc.want {
			t.Errorf("%s: endpoints = %q, want %q", name, got, tc.want)
		}
	}
	proxy, other := netip.MustParseAddrPort("169.254.20.11:51003"), netip.MustParseAddrPort("169.254.20.11:51004")
	for name, tc := range map[string]struct {
		probed ProbedProxies
		want   string
	}{
		"answers":                   {ProbedProxies{proxy: true}, proxy.String()},
		"does not answer":           {ProbedProxies{proxy: false}, masters},
		"another one answers":       {ProbedProxies{other: true}, masters},
		"none is known to answer":   {ProbedProxies{}, masters},
		"this process does not ask": {nil, proxy.String()},
	} {
		s.APIProxies = tc.probed
		if got := resolve(with("169.254.20.11", "51003")); got != tc.want {
			t.Errorf("the API proxy %s: endpoints = %q, want %q", name, got, tc.want)
		}
		if got := addressesOf(Endpoints(s, Resolve(s, Config{}).Ports[0].Name)); !strings.HasPrefix(tc.want, got+":") {
			t.Errorf("the API proxy %s: all endpoints = %q, want that of %q", name, got, tc.want)
		}
	}
	if got := APIProxies(append(s.Slices, s.Slices...)); !slices.Equal(got, []netip.AddrPort{proxy}) {
		t.Errorf("API proxies that are named: %v", got)
	}
}

func TestLeftOutServices(t *testing.T) {
	for name, change := range map[string]func(*corev1.Service){
		"handed to another proxy": func(s *corev1.Service) { s.Labels = map[string]string{LabelServiceProxyName: ""} },
		"headless":                func(s *corev1.Service) { s.Spec.ClusterIP = "None" },
		"no cluster IP":           func(s *corev1.Service) { s.Spec.ClusterIP = "" },
		"external name":           func(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeExternalName },
	} {
		s := cluster{node: "a", nodes: "a", keys: "-"}.snapshot()
		change(s.Services[0])
		if ports := Resolve(s, Config{}).Ports; len(ports) != 0 {
			t.Errorf("%s: served: %v", name, ports[0].Name)
		}
	}
}

// TestHeadlessLabel: the label counts on EndpointSlices only. The EndpointSlice controller does not
// copy it from a Service with a cluster IP, so kube-proxy serves such a Service.
func TestHeadlessLabel(t *testing.T) {
	for value, proxy := range map[string]string{"": "", "true": "trial"} {
		s := cluster{node: "a", nodes: "a u=1, b u=2", keys: `["u"]`, endpoints: []string{"10.0.0.1@a ready", "10.0.0.2@b ready"}}.snapshot()
		c := Config{ServiceProxyName: proxy}
		s.Services[0].Labels = map[string]string{LabelHeadless: value}
		if proxy != "" {
			s.Services[0].Labels[LabelServiceProxyName] = proxy
		}
		if ports := Resolve(s, c).Ports; len(ports) != 1 || addressesOf(ports[0].Cluster) != "10.0.0.1" {
			t.Errorf("%q on the Service: got %v, want it served with the endpoint of its unit", value, ports)
		}
		slice := sliceOf("svc", "any-name", "10.0.0.1@a")
		slice.Labels[LabelHeadless] = value
		s.Slices = readSlices(slice)
		if ports := Resolve(s, c).Ports; len(ports) != 1 || len(ports[0].Cluster) != 0 {
			t.Errorf("%q on the slice: got %v, want the Service without endpoints", value, ports)
		}
	}
}

// A proxy serves the Services that are handed to it and no other, whatever the label of a slice
// says.
func TestServiceProxyName(t *testing.T) {
	for _, tc := range []struct {
		proxy          string
		service, slice *string // value of the label
		want           int     // endpoints; -1 = not served
	}{
		{"", nil, nil, 1},
		{"", nil, new("grid"), 1}, // the label is not removed yet, or never was the Service's
		{"", nil, new(""), 1},
		{"", new("grid"), new("grid"), -1},
		{"grid", new("grid"), new("grid"), 1},
		{"grid", new("grid"), nil, 1}, // the label is not copied yet
		{"grid", new("grid"), new("other"), 1},
		{"grid", new("other"), new("grid"), -1},
		{"grid", new(""), nil, -1},
		{"grid", nil, nil, -1},
	} {
		s := cluster{node: "a", nodes: "a", keys: "-", endpoints: []string{"10.0.0.1@a ready"}}.snapshot()
		label := func(value *string, to *metav1.ObjectMeta) {
			if value != nil {
				metav1.SetMetaDataLabel(to, LabelServiceProxyName, *value)
			}
		}
		label(tc.service, &s.Services[0].ObjectMeta)
		slice := sliceOf("svc", "any-name", "10.0.0.1@a")
		label(tc.slice, &slice.ObjectMeta)
		s.Slices = readSlices(slice)
		got := -1
		c := Config{ServiceProxyName: tc.proxy}
		if ports := Resolve(s, c).Ports; len(ports) > 0 {
			got = len(ports[0].Cluster)
			if all := Endpoints(s, ports[0].Name); len(all) != got {
				t.Errorf("%+v: Endpoints has %d, the Service uses %d", tc, len(all), got)
			}
		}
		if got != tc.want {
			t.Errorf("proxy %q, labels %v of the Service and %v of its slice: %d endpoints, want %d", tc.proxy, tc.service, tc.slice, got, tc.want)
		}
	}
}

func TestReasons(t *testing.T) {
	c := cluster{node: "a", nodes: "a zone=x, c zone=y, d", keys: `["zone"]`,
		endpoints: []string{"10.0.0.1@a", "10.0.0.3@c", "10.0.0.4@d", "10.0.0.5@ghost", "10.0.0.6"}}
	var got []string
	view := Resolve(c.snapshot(), Config{})
	for _, d := range view.Drops(view.Ports[0]) {
		got = append(got, fmt.Sprintf("%s: %s", d.Endpoint.Addr.Addr(), d.Reason))
	}
	want := []string{"10.0.0.3: other unit", "10.0.0.4: its node has no unit", "10.0.0.5: its node is unknown", "10.0.0.6: no nodeName"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-want +got):\n%s", diff)
	}
}

func TestNodeFacts(t *testing.T) {
	node := &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: []string{"10.244.1.0/24", "bad", "fd00:244:1::/64"}}}
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: "a"}, {Type: corev1.NodeExternalIP, Address: "203.0.113.1"},
		{Type: corev1.NodeInternalIP, Address: "192.168.0.2"}, {Type: corev1.NodeInternalIP, Address: "fd00::2"},
	}
	view := Resolve(Snapshot{Node: "a", Self: node, Host: HostOfNode(node)}, Config{})
	if got := fmt.Sprint(view.Self.IPs); got != "[192.168.0.2 fd00::2 203.0.113.1]" {
		t.Errorf("IPs = %s", got)
	}
	if got := fmt.Sprint(view.Self.PodCIDRs); got != "[10.244.1.0/24 fd00:244:1::/64]" {
		t.Errorf("PodCIDRs = %s", got)
	}
	if got := fmt.Sprint(view.Self.HostAddrs); got != "[127.0.0.1 192.168.0.2 203.0.113.1 ::1 fd00::2]" {
		t.Errorf("HostAddrs = %s", got)
	}
}
