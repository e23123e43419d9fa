package event

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"testing"

	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

type tape []string

func (r *tape) Event(object runtime.Object, _, reason, _ string) {
	*r = append(*r, reason+" "+object.(metav1.Object).GetName())
}

// fleet is a View of n closed Services of a unit.
func fleet(n int, usable bool) syncer.Result {
	v := topology.View{Node: "n1"}
	for i := range n {
		name := types.NamespacedName{Namespace: "ns", Name: fmt.Sprintf("svc%04d", i)}
		sp := &topology.ServicePort{
			Name:    topology.ServicePortName{NamespacedName: name},
			Service: &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}},
			Closure: topology.Closure{Keys: []string{"zone"}},
		}
		if usable {
			sp.Cluster = []topology.Endpoint{{}}
		}
		v.Ports = append(v.Ports, sp)
	}
	return syncer.Result{View: v, Snapshot: topology.Snapshot{Node: "n1", Nodes: map[string]labels.Set{"n1": {"zone": "x"}}}}
}

// TestDarkUnit: the failure of a whole unit does not flood the API server.
func TestDarkUnit(t *testing.T) {
	var recorded tape
	reporter := NewReporter(slog.New(slog.DiscardHandler), &recorded)
	reporter.Synced(fleet(1000, true))
	reporter.Synced(fleet(1000, false))
	if len(recorded) < eventBurst || len(recorded) > 2*eventBurst {
		t.Errorf("recorded %d Events, want about %d", len(recorded), eventBurst)
	}
	if reporter.withheld != 1000-len(recorded) {
		t.Errorf("withheld %d of %d", reporter.withheld, 1000-len(recorded))
	}
}

func TestWithoutRecorder(t *testing.T) {
	reporter := NewReporter(slog.New(slog.DiscardHandler), nil)
	reporter.Synced(fleet(1, true))
	reporter.Synced(fleet(1, false)) // must not panic
}

func TestUnbound(t *testing.T) {
	var recorded tape
	reporter := NewReporter(slog.New(slog.DiscardHandler), &recorded)
	services := []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "lb"}}}
	failure := healthcheck.BindError{
		Service: types.NamespacedName{Namespace: "ns", Name: "lb"},
		Addr:    netip.MustParseAddrPort("0.0.0.0:32000"), Err: errors.New("in use"),
	}
	reporter.Unbound(services, []healthcheck.BindError{failure, failure})
	reporter.Unbound(services, []healthcheck.BindError{failure})
	if len(recorded) != 1 {
		t.Fatalf("recorded %v, want one Event while the port stays taken", recorded)
	}
	reporter.Unbound(services, nil)
	reporter.Unbound(services, []healthcheck.BindError{failure})
	if len(recorded) != 2 || recorded[1] != ReasonHealthCheck+" lb" {
		t.Errorf("recorded %v, want a second Event after it had been open", recorded)
	}
}

// TestScheduler: one report for each annotation, as an Event only from nodes with an endpoint of
// the Service, and another one when the annotation comes back.
func TestScheduler(t *testing.T) {
	var recorded tape
	reporter := NewReporter(slog.New(slog.DiscardHandler), &recorded)
	r := fleet(4, true)
	for i, name := range []string{"wrong", "wrong", "rr", ""} {
		r.View.Ports[i].Service.Annotations = map[string]string{topology.AnnotationScheduler: name}
	}
	r.View.Ports[0].Local = []topology.Endpoint{{}}
	reporter.Lacking(r.View, []string{"wrong"}, "rr")
	reporter.Lacking(r.View, []string{"wrong"}, "rr")
	if want := "[" + ReasonScheduler + " svc0000]"; fmt.Sprint(recorded) != want {
		t.Errorf("recorded %v, want %s", recorded, want)
	}
	r.View.Ports[0].Service.Annotations[topology.AnnotationScheduler] = "bad"
	reporter.Lacking(r.View, []string{"bad", "wrong"}, "rr")
	reporter.Lacking(r.View, nil, "rr") // the module has been loaded
	reporter.Lacking(r.View, []string{"bad", "wrong"}, "rr")
	if len(recorded) != 3 {
		t.Errorf("recorded %v, want 3 Events", recorded)
	}
	_, events := NextUnscheduled(nil, r.View, []string{"wrong"}, "lc")
	want := `node n1: annotation superedge.io/ipvs-scheduler asks for scheduler "wrong", which the kernel there does not have; lc is used instead; load the scheduler's module there, or name another one`
	if len(events) != 1 || events[0].Message != want || !events[0].LogOnly {
		t.Errorf("got %+v, want %s", events, want)
	}
}
