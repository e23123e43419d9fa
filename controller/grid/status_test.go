package grid

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/expand"

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
}

// Status is for the patches of a status.
func (s *statuses) Status() client.SubResourceWriter { return statusWriter{s: s} }

type statusWriter struct {
	client.SubResourceWriter
	s *statuses
}

// Patch counts.
func (w statusWriter) Patch(_ context.Context, o client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
	w.s.written++
	o.SetResourceVersion("2")
	return w.s.err
}

// TestEventsDoNotWaitForTheStatus: where the API server takes no status, each Event is sent once,
// and metrics are true.
func TestEventsDoNotWaitForTheStatus(t *testing.T) {
	g := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}, Spec: v1.WorkloadGridSpec{GridUniqKey: "zone"}}
	server, recorder := &statuses{err: errors.New("request is too large")}, events.NewFakeRecorder(100)
	r := &reconciler{kind: deploymentGrid(), client: server, metrics: NewMetrics(), memory: newMemory(), events: recorder}
	turn := func(known *remembered) error {
		e := execution{reconciler: r, object: g, known: known, last: g.Status, observed: &expand.Observed{
			Grid: expand.FromDeploymentGrid(g), Units: map[string][]string{"a": {"node-1"}, "b": {"node-2"}},
		}}
		return e.tell(t.Context()) // there is no template, so both units have failed
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
	g.Status = known.status.status.(v1.DeploymentGridStatus)
	if err := turn(r.memory.of(client.ObjectKeyFromObject(g), g.UID)); err != nil || server.written != 3 {
		t.Errorf("%d tries to write, %v", server.written, err)
	}
	if diff := cmp.Diff([]string(nil), sent()); diff != "" {
		t.Errorf("sent after a restart (-want +got)\n%s", diff)
	}
}
