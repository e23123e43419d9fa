package watch

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"
	"gridproxy/topology"
	"gridproxy/topology/object"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// These tests run a Cluster on client-go's fakes, which have neither field selectors nor versions
// nor a network: only what a Cluster makes of events is tested here. integration/node has the real
// API server.

// fakeCluster is a running Cluster and the fakes behind it. Versions are counted by hand.
type fakeCluster struct {
	*Cluster
	t        *testing.T
	typed    *fake.Clientset
	metadata *metadatafake.FakeMetadataClient
	version  int
}

func startCluster(t *testing.T) *fakeCluster {
	t.Helper()
	return startClusterWith(t, ClusterConfig{Node: "n1"})
}

func startClusterWith(t *testing.T, c ClusterConfig) *fakeCluster {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	must(t, metav1.AddMetaToScheme(scheme))
	f := &fakeCluster{t: t, typed: fake.NewClientset(), metadata: metadatafake.NewSimpleMetadataClient(scheme)}
	var err error
	if f.Cluster, err = newClusterWithClients(c, clients{
		services: listerOf(f.typed.CoreV1().Services("")),
		slices:   listerOf(f.typed.DiscoveryV1().EndpointSlices("")),
		node:     listerOf(f.typed.CoreV1().Nodes()),
		metadata: f.metadata,
	}); err != nil {
		t.Fatal(err)
	}
	return f
}

func (f *fakeCluster) run() {
	f.t.Helper()
	start(f.t, f.Run)
	wait.Until(f.t, "a Snapshot", func() error {
		_, whole := f.Snapshot()
		return wait.Check(whole, "none")
	})
}

func (f *fakeCluster) meta(name string) metav1.ObjectMeta {
	f.version++
	return metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: fmt.Sprint(f.version), ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "m"}}}
}

func (f *fakeCluster) service(name, ip string) *corev1.Service {
	return &corev1.Service{ObjectMeta: f.meta(name), Spec: corev1.ServiceSpec{ClusterIP: ip, ClusterIPs: []string{ip}, Selector: map[string]string{"app": name}}}
}

// closedService names key unit, so that Nodes are watched.
func (f *fakeCluster) closedService(name, ip string) *corev1.Service {
	s := f.service(name, ip)
	s.Annotations = map[string]string{topology.AnnotationKeys: `["unit"]`}
	return s
}

// node is a node as the typed client has it and as the metadata client has it.
func (f *fakeCluster) node(name, unit, heartbeat string) (*corev1.Node, *metav1.PartialObjectMetadata) {
	meta := f.meta(name)
	meta.Namespace, meta.Labels, meta.Annotations = "", map[string]string{"unit": unit}, map[string]string{"beat": heartbeat}
	return &corev1.Node{ObjectMeta: meta, Status: corev1.NodeStatus{Images: []corev1.ContainerImage{{Names: []string{heartbeat}}}}},
		&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: meta}
}

func (f *fakeCluster) must(_ any, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fakeCluster) putNode(verb func(gvr runtime.Object) error, name, unit, heartbeat string) {
	typed, meta := f.node(name, unit, heartbeat)
	if name == "n1" {
		f.must(nil, verb(typed))
	}
	f.must(nil, verb(meta))
}

var nodesResource = corev1.SchemeGroupVersion.WithResource("nodes")

func (f *fakeCluster) create(o runtime.Object) error {
	if _, isMeta := o.(*metav1.PartialObjectMetadata); isMeta {
		return f.metadata.Tracker().Create(nodesResource, o, "")
	}
	return f.typed.Tracker().Create(nodesResource, o, "")
}

func (f *fakeCluster) update(o runtime.Object) error {
	if _, isMeta := o.(*metav1.PartialObjectMetadata); isMeta {
		return f.metadata.Tracker().Update(nodesResource, o, "")
	}
	return f.typed.Tracker().Update(nodesResource, o, "")
}

func TestClusterFollows(t *testing.T) {
	f := startCluster(t)
	services := f.typed.CoreV1().Services("ns")
	f.must(services.Create(t.Context(), f.closedService("b", "10.0.0.2"), metav1.CreateOptions{}))
	f.must(services.Create(t.Context(), f.service("c", "10.0.0.3"), metav1.CreateOptions{}))
	f.must(f.typed.DiscoveryV1().EndpointSlices("ns").Create(t.Context(), &discoveryv1.EndpointSlice{ObjectMeta: f.meta("b-1")}, metav1.CreateOptions{}))
	f.putNode(f.create, "n2", "x", "1")
	if _, whole := f.Snapshot(); whole {
		t.Error("a Snapshot before anything was read")
	}
	f.run()
	s, _ := f.Snapshot()
	if len(s.Services) != 2 || len(s.Slices) != 1 || len(s.Nodes) != 0 || s.Watched == nil || s.Self != nil || s.Node != "n1" {
		t.Errorf("the first Snapshot is %+v", s)
	}
	f.must(services.Create(t.Context(), f.service("a", "10.0.0.1"), metav1.CreateOptions{}))
	f.must(services.Update(t.Context(), f.closedService("b", "10.0.0.22"), metav1.UpdateOptions{}))
	f.must(nil, services.Delete(t.Context(), "c", metav1.DeleteOptions{}))
	f.putNode(f.create, "n1", "x", "1")
	wait.Until(t, "all changes", func() error {
		s, _ := f.Snapshot()
		var got []string
		for _, svc := range s.Services {
			got = append(got, svc.Name+"="+svc.Spec.ClusterIP)
		}
		text := strings.Join(got, " ")
		known := s.Self != nil && s.Nodes["n1"]["unit"] == "x" && s.Nodes["n2"]["unit"] == "x" && s.Watched["unit"]
		return wait.Check(text == "a=10.0.0.1 b=10.0.0.22" && known, "%s %v %v %v", text, s.Self, s.Nodes, s.Watched)
	})
}

