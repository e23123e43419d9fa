package agreement

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// world is the seeds' little world: nodes with labels, addresses on nodes, one Service.
// Its valid domain is what the seeds describe: keys that are label keys, values that are
// not empty, a Service for every slice. Beyond it gridproxy differs on purpose.
type world struct {
	host  string
	nodes map[string]labels.Set
	addrs []located
	keys  []string
}

// located is an endpoint address; node "" = nodeName is not set.
type located struct {
	ip, node string
	notReady bool
}

// seedAlgorithm is what application-grid-wrapper does to the addresses of a Service: all
// without keys; none on a host that is not known; else those whose node is known and
// shares one of the keys' values with the host. Ready or not makes no difference.
func (w world) seedAlgorithm() []string {
	if len(w.keys) == 0 {
		return ips(w.addrs)
	}
	host, known := w.nodes[w.host]
	if !known {
		return nil
	}
	var kept []located
	for _, a := range w.addrs {
		theirs, known := w.nodes[a.node]
		if a.node == "" || !known {
			continue
		}
		for _, key := range w.keys {
			ours, ok1 := host[key]
			value, ok2 := theirs[key]
			if ok1 && ok2 && ours == value {
				kept = append(kept, a)
				break
			}
		}
	}
	return ips(kept)
}

func ips(all []located) []string {
	var out []string
	for _, a := range all {
		out = append(out, a.ip)
	}
	slices.Sort(out)
	return out
}

// cluster is the world as an API server has it, without Nodes: one Service, one EndpointSlice.
func (w world) cluster() Cluster {
	svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "svc", UID: "svc", Annotations: map[string]string{}}}
	if w.keys != nil {
		svc.Annotations[annotationKeys] = jsonList(w.keys)
	}
	svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "10.96.0.10", []string{"10.96.0.10"}
	svc.Spec.Ports = []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "svc-abcde", Labels: map[string]string{labelServiceName: "svc"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080)), Protocol: new(corev1.ProtocolTCP)}},
	}
	for _, a := range w.addrs {
		e := discoveryv1.Endpoint{Addresses: []string{a.ip}, Conditions: discoveryv1.EndpointConditions{Ready: new(!a.notReady)}}
		if a.node != "" {
			e.NodeName = new(a.node)
		}
		slice.Endpoints = append(slice.Endpoints, e)
	}
	return Cluster{Node: w.host, Services: []*corev1.Service{svc}, Slices: []*discoveryv1.EndpointSlice{slice}}
}

// read is what gridproxy reads of these objects.
func (w world) read(c Cluster) topology.Snapshot {
	s := topology.Snapshot{Node: w.host, Nodes: w.nodes, Services: c.Services}
	for _, slice := range c.Slices {
		s.Slices = append(s.Slices, topology.NewSlice(slice))
	}
	return s
}

func jsonList(keys []string) string {
	text := "["
	for i, key := range keys {
		if i > 0 {
			text += ","
		}
		text += fmt.Sprintf("%q", key)
	}
	return text + "]"
}

// resolved are the addresses that topology.Resolve keeps in the unit, and of them those
// that it lets be used.
func (w world) resolved() (kept, usable []string) {
	view := topology.Resolve(w.read(w.cluster()), topology.Config{})
	port := view.Ports[0]
	for _, a := range w.addrs {
		if !slices.ContainsFunc(view.Drops(port), func(d topology.Drop) bool { return d.Endpoint.Addr.Addr() == netip.MustParseAddr(a.ip) }) {
			kept = append(kept, a.ip)
		}
	}
	for _, e := range port.Cluster {
		usable = append(usable, e.Addr.Addr().String())
	}
	slices.Sort(kept)
	slices.Sort(usable)
	return kept, usable
}

// pruned are the addresses that Prune keeps: the oracle must know the seeds too.
func (w world) pruned() []string {
	c := w.cluster()
	for name, set := range w.nodes {
		c.Nodes = append(c.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: set}})
	}
	var kept []string
	for _, slice := range Prune(c) {
		for _, e := range slice.Endpoints {
			kept = append(kept, e.Addresses[0])
		}
	}
	slices.Sort(kept)
	return kept
}

// check holds gridproxy and the oracle against what the seeds' algorithm says.
func (w world) check(t interface{ Errorf(string, ...any) }, want []string) {
	kept, usable := w.resolved()
	if !slices.Equal(kept, want) {
		t.Errorf("Resolve keeps %v, the seeds' algorithm %v, in %+v", kept, want, w)
	}
	ready := slices.DeleteFunc(slices.Clone(want), func(ip string) bool {
		return slices.Contains(w.addrs, located{ip: ip, node: w.nodeOf(ip), notReady: true})
	})
	if !slices.Equal(usable, ready) {
		t.Errorf("Resolve uses %v, of the seeds' addresses %v are ready, in %+v", usable, ready, w)
	}
	if pruned := w.pruned(); !slices.Equal(pruned, want) {
		t.Errorf("Prune keeps %v, the seeds' algorithm %v, in %+v", pruned, want, w)
	}
}

