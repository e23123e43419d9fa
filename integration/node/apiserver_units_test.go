package node

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"gridproxy/integration/env/wait"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ofUnit reports whether a request is for the Nodes of a unit: this node's own object is requested
// by name.
func ofUnit(selector string) bool { return selector != "" }

// TestOnlyOwnUnitIsRead: of other units nothing is read, neither at the start nor when their Nodes
// change.
func TestOnlyOwnUnitIsRead(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	const units, each = 20, 10
	w.load.addNode(self)
	w.setLocation(self, "unit-0")
	for i := range units {
		for n := range each {
			w.addNodeOf(fmt.Sprintf("unit-%d", i), n)
		}
	}
	w.closeService("web", `["location"]`)
	w.watch()
	w.settle()
	if s, _ := w.source.Snapshot(); len(s.Nodes) != 1+each || !s.Watched["location"] {
		t.Errorf("%d Nodes are known by %v, want this node and %d of its unit", len(s.Nodes), s.Watched, each)
	}
	atStart, all := w.asked.bytesOf("nodes", ofUnit), w.bytesOfAllNodes()
	t.Logf("at the start: %d bytes of Nodes by selector, %d bytes of all %d Nodes", atStart, all, 1+units*each)
	if atStart > all/units*2 {
		t.Errorf("%d bytes of Nodes are read at the start; all Nodes have %d", atStart, all)
	}
	const beats = 200
	for i := range beats {
		w.heartbeat(fmt.Sprintf("unit-%d-%d", 1+i%(units-1), i%each), i)
	}
	w.setLocation("unit-0-0", "elsewhere") // a marker: events of one watch arrive in order
	w.settle()
	more := w.asked.bytesOf("nodes", ofUnit) - atStart
	t.Logf("%d heartbeats of other units and one change in this unit: %d bytes", beats, more)
	if more > 10*all/(1+units*each) {
		t.Errorf("%d bytes for %d heartbeats of other units and one change in this unit", more, beats)
	}
}

func (w *watchedCluster) addNodeOf(unit string, n int) {
	w.t.Helper()
	_, err := w.api.CoreV1().Nodes().Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("%s-%d", unit, n), Labels: map[string]string{"location": unit},
	}}, metav1.CreateOptions{})
	must(w.t, err)
}

// bytesOfAllNodes is what a list of the metadata of all Nodes takes.
func (w *watchedCluster) bytesOfAllNodes() int64 {
	w.t.Helper()
	list, err := w.api.CoreV1().RESTClient().Get().Resource("nodes").
		SetHeader("Accept", "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").DoRaw(w.ctx)
	must(w.t, err)
	return int64(len(list))
}

// TestNodeChangesUnitInTheCluster moves this node between units while Snapshots are taken without a
// pause: each of them has this node's unit, and only it.
func TestNodeChangesUnitInTheCluster(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.addNode(self)
	w.setLocation(self, "unit-0")
	for i := range 2 {
		for n := range 3 {
			w.addNodeOf(fmt.Sprintf("unit-%d", i), n)
		}
	}
	w.closeService("web", `["location"]`)
	w.watch()
	w.settle()
	ctx, cancel := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	looking.Go(func() {
		for ctx.Err() == nil {
			s, _ := w.source.Snapshot()
			if problem := onlyOwnUnit(s); problem != "" {
				t.Error(problem)
				return
			}
		}
	})
	for i := range 6 {
		unit := fmt.Sprintf("unit-%d", (i+1)%2)
		w.setLocation(self, unit)
		w.settle()
		if s, _ := w.source.Snapshot(); s.Nodes[self]["location"] != unit {
			t.Errorf("this node is in %s, want %s", s.Nodes[self]["location"], unit)
		}
	}
	cancel()
	looking.Wait()
}

// onlyOwnUnit is what is wrong with a Snapshot of units of three other Nodes.
func onlyOwnUnit(s topology.Snapshot) string {
	own, n := s.Nodes[self]["location"], 0
	for name, set := range s.Nodes {
		if set["location"] == own && strings.HasPrefix(name, own+"-") {
			n++
		}
	}
	if n != 3 || !s.Watched["location"] {
		return fmt.Sprintf("in unit %s are %d other Nodes, want 3: %v, watched %v", own, n, s.Nodes, s.Watched)
	}
	return ""
}

// TestManyKeysWatchAllNodes: a Service with more keys than are watched one by one gets one watch
// for all Nodes; nothing is missing meanwhile.
func TestManyKeysWatchAllNodes(t *testing.T) {
	t.Parallel()
	w := newWatchedCluster(t)
	w.load.fill(3)
	object, err := w.api.CoreV1().Nodes().Get(w.ctx, self, metav1.GetOptions{})
	must(w.t, err)
	var keys []string
	for i := range 12 {
		key := fmt.Sprintf("key-%d", i)
		keys = append(keys, fmt.Sprintf("%q", key))
		object.Labels[key] = "x"
	}
	_, err = w.api.CoreV1().Nodes().Update(w.ctx, object, metav1.UpdateOptions{})
	must(w.t, err)
	w.watch()
	w.settle()
	if s, _ := w.source.Snapshot(); s.Watched == nil {
		t.Error("all Nodes are watched from the start")
	}
	w.closeService("many", "["+strings.Join(keys, ",")+"]")
	wait.Until(w.t, "all Nodes are watched", func() error {
		s, _ := w.source.Snapshot()
		return wait.Check(s.Watched == nil, "only those of %v are", s.Watched)
	})
	w.settle()
	if _, all := w.source.NodeWatches(); all != 1 {
		t.Errorf("%d watches for all Nodes are counted, want 1", all)
	}
	w.load.change(20)
	w.settle()
}