// TestClusterWithoutNode: the first Snapshot has all Nodes, whatever Services name.
func TestClusterWithoutNode(t *testing.T) {
	f := startClusterWith(t, ClusterConfig{})
	f.putNode(f.create, "n2", "x", "1")
	f.putNode(f.create, "n3", "y", "1")
	f.run()
	s, _ := f.Snapshot()
	if s.Node != "" || s.Self != nil || s.Watched != nil || len(s.Nodes) != 2 || s.Nodes["n2"]["unit"] != "x" || s.Nodes["n3"]["unit"] != "y" {
		t.Errorf("the first Snapshot is %+v", s)
	}
}

// TestClusterIsSilent: a change of what a Snapshot does not hold changes no pointer and sends no
// signal. The marker follows it in the same watch, so that everything before it has been handled
// once it is seen.
func TestClusterIsSilent(t *testing.T) {
	f := startCluster(t)
	services := f.typed.CoreV1().Services("ns")
	f.must(services.Create(t.Context(), f.closedService("a", "10.0.0.1"), metav1.CreateOptions{}))
	f.putNode(f.create, "n1", "x", "1")
	f.putNode(f.create, "n2", "x", "1")
	f.run()
	before, _ := f.Snapshot()
	f.putNode(f.update, "n1", "x", "2")
	f.putNode(f.update, "n2", "x", "2")
	other := f.closedService("a", "10.0.0.1")
	other.Spec.Selector, other.Labels = map[string]string{"app": "other"}, map[string]string{"team": "other"}
	f.must(services.Update(t.Context(), other, metav1.UpdateOptions{}))
	f.must(services.Create(t.Context(), f.service("marker", "10.0.0.9"), metav1.CreateOptions{}))
	f.putNode(f.create, "marker", "x", "1")
	wait.Until(t, "the markers", func() error {
		s, _ := f.Snapshot()
		return wait.Check(len(s.Services) == 2 && s.Nodes["marker"] != nil, "%d Services, Nodes %v", len(s.Services), s.Nodes)
	})
	after, _ := f.Snapshot()
	if before.Services[0] != after.Services[0] {
		t.Error("another selector made another Service")
	}
	if before.Self != after.Self {
		t.Error("a heartbeat made another node")
	}
	if len(before.Nodes) != 2 {
		t.Error("the old Snapshot's nodes were changed in place")
	}
	again, _ := f.Snapshot()
	if &again.Services[0] != &after.Services[0] || !sameMap(again.Nodes, after.Nodes) {
		t.Error("without a change, the Snapshot was assembled anew")
	}
}

// sameMap reports whether two maps are one and the same.
func sameMap[K comparable, V any](a, b map[K]V) bool {
	return fmt.Sprintf("%p", a) == fmt.Sprintf("%p", b)
}

// TestTransform: what is stored stays the same object until something that is kept differs.
func TestTransform(t *testing.T) {
	f := startCluster(t)
	f.must(f.typed.CoreV1().Services("ns").Create(t.Context(), f.closedService("a", "10.0.0.1"), metav1.CreateOptions{}))
	f.putNode(f.create, "n1", "x", "1")
	f.run()
	nodes := f.nodes.running[unit{"unit", "x"}]
	stored, _, err := nodes.informer.GetStore().GetByKey("n1")
	if err != nil || stored.(*metav1.PartialObjectMetadata).Annotations != nil {
		t.Fatalf("stored is %v: %v", stored, err)
	}
	transform := nodes.transform(apiKind(new(object.Trimmer).Metadata))
	_, beat := f.node("n1", "x", "2")
	if got, err := transform(beat); err != nil || got != stored {
		t.Errorf("a heartbeat is stored as a new object: %v", err)
	}
	_, moved := f.node("n1", "y", "2")
	if got, err := transform(moved); err != nil || got == stored || got.(*metav1.PartialObjectMetadata).ResourceVersion != moved.ResourceVersion {
		t.Errorf("a new label is not stored as a new object: %v %v", got, err)
	}
	if got, err := transform(stored); err != nil || got != stored {
		t.Errorf("what is stored already is stored anew: %v", err)
	}
}

