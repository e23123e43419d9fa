package grid

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// statuses takes statuses, or refuses them while err is set.
type statuses struct {
	client.Client
	err     error
	written int
	last    string // patch
}

// Status is for the patches of a status.
func (s *statuses) Status() client.SubResourceWriter { return statusWriter{s: s} }

type statusWriter struct {
	client.SubResourceWriter
	s *statuses
}

// Patch counts.
func (w statusWriter) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.SubResourcePatchOption) error {
	text, err := patch.Data(o)
	if err != nil {
		return err
	}
	w.s.written, w.s.last = w.s.written+1, string(text)
	o.SetResourceVersion("2")
	return w.s.err
}

// TestEventsDoNotWaitForTheStatus: where the API server takes no status, each Event is sent once,
// and metrics are true.
func TestEventsDoNotWaitForTheStatus(t *testing.T) {
	g := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}, Spec: v1.WorkloadGridSpec{GridUniqKey: "zone"}}
	server, recorder := &statuses{err: errors.New("request is too large")}, events.NewFakeRecorder(100)
	r := &reconciler{kind: deploymentGrid(), client: server, metrics: NewMetrics(), memory: newMemory(), events: recorder, now: time.Now}
	turn := func(known *remembered) error {
		e := execution{reconciler: r, object: g, known: known, last: g.Status, observed: &expand.Observed{
			Grid: expand.FromDeploymentGrid(g), Units: map[string][]string{"a": {"node-1"}, "b": {"node-2"}},
		}}
		_, err := e.tell(t.Context()) // there is no template, so both units have failed
		return err
	}
	sent := func() []string {
		var all []string
		for len(recorder.Events) > 0 {
			all = append(all, <-recorder.Events)
		}
		return all
	}
	known := r.memory.of(client.ObjectKeyFromObject(g), g.UID)
	if err := turn(known); err == nil {
		t.Error("the status could not be written, and no error says so")
	}
	first := sent()
	if len(first) != 1 || !strings.Contains(first[0], "MissingTemplate units a, b: ") {
		t.Errorf("the Events are %q", first)
	}
	if err := turn(known); err == nil || server.written != 2 {
		t.Errorf("%d tries to write, %v", server.written, err)
	}
	server.err = nil
	if err := turn(known); err != nil {
		t.Error(err)
	}
	if again := sent(); len(again) > 0 {
		t.Errorf("sent again: %q", again)
	}
	r.memory.forget(client.ObjectKeyFromObject(g)) // a restart: the status that was written is in the cache
	g.Status = known.status.(v1.DeploymentGridStatus)
	if err := turn(r.memory.of(client.ObjectKeyFromObject(g), g.UID)); err != nil || server.written != 3 {
		t.Errorf("%d tries to write, %v", server.written, err)
	}
	if diff := cmp.Diff([]string(nil), sent()); diff != "" {
		t.Errorf("sent after a restart (-want +got)\n%s", diff)
	}
}

// TestPauseGrowsWithTheStatus: a small status is written at once, and a large one at most every few
// seconds.
func TestPauseGrowsWithTheStatus(t *testing.T) {
	now := time.Unix(1000, 0)
	for size, want := range map[int]time.Duration{0: 0, 9_999: 0, 10_000: 100 * time.Millisecond, 100_000: time.Second, 300_000: 3 * time.Second} {
		var p pause
		p.wrote(size, now)
		if got := p.left(now); got != want {
			t.Errorf("after %d bytes the pause is %s, want %s", size, got, want)
		}
		if got := p.left(now.Add(want)); got != 0 {
			t.Errorf("after the pause %s are left", got)
		}
		if got := p.left(now.Add(-time.Hour)); got != 0 {
			t.Errorf("with a clock that was set back %s are left", got)
		}
	}
}

// TestLastStateIsWritten: in a pause nothing is written, Events are sent, and what holds at its end
// is written then.
func TestLastStateIsWritten(t *testing.T) {
	g := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}, Spec: v1.WorkloadGridSpec{GridUniqKey: "zone"}}
	now := time.Unix(1000, 0)
	server, recorder := &statuses{}, events.NewFakeRecorder(1000)
	r := &reconciler{kind: deploymentGrid(), client: server, metrics: NewMetrics(), memory: newMemory(), events: recorder, now: func() time.Time { return now }}
	known := r.memory.of(client.ObjectKeyFromObject(g), g.UID)
	units := map[string][]string{}
	for i := range 200 {
		units[fmt.Sprintf("unit-%03d", i)] = []string{"node"}
	}
	turn := func() time.Duration {
		o := expand.Observed{Grid: expand.FromDeploymentGrid(g), Units: units, Now: now}
		e := execution{reconciler: r, object: g, known: known, observed: &o, last: g.Status}
		again, err := e.tell(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if again == 0 {
			g.Status = known.status.(v1.DeploymentGridStatus)
		}
		return again
	}
	if again := turn(); again != 0 || server.written != 1 {
		t.Fatalf("the first is written %d times; again after %s", server.written, again)
	}
	until := known.pause.left(now)
	for i := range 3 {
		units[fmt.Sprintf("more-%d", i)] = []string{"node"}
		now = now.Add(until / 10)
		sent := len(recorder.Events)
		if again := turn(); again <= 0 || again >= until || server.written != 1 || len(recorder.Events) != sent+1 {
			t.Fatalf("in the pause of %s: written %d times, again after %s, %d Events", until, server.written, again, len(recorder.Events)-sent)
		}
	}
	now = now.Add(until)
	if again := turn(); again != 0 || server.written != 2 || !strings.Contains(server.last, "more-2") {
		t.Errorf("after the pause: written %d times, again after %s", server.written, again)
	}
	if again := turn(); again != 0 || server.written != 2 {
		t.Errorf("at rest: written %d times, again after %s", server.written, again)
	}
}

