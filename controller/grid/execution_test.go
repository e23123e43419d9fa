package grid

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"
	"gridproxy/controller/gridspec"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// server answers live reads, and counts them. It replaces an API server that is ahead of the
// caches, a moment that a real one does not provide on demand. Every write panics, because there is
// no client.
type server struct {
	grid  *v1.DeploymentGrid // nil: deleted
	child *appsv1.Deployment
	nodes int
	only  string // the label selector of all its Nodes; "": any
	gets  int
}

// Get answers with the Grid or the child.
func (s *server) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	s.gets++
	switch o := o.(type) {
	case *deployment:
		return o.reduce(s.child)
	case *metav1.PartialObjectMetadata:
		s.child.ObjectMeta.DeepCopyInto(&o.ObjectMeta)
		return nil
	}
	if s.grid == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "deploymentgrids"}, key.Name)
	}
	s.grid.DeepCopyInto(o.(*v1.DeploymentGrid))
	return nil
}

// List answers with Nodes.
func (s *server) List(_ context.Context, l client.ObjectList, options ...client.ListOption) error {
	asked := (&client.ListOptions{}).ApplyOptions(options)
	if s.only != "" && asked.LabelSelector.String() != s.only {
		return nil
	}
	l.(*metav1.PartialObjectMetadataList).Items = make([]metav1.PartialObjectMetadata, s.nodes)
	return nil
}

// cached is the cache, which has a Grid; nothing can be written to it.
type cached struct {
	client.Client
	grid *v1.DeploymentGrid
}

// Get answers with the Grid.
func (c cached) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	c.grid.DeepCopyInto(o.(*v1.DeploymentGrid))
	return nil
}

func executionOn(s *server) *execution {
	g := foo("1")
	return &execution{
		reconciler: &reconciler{kind: deploymentGrid(), live: s, client: cached{grid: g}, metrics: NewMetrics(), now: time.Now},
		object:     g, known: newMemory().of(client.ObjectKeyFromObject(g), "1"),
		observed: &expand.Observed{Grid: expand.FromDeploymentGrid(g)}, last: v1.DeploymentGridStatus{},
	}
}

func foo(uid types.UID) *v1.DeploymentGrid {
	return &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "foo", UID: uid}}
}

// TestNoDeletionForAnEditedGrid: before a deletion the Grid itself is read live. If it is not the
// one that was decided on, nothing is deleted, and what is to be done is decided again.
func TestNoDeletionForAnEditedGrid(t *testing.T) {
	edited, annotated, going := foo("1"), foo("1"), foo("1")
	edited.Generation = 2
	annotated.Annotations = map[string]string{v1.AnnotationRemovalGrace: "never"}
	going.DeletionTimestamp = new(metav1.Now())
	for _, test := range []struct {
		what string
		grid *v1.DeploymentGrid
		err  error
	}{
		{"edited", edited, nil}, {"annotated", annotated, nil}, {"going", going, errGoing}, {"another", foo("2"), errGoing}, {"gone", nil, errGoing},
	} {
		for _, s := range []expand.Step{
			expand.Delete{Name: "foo-1", Value: "1", UID: "9", Released: true}, expand.Replace{Name: "foo-1", Value: "1", UID: "9"},
		} {
			e := executionOn(&server{grid: test.grid}) // its client cannot delete
			if err := e.run(t.Context(), []expand.Step{s}); !errors.Is(err, test.err) {
				t.Errorf("%s: the error is %v", test.what, err)
			}
			if (test.err == nil) != (e.again == editedDelay) {
				t.Errorf("%s: decides again after %s", test.what, e.again)
			}
		}
	}
}

// TestSpentBeforeDeletion: if the removals cannot be written down, only released children are
// deleted. A child that is not deleted has not spent its place.
func TestSpentBeforeDeletion(t *testing.T) {
	steps := []expand.Step{
		expand.Spend{Count: 2}, expand.Delete{Name: "foo-1", Value: "1", UID: "9"}, expand.Delete{Name: "foo-2", Value: "2", UID: "9"},
		expand.Delete{Name: "foo-3", Value: "3", UID: "9", Released: true},
	}
	for _, test := range []struct {
		status  client.SubResourceWriter
		refused string
		deleted []string
		spent   []int32
	}{
		{noStatus{}, "", []string{"foo-3"}, nil},
		{prunedStatus{}, "", []string{"foo-3"}, nil},
		{anyStatus{}, "", []string{"foo-1", "foo-2", "foo-3"}, []int32{2}},
		{anyStatus{}, "foo-2", []string{"foo-1", "foo-3"}, []int32{1}},
		{anyStatus{}, "foo-3", []string{"foo-1", "foo-2"}, []int32{2}},
	} {
		e := executionOn(&server{grid: foo("1")})
		api := &deleting{cached: e.client.(cached), status: test.status, refused: test.refused}
		e.client, e.observed.Now = api, time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)
		if err := e.run(t.Context(), steps); (err == nil) != (len(test.deleted) == 3) {
			t.Errorf("%+v: the error is %v", test, err)
		}
		var spent []int32
		for _, r := range e.observed.Status.Removals {
			spent = append(spent, r.Count)
		}
		if !slices.Equal(api.deleted, test.deleted) || !slices.Equal(spent, test.spent) {
			t.Errorf("%+v: %v are deleted, %v are spent", test, api.deleted, spent)
		}
	}
}

