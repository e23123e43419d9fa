package topology_test

import (
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"testing"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

var equateAddrs = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

// sameView compares Views as far as a reader sees them.
var sameView = cmp.Options{
	cmpopts.EquateComparable(netip.Addr{}, netip.Prefix{}), equateAddrs,
	cmpopts.EquateEmpty(), cmpopts.IgnoreFields(topology.View{}, "Drops"),
}

// TestMemoEqualsResolve: after any history of Snapshots, the remembered answer equals the computed
// one. Some Snapshots follow several changes, some none. The keys remembered are those of the last
// answer, as in the daemon, or any. Of Services and EndpointSlices that are gone nothing is left.
func TestMemoEqualsResolve(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memo := &compared{}
		s := topologytest.Snapshot(t)
		for range rapid.IntRange(1, 8).Draw(t, "snapshots") {
			for range rapid.IntRange(0, 3).Draw(t, "changes") {
				s = topologytest.Change(t, s)
			}
			if rapid.IntRange(0, 9).Draw(t, "new config") == 0 {
				memo.config.NodesWithoutUnit = rapid.SampledFrom([]topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}).Draw(t, "fallback")
				memo.config.ServiceProxyName = rapid.SampledFrom([]string{"", "", "other"}).Draw(t, "proxy name")
			}
			if rapid.IntRange(0, 19).Draw(t, "other node") == 0 {
				s.Node = rapid.SampledFrom([]string{"a", "b", "ghost"}).Draw(t, "node")
			}
			view := memo.resolve(t, s)
			if rapid.Bool().Draw(t, "as the daemon") {
				s.LastKeys = view.LastKeys
			}
		}
		s.Services, s.Slices = nil, nil
		view := memo.resolve(t, s)
		if n := topology.Remembered(&memo.memo); n != 0 || len(view.Ports) != 0 || len(view.LastKeys) != 0 {
			t.Fatalf("of an empty cluster Memo remembers %d Services, View has %d ports and %d LastKeys; want none", n, len(view.Ports), len(view.LastKeys))
		}
	})
}

// TestMemoFollowsLabels is TestMemoEqualsResolve where only Nodes change, under every policy.
func TestMemoFollowsLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		memo := &compared{}
		memo.config.NodesWithoutUnit = rapid.SampledFrom([]topology.NodesWithoutUnit{"", topology.WithoutUnitLocal, topology.WithoutUnitOpen}).Draw(t, "fallback")
		s := topologytest.Snapshot(t)
		for range rapid.IntRange(5, 20).Draw(t, "snapshots") {
			s.LastKeys = memo.resolve(t, s).LastKeys
			s = topologytest.Relabel(t, s)
		}
	})
}

// compared is a Memo whose answers are compared with those of Resolve, and have the same pointers
// when asked for again. What the answer before listed as left out must stay as it is: a reader may
// still hold that View.
type compared struct {
	memo   topology.Memo
	config topology.Config
	last   topology.View
	drops  [][]topology.Drop
}

func (m *compared) resolve(t *rapid.T, s topology.Snapshot) topology.View {
	t.Helper()
	want, got := topology.Resolve(s, m.config), m.memo.Resolve(s, m.config)
	if rapid.Bool().Draw(t, "again") { // not always: that could hide what the next Snapshot meets
		if again := m.memo.Resolve(s, m.config); !slices.Equal(got.Ports, again.Ports) {
			t.Fatal("an unchanged Snapshot gave other pointers")
		}
	}
	if diff := cmp.Diff(want, got, sameView); diff != "" {
		t.Fatalf("Memo differs (-anew +remembered):\n%s", diff)
	}
	if diff := cmp.Diff(dropsOf(want), dropsOf(got), equateAddrs); diff != "" {
		t.Fatalf("Memo lists other endpoints as left out (-anew +remembered):\n%s", diff)
	}
	if diff := cmp.Diff(m.drops, dropsOf(m.last), equateAddrs); diff != "" {
		t.Fatalf("the View of before lists other endpoints as left out (-then +now):\n%s", diff)
	}
	m.last, m.drops = got, dropsOf(want)
	return got
}

