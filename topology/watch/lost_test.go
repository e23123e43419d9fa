package watch

import (
	"fmt"
	"net"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// TestNodesLost: Nodes that an API server without storage does not list are lost, even if this Node
// is alone in its unit. Nodes that were deleted are not. The API server is a fake, because a real
// one cannot lose one kind alone.
func TestNodesLost(t *testing.T) {
	for _, others := range []int{0, 2} {
		t.Run(fmt.Sprint(others, " others in the unit"), func(t *testing.T) {
			l := newLosingAPI(t, others)
			l.want("at first", 1+others, false)
			for _, n := range l.nodes[1:] {
				must(l, l.api.Remove(n))
			}
			l.want("the others are deleted", 1, false)
			must(l, l.api.Remove(l.nodes[0]))
			l.want("this Node is deleted", 0, false)
			l.put()
			l.want("all are back", 1+others, false)
			l.loseNodes()
			l.want("all are missing in a list: this Node stays", 1, true)
			l.put()
			l.want("all are back again", 1+others, false)
		})
	}
}

// TestUnitIsEmptied: the Nodes of a unit that this Node is still in are lost if they were several.
func TestUnitIsEmptied(t *testing.T) {
	for _, others := range []int{0, 2} {
		l := newLosingAPI(t, others)
		l.want("at first", 1+others, false)
		must(l, l.cluster.nodes.running[unit{"unit", "x"}].informer.GetStore().Replace(nil, ""))
		if got := l.cluster.Listed().NodesLost; got != (others > 0) {
			t.Errorf("a unit with %d other Nodes is emptied: lost %v", others, got)
		}
		l.cluster.nodes.plan.since = time.Now()
		if l.cluster.Listed().NodesLost {
			t.Errorf("a unit with %d other Nodes is left by all, this Node too: its Nodes count as lost", others)
		}
	}
}

// TestLostNodesComeBack: when the Nodes are listed again, there is no Snapshot without this Node,
// as would refuse every closed Service.
func TestLostNodesComeBack(t *testing.T) {
	l := newLosingAPI(t, 2)
	l.want("at first", 3, false)
	l.loseNodes()
	l.want("all are missing in a list: this Node stays", 1, true)
	l.put()
	wait.Until(t, "all are back", func() error {
		s, whole := l.cluster.Snapshot()
		if listed := l.cluster.Listed(); !listed.NodesLost && (!whole || s.Nodes["n1"] == nil) {
			t.Fatalf("a Snapshot that is not held back lacks this Node: %v", s.Nodes)
		}
		return wait.Check(len(s.Nodes) == 3, "Nodes %v", s.Nodes)
	})
}

// TestSizeAsSoonAsComplete: a unit's size is known with the completion of its watch, whoever asks
// first.
func TestSizeAsSoonAsComplete(t *testing.T) {
	l := newLosingAPI(t, 2)
	wait.Until(t, "the unit is watched", func() error {
		_, whole := l.cluster.Snapshot()
		return wait.Check(whole, "no Snapshot")
	})
	if got := l.cluster.nodes.plan.sizes[unit{"unit", "x"}]; got != 3 {
		t.Errorf("the size of the unit is %d, want 3", got)
	}
}

// losingAPI is an API server that loses its Nodes, and a Cluster that watches it.
type losingAPI struct {
	*testing.T
	api     *need.FakeAPI
	address string
	nodes   []need.FakeObject // this Node first
	cluster *Cluster
}

func newLosingAPI(t *testing.T, others int) *losingAPI {
	l := &losingAPI{T: t, address: "127.0.0.1:0"}
	for i := range 1 + others {
		l.nodes = append(l.nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i+1), Labels: map[string]string{"unit": "x"}}})
	}
	l.serve()
	l.put()
	var err error
	l.cluster, err = NewCluster(ClusterConfig{Rest: &rest.Config{Host: l.api.URL()}, Node: "n1"})
	must(l, err)
	start(t, l.cluster.Run)
	t.Cleanup(func() { _ = l.api.Close() })
	return l
}

// serve begins to serve everything but Nodes.
func (l *losingAPI) serve() {
	l.Helper()
	listener, err := net.Listen("tcp", l.address)
	must(l, err)
	l.address, l.api = listener.Addr().String(), need.ServeFakeAPI(listener)
	meta := metav1.ObjectMeta{Namespace: "default", Name: "kubernetes"}
	slice := &discoveryv1.EndpointSlice{ObjectMeta: meta, AddressType: discoveryv1.AddressTypeIPv4}
	meta.Annotations = map[string]string{topology.AnnotationKeys: `["unit"]`}
	closed := &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1"}}
	must(l, l.api.Put(closed, slice))
}

func (l *losingAPI) put() { l.Helper(); must(l, l.api.Put(l.nodes...)) }

func (l *losingAPI) loseNodes() {
	l.Helper()
	must(l, l.api.Close())
	l.serve()
}

// want waits until so many Nodes are known, and Nodes are lost or not.
func (l *losingAPI) want(when string, nodes int, lost bool) {
	l.Helper()
	wait.Until(l.T, when, func() error {
		if s, whole := l.cluster.Snapshot(); !whole || len(s.Nodes) != nodes {
			return fmt.Errorf("Nodes %v, whole %v", s.Nodes, whole)
		}
		got := l.cluster.Listed()
		return wait.Check(got.NodesLost == lost && got.Service && got.Slice, "%+v is listed, want Nodes lost %v", got, lost)
	})
}