func (w world) nodeOf(ip string) string {
	i := slices.IndexFunc(w.addrs, func(a located) bool { return a.ip == ip })
	return w.addrs[i].node
}

// TestSeedCases: the cases that the seeds and their tests tell of.
func TestSeedCases(t *testing.T) {
	manual := map[string]labels.Set{} // the six nodes of the manual
	for _, n := range []string{"1", "2", "3"} {
		manual["bj-"+n] = labels.Set{"location": "beijing"}
		manual["gz-"+n] = labels.Set{"location": "guangzhou"}
	}
	manual["master"] = labels.Set{}
	deployment := []located{{"10.0.0.70", "bj-1", false}, {"10.0.1.72", "bj-3", false}, {"10.0.0.139", "gz-2", false}, {"10.0.1.8", "gz-3", false}}
	statefulset := []located{{"10.0.0.67", "bj-1", false}, {"10.0.0.136", "gz-1", false}, {"10.0.0.138", "gz-2", false}, {"10.0.1.7", "gz-3", false}}
	small := map[string]labels.Set{"node0": {"zone1": "nodeunit1"}, "node1": {"zone1": "nodeunit2"}, "node2": {"zone1": "nodeunit2"}}
	echo := []located{{"10.0.0.1", "node0", false}, {"10.0.0.2", "node1", false}, {"10.0.0.3", "node2", false}}
	pair := func(ours, theirs labels.Set) world {
		return world{host: "host", nodes: map[string]labels.Set{"host": ours, "peer": theirs}, addrs: []located{{"10.0.0.1", "peer", false}}, keys: []string{"zone"}}
	}
	twoKeys := pair(labels.Set{"foo": "1", "bar": "2"}, labels.Set{"foo": "9", "bar": "2"})
	twoKeys.keys = []string{"foo", "bar"}
	unknownHost := pair(labels.Set{"zone": "a"}, labels.Set{"zone": "a"})
	unknownHost.host = "elsewhere"
	unknownNode := pair(labels.Set{"zone": "a"}, labels.Set{"zone": "a"})
	unknownNode.addrs = []located{{"10.0.0.1", "elsewhere", false}, {"10.0.0.2", "", false}}
	notReady := pair(labels.Set{"zone": "a"}, labels.Set{"zone": "a"})
	notReady.addrs[0].notReady = true
	emptyList := pair(nil, nil)
	emptyList.keys = []string{}
	open := pair(nil, nil)
	open.keys = nil

	for _, tc := range []struct {
		name  string
		world world
		want  []string
	}{
		{"manual, Beijing", world{"bj-2", manual, deployment, []string{"location"}}, []string{"10.0.0.70", "10.0.1.72"}},
		{"manual, Guangzhou", world{"gz-1", manual, deployment, []string{"location"}}, []string{"10.0.0.139", "10.0.1.8"}},
		{"manual, a node without the label", world{"master", manual, deployment, []string{"location"}}, nil},
		{"manual, StatefulSet in Guangzhou", world{"gz-3", manual, statefulset, []string{"location"}}, []string{"10.0.0.136", "10.0.0.138", "10.0.1.7"}},
		{"three nodes, alone in its unit", world{"node0", small, echo, []string{"zone1"}}, []string{"10.0.0.1"}},
		{"three nodes, two in a unit", world{"node1", small, echo, []string{"zone1"}}, []string{"10.0.0.2", "10.0.0.3"}},
		{"same value", pair(labels.Set{"zone": "a"}, labels.Set{"zone": "a"}), []string{"10.0.0.1"}},
		{"other value", pair(labels.Set{"zone": "a"}, labels.Set{"zone": "b"}), nil},
		{"endpoint's node unlabelled", pair(labels.Set{"zone": "a"}, nil), nil},
		{"host unlabelled", pair(nil, labels.Set{"zone": "a"}), nil},
		{"neither labelled", pair(nil, nil), nil},
		{"host unknown", unknownHost, nil},
		{"endpoint's node unknown, nodeName not set", unknownNode, nil},
		{"two keys, the second matches", twoKeys, []string{"10.0.0.1"}},
		{"not ready, same unit", notReady, []string{"10.0.0.1"}},
		{"no annotation", open, []string{"10.0.0.1"}},
		{"empty list", emptyList, []string{"10.0.0.1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			want := slices.Sorted(slices.Values(tc.want))
			if got := tc.world.seedAlgorithm(); !slices.Equal(got, want) {
				t.Fatalf("the seeds' algorithm keeps %v, want %v", got, want)
			}
			tc.world.check(t, want)
		})
	}
}