// deleting is an API server that deletes all children but one.
type deleting struct {
	cached
	status  client.SubResourceWriter
	refused string
	answer  error // to a deletion that is done
	deleted []string
}

// Status takes a status or not.
func (d *deleting) Status() client.SubResourceWriter { return d.status }

// Delete notes what is deleted.
func (d *deleting) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	deployments := schema.GroupResource{Group: "apps", Resource: "deployments"}
	switch name := o.GetName(); {
	case name == d.refused:
		return apierrors.NewConflict(deployments, name, errRefused)
	case slices.Contains(d.deleted, name):
		return apierrors.NewNotFound(deployments, name)
	}
	d.deleted = append(d.deleted, o.GetName())
	return d.answer
}

// anyStatus takes every status, and answers with it.
type anyStatus struct{ client.SubResourceWriter }

// Patch answers with what is patched.
func (anyStatus) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.SubResourcePatchOption) error {
	patch, err := p.Data(o)
	if err != nil {
		return err
	}
	return json.Unmarshal(patch, o)
}

// prunedStatus takes every status and stores nothing of it, as with an older definition.
type prunedStatus struct{ client.SubResourceWriter }

// Patch answers with an empty status.
func (prunedStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return nil
}

// TestNoAdoptionOnTheCachesWord: the cache has the Grid, the API server knows that it is going;
// orphans that match are left, after exactly one read of the Grid.
func TestNoAdoptionOnTheCachesWord(t *testing.T) {
	now := metav1.Now()
	for what, s := range map[string]*server{
		"being deleted": {grid: &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Name: "foo", UID: "1", DeletionTimestamp: &now}}},
		"another one":   {grid: &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Name: "foo", UID: "2"}}},
		"gone":          {},
	} {
		adopt := func(name string) expand.Step {
			return expand.Apply{Child: expand.Child{Name: name}, UID: "9", Adopt: true}
		}
		err := executionOn(s).run(t.Context(), []expand.Step{adopt("foo-1"), adopt("foo-2")})
		if !errors.Is(err, errGoing) || s.gets != 1 {
			t.Errorf("%s: %d reads, %v", what, s.gets, err)
		}
	}
}

// TestNoDeletionOnTheCachesWord: the last look before a deletion is at the API server's Nodes, not
// at the cache's (B-14), also at those with what the child selects by other keys.
func TestNoDeletionOnTheCachesWord(t *testing.T) {
	for only, others := range map[string]map[string]string{"": nil, "zone=a": {"zone": "a"}} {
		e := executionOn(&server{nodes: 1, only: only, grid: foo("1")})
		err := e.run(t.Context(), []expand.Step{expand.Delete{Name: "foo-1", Value: "1", UID: "9", ResourceVersion: "5", Released: true, Others: others}})
		if !errors.Is(err, errReturns) || len(e.notices) > 0 {
			t.Errorf("with Nodes that have %q: %v, %v", only, err, e.notices)
		}
	}
}

var errRefused = errors.New("refused")

// TestNoChildBeforeALossIsMarked: while no loss can be written down, no child is created, which
// would look older than the loss; others are applied.
func TestNoChildBeforeALossIsMarked(t *testing.T) {
	const template = `{"selector": {"matchLabels": {"a": "b"}},
		"template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}`
	for _, test := range []struct {
		marked expand.Live
		want   []string
	}{
		{expand.Live{Name: "foo-z"}, []string{"foo-c"}},
		{expand.Live{Name: "foo-z", Annotations: expand.MakePairs(map[string]string{v1.AnnotationLostAt: "2026-03-01T10:00:00Z"})}, []string{"foo-b", "foo-c"}},
	} {
		e := executionOn(&server{})
		w := &writing{cached: e.client.(cached), apply: func(context.Context, string) error { return errRefused }}
		e.client = w
		e.observed.Children = []expand.Live{test.marked}
		child := func(value string) expand.Child {
			return expand.Children(expand.Grid{
				Namespace: "default", Name: "foo", UID: "1",
				Spec: gridspec.Spec{Kind: expand.DeploymentGrid, Key: "zone", Template: []byte(template)},
			}, []string{value}, nil)[0]
		}
		err := e.run(t.Context(), []expand.Step{
			expand.MarkLost{Name: "foo-a", Value: "a"},
			expand.Apply{Child: child("b")}, expand.Apply{Child: child("c"), UID: "c-uid"},
		})
		slices.Sort(w.ended)
		if err == nil || !slices.Equal(w.ended, test.want) {
			t.Errorf("applied %v with the error %v, want %v and an error", w.ended, err, test.want)
		}
	}
}