// TestSameStatus: what is the same in JSON is the same, whatever the order of fields; nothing else
// is.
func TestSameStatus(t *testing.T) {
	of := func(state string, change func(*v1.DeploymentGridStatus)) v1.DeploymentGridStatus {
		s := largeStatus(2)
		s.States["unit-0000"] = v1.State{JSON: []byte(state)}
		if change != nil {
			change(&s)
		}
		return s
	}
	sets := func(s v1.DeploymentGridStatus) any {
		return v1.StatefulSetGridStatus(s)
	}
	sorted := `{"readyReplicas":1,"replicas":2}`
	for _, c := range []struct {
		what string
		b    v1.DeploymentGridStatus
		want bool
	}{
		{"equal", of(sorted, nil), true},
		{"another order", of(`{"replicas":2, "readyReplicas":1}`, nil), true},
		{"another time zone", of(sorted, func(s *v1.DeploymentGridStatus) {
			s.Conditions[0].LastTransitionTime = metav1.Time{Time: s.Conditions[0].LastTransitionTime.In(time.FixedZone("", 3600))}
		}), true},
		{"another state", of(`{"readyReplicas":2,"replicas":2}`, nil), false},
		{"a state less", of(sorted, func(s *v1.DeploymentGridStatus) { delete(s.States, "unit-0001") }), false},
		{"another row", of(sorted, func(s *v1.DeploymentGridStatus) { s.Units[1].Nodes++ }), false},
		{"another condition", of(sorted, func(s *v1.DeploymentGridStatus) { s.Conditions[0].Message = "other" }), false},
	} {
		a := of(sorted, nil)
		if same, err := sameStatus(a, c.b); err != nil || same != c.want {
			t.Errorf("%s: %t, %v", c.what, same, err)
		}
		if same, err := sameStatus(sets(a), sets(c.b)); err != nil || same != c.want {
			t.Errorf("%s, of StatefulSets: %t, %v", c.what, same, err)
		}
	}
	service := func(ip string) v1.ServiceGridStatus { return v1.ServiceGridStatus{ClusterIP: ip} }
	if same, err := sameStatus(service("10.0.0.1"), service("10.0.0.1")); err != nil || !same {
		t.Error("equal statuses of ServiceGrids differ", err)
	}
	if same, err := sameStatus(service("10.0.0.1"), service("10.0.0.2")); err != nil || same {
		t.Error("different statuses of ServiceGrids are the same", err)
	}
}

// TestStatusIsAboutTheTimeAfterTheSteps: what was assessed for the decision does not hold any more.
func TestStatusIsAboutTheTimeAfterTheSteps(t *testing.T) {
	e := executionOn(&server{grid: foo("1")})
	e.client = &deleting{cached: e.client.(cached)}
	e.memory = newMemory()
	e.observed.Grid.Key, e.observed.Memo = "location", &expand.Memo{}
	e.observed.Children = []expand.Live{{
		Name: "foo-1", UID: "9", ResourceVersion: "5", Owner: "1", NodeSelector: expand.MakePairs(map[string]string{"location": "1"}),
		Labels:      expand.MakePairs(map[string]string{v1.LabelSelector: "foo", v1.LabelKey: "location"}),
		Annotations: expand.MakePairs(map[string]string{v1.AnnotationValue: "1"}),
	}}
	if _, err := e.decide(t.Context(), e.observed, e.known); err != nil || !e.observed.Decided {
		t.Fatalf("decided: %t, %v", e.observed.Decided, err)
	}
	if err := e.run(t.Context(), []expand.Step{expand.Replace{Name: "foo-1", Value: "1", UID: "9", ResourceVersion: "5"}}); err != nil {
		t.Fatal(err)
	}
	if rows := expand.Status(*e.observed).Units; len(rows) > 0 {
		t.Errorf("after the child is deleted there are rows: %+v", rows)
	}
}
