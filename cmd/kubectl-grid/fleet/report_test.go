package fleet

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// healthy is the answer of a healthy daemon.
func healthy() Answer {
	return Answer{Code: 200, Body: body("2026-01-02T12:00:00Z", true, true, "{}")}
}

// statusWith is a status of the present spec with some conditions that are true.
func statusWith(reason string, conditions ...string) v1.WorkloadGridStatus {
	s := v1.WorkloadGridStatus{ReadyRate: "1/2", OfflineUnits: 1, LostUnits: 2, FailedUnits: 3, GridStatus: v1.GridStatus{
		ObservedGeneration: 4, Conditions: []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionTrue}},
	}}
	for _, c := range conditions {
		s.Conditions = append(s.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: reason, Message: "the message"})
	}
	return s
}

func grid(name string, s v1.WorkloadGridStatus) Grid {
	return NewGrid(KindDeploymentGrid, metav1.ObjectMeta{Namespace: "shop", Name: name, Generation: 4}, "location", s)
}

// TestReport: Nodes that need attention come first, then units, then names; the tables have all.
func TestReport(t *testing.T) {
	nodes := []*corev1.Node{
		node("gz-1", map[string]string{"location": "guangzhou"}), node("bj-2", map[string]string{"location": "beijing"}),
		node("bj-1", map[string]string{"location": "beijing"}), node("a", nil), node("b", nil),
	}
	nodes[0].Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	waits := Answer{Code: 503, Body: body("2026-01-02T11:00:00Z", true, false, "{}")}
	r := NewReport([]string{"location"}, nodes, []Answer{healthy(), healthy(), healthy(), {Err: errors.New("no answer within 5s")}, waits},
		[]Grid{grid("web", statusWith("UnitsFailed", v1.ConditionDegraded)), grid("db", statusWith(""))})
	var text strings.Builder
	if err := r.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	want := `NODE  UNIT       DAEMON     AGE     READY    REASON
b     -          unhealthy  1h0m0s  Unknown  nothing has been written since the start; gridproxy status on the Node says more
a     -          unknown    -       Unknown  no answer within 5s
bj-1  beijing    healthy    0s      Unknown  -
bj-2  beijing    healthy    0s      Unknown  -
gz-1  guangzhou  healthy    0s      True     -

GRID                     KEY       READY  OFFLINE  LOST  FAILED  CONDITIONS
DeploymentGrid shop/db   location  1/2    1        2     3       -
DeploymentGrid shop/web  location  1/2    1        2     3       Degraded (UnitsFailed)
`
	if text.String() != want {
		t.Errorf("got:\n%s\nwant:\n%s", text.String(), want)
	}
	problems := []string{"Node b: the daemon is unhealthy: ", "Node a: the daemon is unknown: no answer", "DeploymentGrid shop/web: Degraded (UnitsFailed): the message"}
	if r.Healthy || len(r.Problems) != len(problems) {
		t.Fatalf("problems: %q", r.Problems)
	}
	for i, p := range problems {
		if !strings.HasPrefix(r.Problems[i], p) {
			t.Errorf("problem %d is %q, want %q", i, r.Problems[i], p)
		}
	}
}

// TestProblemsAreBounded: a cluster without any daemon has a table, and 20 lines of errors.
func TestProblemsAreBounded(t *testing.T) {
	var nodes []*corev1.Node
	for i := range 100 {
		nodes = append(nodes, node(fmt.Sprint("n", i), nil))
	}
	r := NewReport(nil, nodes, make([]Answer, 100), nil)
	if len(r.Nodes) != 100 || len(r.Problems) != problemsMax+1 || r.Problems[problemsMax] != "and 80 more, which the tables show" {
		t.Errorf("%d rows, %d problems: %q", len(r.Nodes), len(r.Problems), r.Problems)
	}
}

func TestNewGrid(t *testing.T) {
	contested := statusWith("UnitsFailed", v1.ConditionDegraded)
	contested.Units = []v1.UnitStatus{{Value: "a", Reason: "Contested"}, {Value: "b", Reason: "Other"}, {Value: "c", Reason: "Contested"}}
	old := statusWith("")
	old.ObservedGeneration = 3
	for _, test := range []struct {
		name       string
		status     v1.WorkloadGridStatus
		conditions string
		problem    bool
	}{
		{"well", statusWith(""), "", false},
		{"degraded", statusWith("UnitsLost", v1.ConditionDegraded), "Degraded (UnitsLost)", true},
		{"held", statusWith("ManyUnitsLost", v1.ConditionDeletionHeld), "DeletionHeld (ManyUnitsLost)", true},
		{"contested", contested, "Degraded (UnitsFailed), Contested (units: 2)", true},
		{"rekeyed", statusWith("", v1.ConditionRekeyed, v1.ConditionIdle), "Rekeyed, Idle", false},
		{"earlier spec", old, "Outdated", false},
		{"no status", v1.WorkloadGridStatus{}, "NoStatus", true},
	} {
		g := grid("web", test.status)
		if got := strings.Join(g.Conditions, ", "); got != test.conditions || (g.problem != "") != test.problem {
			t.Errorf("%s: conditions %q, problem %q; want %q, %v", test.name, got, g.problem, test.conditions, test.problem)
		}
	}
}

// TestUnitKeys: keys that no Node carries are no units, and their number is bounded.
func TestUnitKeys(t *testing.T) {
	all := map[string]string{"zone": "x", "location": "y", "empty": "", "k1": "1", "k2": "1", "k3": "1", "k4": "1"}
	nodes := []*corev1.Node{node("a", all)}
	closed := func(keys string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"topologyKeys": keys}}}
	}
	services := []*corev1.Service{closed(`["zone","absent"]`), closed(`["location","empty"]`), closed(`no list`), {}}
	grids := []Grid{{Key: "location"}}
	if got := UnitKeys(nodes, services, grids); !slices.Equal(got, []string{"location", "zone"}) {
		t.Errorf("keys: %q", got)
	}
	services = append(services, closed(`["k1","k2","k3","k4"]`))
	if got := UnitKeys(nodes, services, grids); !slices.Equal(got, []string{"location", "k1", "k2", "k3"}) {
		t.Errorf("keys: %q", got)
	}
	n := newNode(nodes[0], []string{"location", "zone"}, Answer{})
	if got := n.unit([]string{"location", "zone"}); got != "location=y, zone=x" {
		t.Errorf("unit: %q", got)
	}
}

func TestRuns(t *testing.T) {
	for os, want := range map[string]bool{"": true, "linux": true, "windows": false} {
		if got := Runs(node("a", map[string]string{"kubernetes.io/os": os})); got != want {
			t.Errorf("system %q: %v", os, got)
		}
	}
}