func dropsOf(v topology.View) [][]topology.Drop {
	var all [][]topology.Drop
	for _, sp := range v.Ports {
		all = append(all, v.Drops(sp))
	}
	return all
}

// TestClosureHolds states the promise itself: no endpoint that a closed Service may use
// is on a node that shares no key's value with this one.
func TestClosureHolds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		for _, sp := range topology.Resolve(s, topology.Config{}).Ports {
			if !sp.Closure.Closed() {
				continue
			}
			for _, e := range append(slices.Clone(sp.Cluster), sp.Local...) {
				shared := topology.Intersects(sp.Closure.Keys, s.Nodes[s.Node], s.Nodes[e.Node])
				own := sp.Closure.OwnOnly && e.Node == s.Node
				if !shared && !own && sp.Closure.KeyInUse != topology.AnyEndpoint {
					t.Fatalf("%v: %v on %q left the unit of %q; closure %+v", sp.Name, e.Addr, e.Node, s.Node, sp.Closure)
				}
			}
		}
	})
}

// TestEveryEndpointIsKeptOrDropped: what closure leaves out is counted by its reason and listed on
// demand, the node may not use it, and an ordinary Service loses nothing to it.
func TestEveryEndpointIsKeptOrDropped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := topologytest.Snapshot(t)
		view := topology.Resolve(s, topology.Config{})
		for _, sp := range view.Ports {
			listed, counted := map[topology.Reason]int{}, map[topology.Reason]int{}
			for _, d := range view.Drops(sp) {
				listed[d.Reason]++
				if d.Reason == "" {
					t.Fatalf("%v: %v is left out without a reason", sp.Name, d.Endpoint.Addr)
				}
				if slices.Contains(sp.Cluster, d.Endpoint) || slices.Contains(sp.Local, d.Endpoint) {
					t.Fatalf("%v: %v is used and left out", sp.Name, d.Endpoint)
				}
			}
			for _, r := range sp.Closure.LeftOut {
				counted[r.Reason] += r.Count
			}
			if diff := cmp.Diff(listed, counted); diff != "" {
				t.Fatalf("%v: left out by reason (-listed +counted):\n%s", sp.Name, diff)
			}
			if !sp.Closure.Closed() && len(listed) > 0 {
				t.Fatalf("%v is ordinary, yet closure left out %v", sp.Name, listed)
			}
		}
	})
}

// TestMemoForgetsSnapshots: what Memo remembers of a Service keeps that Service's EndpointSlices
// alive, and not the whole list of a Snapshot. Otherwise, once every Service has changed in a
// Snapshot of its own, as many lists would stay as there are Services.
func TestMemoForgetsSnapshots(t *testing.T) {
	const count = 1000
	s := topology.Snapshot{}
	slice := func(i, version int) *topology.Slice {
		name := fmt.Sprintf("web-%04d", i)
		return &topology.Slice{Namespace: "shop", Name: name, ResourceVersion: fmt.Sprint(version), Service: name}
	}
	for i := range count {
		s.Services = append(s.Services, &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprintf("web-%04d", i)},
			Spec:       corev1.ServiceSpec{ClusterIP: "10.96.0.1"},
		})
		s.Slices = append(s.Slices, slice(i, 0))
	}
	var memo topology.Memo
	memo.Resolve(s, topology.Config{})
	before := heap()
	for i := range count {
		s.Slices = slices.Clone(s.Slices)
		s.Slices[i] = slice(i, 1)
		memo.Resolve(s, topology.Config{})
	}
	if grown := heap() - before; grown > 1<<20 {
		t.Errorf("%d Services that changed one after the other: %d KiB more than before, want at most 1024", count, grown>>10)
	}
	runtime.KeepAlive(&memo)
	runtime.KeepAlive(s)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