// TestTransformSlices is TestTransform of EndpointSlices, which are held as Slices.
func TestTransformSlices(t *testing.T) {
	f := startCluster(t)
	read := func(version, address string) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: f.meta("web-1"), AddressType: discoveryv1.AddressTypeIPv4}
		s.ResourceVersion, s.Labels = version, map[string]string{discoveryv1.LabelServiceName: "web", "version": version}
		s.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{address}}}
		return s
	}
	f.must(f.typed.DiscoveryV1().EndpointSlices("ns").Create(t.Context(), read("1", "10.0.0.1"), metav1.CreateOptions{}))
	f.run()
	stored, found, err := f.slices.informer.GetStore().GetByKey("ns/web-1")
	if err != nil || !found {
		t.Fatalf("the store has %v: %v", stored, err)
	}
	transform := f.slices.transform(sliceKind(new(object.Trimmer)))
	if got, err := transform(read("2", "10.0.0.1")); err != nil || got != stored {
		t.Errorf("an update of nothing that is read is stored as a new object: %v", err)
	}
	if got, err := transform(read("3", "10.0.0.2")); err != nil || got == stored || got.(*topology.Slice).ResourceVersion != "3" {
		t.Errorf("another address is not stored as a new object: %v %v", got, err)
	}
	for _, held := range []any{stored, cache.DeletedFinalStateUnknown{Key: "ns/web-1", Obj: stored}} {
		if got, err := transform(held); err != nil || got != held {
			t.Errorf("what is held already is stored anew: %v %v", got, err)
		}
	}
}

// TestOutage is logged once, and its end once.
func TestOutage(t *testing.T) {
	var text strings.Builder
	o := newOutage(slog.New(slog.NewTextHandler(&text, nil)))
	down := fmt.Errorf("connection refused")
	ctx := t.Context()
	for range 3 {
		for _, kind := range []string{"Services", "Nodes"} {
			o.heard(ctx, kind, down)
		}
	}
	o.heard(ctx, "Services", nil)
	since := o.now()
	if since.Since.IsZero() || since.Reason != "connection refused" {
		t.Errorf("while it lasts: %+v", since)
	}
	o.heard(ctx, "Nodes", fmt.Errorf("another"))
	if o.now() != since {
		t.Errorf("a further failure begins another outage: %+v, before %+v", o.now(), since)
	}
	if got := strings.Count(text.String(), "\n"); got != 1 || !strings.Contains(text.String(), "connection refused") {
		t.Errorf("while it lasts:\n%s", text.String())
	}
	o.heard(ctx, "Nodes", nil)
	o.heard(ctx, "Nodes", nil)
	if o.now() != (Loss{}) {
		t.Errorf("at its end: %+v", o.now())
	}
	if got := strings.Count(text.String(), "\n"); got != 2 || !strings.Contains(text.String(), "answers again") {
		t.Errorf("at its end:\n%s", text.String())
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	o.heard(ended, "Nodes", context.Canceled)
	if got := strings.Count(text.String(), "\n"); got != 2 {
		t.Errorf("our own end is logged as an outage:\n%s", text.String())
	}
}

func TestNewClusterDoesNotDial(t *testing.T) {
	config := &rest.Config{Host: "https://127.0.0.1:1"}
	if _, err := NewCluster(ClusterConfig{Rest: config, Node: "n1"}); err != nil {
		t.Error(err)
	}
	if config.ContentType != "" {
		t.Error("the caller's configuration was changed")
	}
	_, err := NewCluster(ClusterConfig{Rest: &rest.Config{Host: "https://x", TLSClientConfig: rest.TLSClientConfig{CAFile: "/does/not/exist"}}})
	if err == nil || !strings.Contains(err.Error(), "/does/not/exist") {
		t.Errorf("a bad CA file: %v", err)
	}
}

// TestLossesAreOfSlices: a kind that may never be read does not make what is known of endpoints
// old.
func TestLossesAreOfSlices(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	c := &Cluster{away: newOutage(log), sliceAway: newOutage(log)}
	nodes, slices := access{what: "Nodes", outages: []*outage{c.away}}, access{what: "EndpointSlices", outages: []*outage{c.away, c.sliceAway}}
	nodes.heard(t.Context(), fmt.Errorf("forbidden"))
	slices.heard(t.Context(), nil)
	if now, last := c.Losses(); c.Lost() == (Loss{}) || now != (Loss{}) || last != (PastLoss{}) {
		t.Errorf("Nodes cannot be read: lost %v; of slices %v, %v", c.Lost(), now, last)
	}
	slices.heard(t.Context(), fmt.Errorf("refused"))
	if now, _ := c.Losses(); now == (Loss{}) {
		t.Error("slices cannot be read, and are not lost")
	}
	slices.heard(t.Context(), nil)
	if now, last := c.Losses(); now != (Loss{}) || last.End.IsZero() {
		t.Errorf("slices can be read again: lost %v, %v", now, last)
	}
}
