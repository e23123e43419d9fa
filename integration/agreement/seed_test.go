package agreement

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