// TestSeedAlgorithm: on its valid domain gridproxy keeps exactly the addresses that the
// seeds' algorithm keeps.
func TestSeedAlgorithm(t *testing.T) {
	kept := 0
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c", "d"}
		keys := []string{"location", "zone1", "example.com/rack"}
		w := world{host: rapid.SampledFrom(append(names, "a", "b", "ghost")).Draw(t, "host"), nodes: map[string]labels.Set{}}
		for _, name := range names {
			if rapid.IntRange(0, 9).Draw(t, name) == 0 {
				continue
			}
			w.nodes[name] = rapid.MapOfN(rapid.SampledFrom(keys), rapid.SampledFrom([]string{"x", "y", "z"}), 0, 3).Draw(t, "labels of "+name)
		}
		for i := range rapid.IntRange(0, 8).Draw(t, "addresses") {
			w.addrs = append(w.addrs, located{
				ip:       fmt.Sprintf("10.0.0.%d", i+1),
				node:     rapid.SampledFrom(append(names, "", "ghost")).Draw(t, "node"),
				notReady: rapid.IntRange(0, 3).Draw(t, "not ready") == 0,
			})
		}
		w.keys = rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 3, rapid.ID[string]).Draw(t, "keys")
		want := w.seedAlgorithm()
		kept += len(want)
		w.check(t, want)
	})
	if kept == 0 {
		t.Error("nothing was ever kept: the worlds drawn test nothing")
	}
}

// TestSeedChanges: what the seeds' caches announce when a node's or a Service's labels
// change, one changed Service each time, is what a Memo computes anew.
func TestSeedChanges(t *testing.T) {
	w := world{
		host:  "hostname",
		nodes: map[string]labels.Set{"hostname": {"region": "1"}, "node-1": {"region": "1"}, "node-2": {"region": "2"}},
		addrs: []located{{"10.0.0.1", "hostname", false}, {"10.0.0.2", "node-1", false}, {"10.0.0.3", "node-2", false}},
	}
	s := twoServices(w)
	all := "10.0.0.1 10.0.0.2 10.0.0.3"
	var memo topology.Memo
	view := memo.Resolve(s, topology.Config{})
	expect(t, "at first", view, all, "10.0.0.1 10.0.0.2")

	relabel := func(node, value string) {
		s.Nodes = maps.Clone(s.Nodes)
		s.Nodes[node] = labels.Set{"region": value}
	}
	annotate := func(service int, key, value string) {
		s.Services = slices.Clone(s.Services)
		s.Services[service] = s.Services[service].DeepCopy()
		s.Services[service].Annotations[key] = value
	}
	for _, step := range []struct {
		name     string
		change   func()
		no, with string // addresses of no-region and of region-1
		changed  []string
	}{
		{"the host moves to region 2", func() { relabel("hostname", "2") }, all, "10.0.0.1 10.0.0.3", []string{"region-1"}},
		{"node-2 moves to region 3", func() { relabel("node-2", "3") }, all, "10.0.0.1", []string{"region-1"}},
		{"the host is back, node-2 too", func() { relabel("hostname", "1"); relabel("node-2", "2") }, all, "10.0.0.1 10.0.0.2", []string{"region-1"}},
		{"another annotation changes", func() { annotate(0, "unrelated", "x") }, all, "10.0.0.1 10.0.0.2", nil},
		{"no-region gets the key", func() { annotate(0, annotationKeys, `["region"]`) }, "10.0.0.1 10.0.0.2", "10.0.0.1 10.0.0.2", []string{"no-region"}},
	} {
		step.change()
		next := memo.Resolve(s, topology.Config{})
		expect(t, step.name, next, step.no, step.with)
		if got := changed(view, next); !slices.Equal(got, step.changed) {
			t.Errorf("%s: changed %v, want %v", step.name, got, step.changed)
		}
		view = next
	}
}

// twoServices are no-region, which is open, and region-1, which is closed by region.
func twoServices(w world) topology.Snapshot {
	c := w.cluster()
	svc, slice := c.Services[0], c.Slices[0]
	c.Services, c.Slices = nil, nil
	for i, name := range []string{"no-region", "region-1"} {
		svc, slice := svc.DeepCopy(), slice.DeepCopy()
		svc.Name, svc.UID, svc.Spec.ClusterIP = name, types.UID(name), fmt.Sprintf("10.96.0.%d", 10+i)
		svc.Spec.ClusterIPs = []string{svc.Spec.ClusterIP}
		slice.Name, slice.Labels[labelServiceName] = name+"-abcde", name
		c.Services, c.Slices = append(c.Services, svc), append(c.Slices, slice)
	}
	c.Services[1].Annotations[annotationKeys] = `["region"]`
	return w.read(c)
}

func expect(t *testing.T, when string, view topology.View, want ...string) {
	t.Helper()
	for i, port := range view.Ports {
		if got := addresses(port); got != want[i] {
			t.Errorf("%s: %s has %q, want %q", when, port.Name, got, want[i])
		}
	}
}

func addresses(port *topology.ServicePort) string {
	text := ""
	for i, e := range port.Cluster {
		if i > 0 {
			text += " "
		}
		text += e.Addr.Addr().String()
	}
	return text
}

// changed names the Services whose endpoints are others than before.
func changed(before, after topology.View) []string {
	var names []string
	for i, port := range after.Ports {
		if addresses(before.Ports[i]) != addresses(port) {
			names = append(names, port.Name.Name)
		}
	}
	return names
}