// TestNothingIsDoneForAGridThatGoes: once the cache shows that in the midst of an execution, no
// other step is taken.
func TestNothingIsDoneForAGridThatGoes(t *testing.T) {
	now := metav1.Now()
	for what, meta := range map[string]metav1.ObjectMeta{
		"being deleted": {Name: "foo", UID: "1", DeletionTimestamp: &now},
		"another one":   {Name: "foo", UID: "2"},
	} {
		e := executionOn(&server{})
		e.client = cached{grid: &v1.DeploymentGrid{ObjectMeta: meta}}
		steps := []expand.Step{expand.Apply{Child: expand.Child{Name: "foo-a"}, UID: "9"}}
		if err := e.run(t.Context(), steps); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// noStatus takes no status.
type noStatus struct{ client.SubResourceWriter }

// Patch fails.
func (noStatus) Patch(context.Context, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
	return apierrors.NewInternalError(errors.New("etcd has no leader"))
}

// TestRemovalIsToldOnce: also while the cache still has the child, and if the status that is
// written next is not taken.
func TestRemovalIsToldOnce(t *testing.T) {
	api := &deleting{status: noStatus{}}
	recorder := events.NewFakeRecorder(10)
	for range 2 {
		e := executionOn(&server{grid: foo("1")})
		api.cached = e.client.(cached)
		e.client, e.events = api, recorder
		err := e.run(t.Context(), []expand.Step{expand.Delete{Name: "foo-1", Value: "1", UID: "9", ResourceVersion: "5", Released: true}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.tell(t.Context()); err == nil {
			t.Error("the status was taken")
		}
	}
	close(recorder.Events)
	var told []string
	for text := range recorder.Events {
		if strings.Contains(text, eventUnitRemoved) {
			told = append(told, text)
		}
	}
	if len(told) != 1 {
		t.Errorf("told: %q", told)
	}
}

// TestDeletedChildStandsUntilItHasGone: a finalizer may keep it. Its unit stays lost in the status,
// so that it is not reported as lost again when the cache shows the child again.
func TestDeletedChildStandsUntilItHasGone(t *testing.T) {
	e := executionOn(&server{grid: foo("1")})
	e.client = &deleting{cached: e.client.(cached)}
	e.observed.Grid.Key = "location"
	e.observed.Children = []expand.Live{{
		Name: "foo-1", UID: "9", ResourceVersion: "5", Owner: "1", NodeSelector: expand.MakePairs(map[string]string{"location": "1"}),
		Labels:      expand.MakePairs(map[string]string{v1.LabelSelector: "foo", v1.LabelKey: "location"}),
		Annotations: expand.MakePairs(map[string]string{v1.AnnotationValue: "1", v1.AnnotationLostAt: "2026-01-01T00:00:00Z"}),
	}}
	if err := e.run(t.Context(), []expand.Step{expand.Delete{Name: "foo-1", Value: "1", UID: "9", ResourceVersion: "5", Released: true}}); err != nil {
		t.Fatal(err)
	}
	units := expand.Status(*e.observed).Units
	if len(units) != 1 || units[0].Phase != v1.UnitLost || !strings.Contains(units[0].Message, "is being deleted") {
		t.Errorf("rows %+v", units)
	}
}

// TestLostAnswers: a child whose deletion was not answered may be gone. Its place in the budget is
// spent, and its replicas are kept.
func TestLostAnswers(t *testing.T) {
	e := executionOn(&server{grid: foo("1")})
	noAnswer := errors.New("net/http: request canceled (Client.Timeout exceeded while awaiting headers)")
	e.client = &deleting{cached: e.client.(cached), status: anyStatus{}, answer: noAnswer}
	e.observed.Now = time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)
	err := e.run(t.Context(), []expand.Step{
		expand.Spend{Count: 1}, expand.Delete{Name: "foo-1", Value: "1", UID: "9"}, expand.Replace{Name: "foo-2", Value: "2", UID: "9", Replicas: new(int32(5))},
	})
	if err == nil || len(e.observed.Status.Removals) != 1 {
		t.Errorf("spent: %v, %v", e.observed.Status.Removals, err)
	}
	if n := e.known.kept["foo-2"]; n == nil || *n != 5 {
		t.Error("the replicas are forgotten")
	}
}

// TestPlaceComesBack: a place that a refused deletion has not spent is free in the next reconcile,
// also if the status cannot be written before.
func TestPlaceComesBack(t *testing.T) {
	e := executionOn(&server{grid: foo("1")})
	e.events, e.observed.Now = events.NewFakeRecorder(100), time.Date(2026, 3, 1, 10, 0, 30, 0, time.UTC)
	e.client = &deleting{cached: e.client.(cached), status: anyStatus{}, refused: "foo-1"}
	e.known.pause.wrote(100_000, e.now())
	if err := e.run(t.Context(), []expand.Step{expand.Spend{Count: 1}, expand.Delete{Name: "foo-1", Value: "1", UID: "9"}}); err == nil {
		t.Error("the deletion is not refused")
	}
	if again, err := e.tell(t.Context()); again == 0 || err != nil {
		t.Errorf("the status is written: again after %s, %v", again, err)
	}
	if r := e.known.removals; r == nil || len(*r) > 0 {
		t.Errorf("spent: %v", r)
	}
}
