package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/grid/expand"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// indexed builds a client with the indexes that are added to a cache.
type indexed struct{ *fake.ClientBuilder }

// IndexField notes an index.
func (i indexed) IndexField(_ context.Context, o client.Object, field string, by client.IndexerFunc) error {
	i.WithIndex(o, field, by)
	return nil
}

// hub is a reconciler of DeploymentGrids on a hub with some objects.
func hub(t *testing.T, objects ...client.Object) *reconciler {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{v1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	builder := indexed{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...)}
	if err := addFleetIndexes(t.Context(), builder); err != nil {
		t.Fatal(err)
	}
	return &reconciler{kind: deploymentGrid(), client: builder.Build(), memory: newMemory(), distributes: true}
}

func fleetCluster(name string, silent *metav1.Time, grids ...v1alpha1.ClusterGrid) *v1alpha1.FleetCluster {
	return &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.FleetClusterStatus{SilentSince: silent, Grids: grids}}
}

func gridReport(namespace, name, from string, readyUnits int32) *v1alpha1.GridReport {
	return &v1alpha1.GridReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.GridReportSpec{
			Format: v1alpha1.ReportFormat, From: from, Kind: "DeploymentGrid", Namespace: "default", Name: "web", ReadyUnits: readyUnits,
		},
	}
}

func web(uid types.UID, labels map[string]string) *v1.DeploymentGrid {
	return &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: uid, Labels: labels}}
}

// TestFleet: a Grid has the clusters whose status names it, each with the report in its own
// namespace.
func TestFleet(t *testing.T) {
	since := metav1.NewTime(time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC))
	entry := func(uid, state, message string) v1alpha1.ClusterGrid {
		return v1alpha1.ClusterGrid{Kind: "DeploymentGrid", Namespace: "default", Name: "web", UID: uid, State: state, Message: message}
	}
	later, kind := gridReport("fleet-north", "later", "hub/1", 4), gridReport("fleet-north", "kind", "hub/1", 5)
	later.Spec.Format, kind.Spec.Kind = 2, "StatefulSetGrid"
	r := hub(t,
		fleetCluster("east", nil, entry("2", "Behind", "other"), entry("1", "Current", "")), fleetCluster("west", &since, entry("1", "NameCollision", "rename it")),
		fleetCluster("south", nil, entry("2", "Current", "")), fleetCluster("north", nil, entry("1", "Waiting", "")),
		gridReport("fleet-east", "b", "hub/1", 7), gridReport("fleet-east", "a", "hub/1", 3), gridReport("fleet-east", "c", "hub/2", 8),
		gridReport("fleet-south", "a", "hub/1", 9), gridReport("default", "a", "hub/1", 9), later, kind,
	)
	got, err := r.fleet(t.Context(), web("1", nil))
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, m := range got {
		text := fmt.Sprint(m.Name, " ", m.State, " ", m.Message)
		if !m.SilentSince.IsZero() {
			text += " " + m.SilentSince.UTC().Format(time.RFC3339)
		}
		if m.Report != nil {
			text += fmt.Sprint(" ", m.Report.Ready, " ready")
		}
		texts = append(texts, text)
	}
	slices.Sort(texts)
	if d := cmp.Diff([]string{"east Current  3 ready", "north Waiting ", "west NameCollision rename it 2026-03-01T10:00:00Z"}, texts); d != "" {
		t.Errorf("members (-want +got)\n%s", d)
	}
	for _, c := range []struct {
		what   string
		on     bool
		uid    types.UID
		labels map[string]string
		want   string
	}{
		{"not distributed", true, "3", nil, "nil"},
		{"with another value of the label", true, "3", map[string]string{v1alpha1.LabelFederated: "no"}, "nil"},
		{"to no cluster", true, "3", map[string]string{v1alpha1.LabelFederated: "yes"}, "0"},
		{"by a controller that is no hub", false, "1", map[string]string{v1alpha1.LabelFederated: "yes"}, "nil"},
	} {
		r.distributes = c.on
		members, err := r.fleet(t.Context(), web(c.uid, c.labels))
		text := fmt.Sprint(len(members))
		if members == nil {
			text = "nil"
		}
		if err != nil || text != c.want {
			t.Errorf("%s: %s members, want %s; %v", c.what, text, c.want, err)
		}
	}
}

// impatient is a queue in which nothing waits; paused is how much was to wait.
type impatient struct {
	queue
	paused int
}

// AddAfter adds at once.
func (q *impatient) AddAfter(r reconcile.Request, pause time.Duration) {
	if pause >= reportDelay {
		q.paused++
	}
	q.Add(r)
}

// woken are the Grids that an event puts into the queue.
func woken(t *testing.T, event func(queue)) (names []string) {
	t.Helper()
	q := &impatient{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
	event(q)
	q.ShutDown()
	for {
		request, over := q.Get()
		if over {
			slices.Sort(names)
			return names
		}
		names = append(names, request.String())
		q.Done(request)
	}
}

// changed returns what sends a handler the event of a change. nil stands for no object.
func changed[T any](t *testing.T, h handler.TypedFuncs[*T, reconcile.Request], old, new *T) func(queue) {
	return func(q queue) {
		switch {
		case old == nil:
			h.Create(t.Context(), event.TypedCreateEvent[*T]{Object: new}, q)
		case new == nil:
			h.Delete(t.Context(), event.TypedDeleteEvent[*T]{Object: old}, q)
		default:
			h.Update(t.Context(), event.TypedUpdateEvent[*T]{ObjectOld: old, ObjectNew: new}, q)
		}
	}
}

// TestReportsWakeTheirGrid: the one that they are about now, or were.
func TestReportsWakeTheirGrid(t *testing.T) {
	other := web("2", nil)
	other.Name = "other"
	r := hub(t, web("1", nil), other)
	h := r.onReport()
	of := func(from, version string) *v1alpha1.GridReport {
		report := gridReport("fleet-east", "a", from, 1)
		report.ResourceVersion = version
		return report
	}
	for _, c := range []struct {
		what string
		do   func(queue)
		want []string
	}{
		{"new", changed(t, h, nil, of("hub/1", "1")), []string{"default/web"}},
		{"there at the start", func(q queue) {
			h.Create(t.Context(), event.TypedCreateEvent[*v1alpha1.GridReport]{Object: of("hub/1", "1"), IsInInitialList: true}, q)
		}, nil},
		{"changed", changed(t, h, of("hub/1", "1"), of("hub/2", "2")), []string{"default/other", "default/web"}},
		{"not changed", changed(t, h, of("hub/1", "1"), of("hub/1", "1")), nil},
		{"gone", changed(t, h, of("hub/2", "1"), nil), []string{"default/other"}},
		{"about no Grid", changed(t, h, of("hub", "1"), nil), nil},
	} {
		if d := cmp.Diff(c.want, woken(t, c.do)); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, d)
		}
		q := &impatient{queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())}
		if c.do(q); q.paused != len(c.want) {
			t.Errorf("%s: %d Grids wait, want %d: a member can write reports as fast as it likes", c.what, q.paused, len(c.want))
		}
	}
}

// TestClustersWakeTheirGrids: a change of a cluster wakes its old and new Grids of this kind.
func TestClustersWakeTheirGrids(t *testing.T) {
	h := hub(t).onCluster()
	since := metav1.Now()
	entry := func(name, state string) v1alpha1.ClusterGrid {
		return v1alpha1.ClusterGrid{Kind: "DeploymentGrid", Namespace: "default", Name: name, UID: "uid-" + name, State: state}
	}
	service := entry("service", "Current")
	service.Kind = "ServiceGrid"
	two := fleetCluster("east", nil, entry("a", "Current"), entry("b", "Current"), service)
	for _, c := range []struct {
		what     string
		old, new *v1alpha1.FleetCluster
		want     []string
	}{
		{"nothing", two, fleetCluster("east", nil, entry("b", "Current"), entry("a", "Current"), service), nil},
		{"a state", two, fleetCluster("east", nil, entry("a", "Current"), entry("b", "Behind"), service), []string{"default/b"}},
		{"one more", two, fleetCluster("east", nil, entry("a", "Current"), entry("b", "Current"), entry("c", "Waiting"), service), []string{"default/c"}},
		{"one less", two, fleetCluster("east", nil, entry("b", "Current"), service), []string{"default/a"}},
		{"silent", two, fleetCluster("east", &since, two.Status.Grids...), []string{"default/a", "default/b"}},
		{"heard again", fleetCluster("east", &since, two.Status.Grids...), two, []string{"default/a", "default/b"}},
		{"new", nil, two, []string{"default/a", "default/b"}},
		{"gone", two, nil, []string{"default/a", "default/b"}},
	} {
		if d := cmp.Diff(c.want, woken(t, changed(t, h, c.old, c.new))); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, d)
		}
	}
}

// TestReportsInTheCacheAreSmall: of a report that no grid-controller has made, little is kept; one
// of ours is kept whole.
func TestReportsInTheCacheAreSmall(t *testing.T) {
	large := strings.Repeat("x", 10_000)
	r := gridReport("fleet-east", "a", "hub/1", 1)
	r.Annotations, r.Spec.States = map[string]string{"large": large}, map[string]v1.State{}
	r.Spec.Problem = &v1alpha1.Problem{Reason: "NameCollision", Message: large}
	for i := range 2000 {
		r.Spec.Status.Units = append(r.Spec.Status.Units, v1.UnitStatus{Value: fmt.Sprint(i), Phase: v1.UnitReady, Message: large})
		r.Spec.Status.Conditions = append(r.Spec.Status.Conditions, metav1.Condition{Type: fmt.Sprint(i), Message: large})
		r.Spec.Status.Clusters = append(r.Spec.Status.Clusters, v1.ClusterStatus{Message: large})
		r.Spec.States[fmt.Sprint(i)] = v1.State{JSON: []byte(`{"replicas":1}`)}
	}
	kept := func(r *v1alpha1.GridReport) string {
		trimmed, err := trim(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(trimmed)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	size := strconv.Itoa(r.Spec.Size())
	for range 2 { // a cache can ask again
		if text := kept(r); len(text) > 3000 || len(r.Spec.Status.Units) > 0 || r.Spec.Problem.Reason != "NameCollision" ||
			r.Annotations[v1alpha1.AnnotationReportBytes] != size {
			t.Errorf("of one with %s bytes %d are kept, %d rows, annotations %v", size, len(text), len(r.Spec.Status.Units), r.Annotations)
		}
	}
	r.Annotations = map[string]string{"large": large}
	r.Spec.States = map[string]v1.State{"a": {JSON: fmt.Appendf(nil, "%q", strings.Repeat("x", v1alpha1.MaxReportStates))}}
	for i := range 2000 {
		r.Spec.Status.Units = append(r.Spec.Status.Units, v1.UnitStatus{Value: fmt.Sprint(i), Phase: v1.UnitReady})
	}
	r.Spec.Status.Units[0].Message = large
	if text := kept(r); len(r.Spec.States) > 0 || len(text) > 200_000 || len(r.Spec.Status.Units) != 1000 || len(r.Spec.Status.Units[0].Message) > 512 ||
		len(r.Annotations) > 0 {
		t.Errorf("of one with many rows and large states %d bytes are kept, %d rows, %d states, annotations %v",
			len(text), len(r.Spec.Status.Units), len(r.Spec.States), r.Annotations)
	}
	ours := gridReport("fleet-east", "a", "hub/1", 1)
	ours.Spec.Status.Units = []v1.UnitStatus{{Value: "a", Child: "web-a", Phase: v1.UnitFailed, Reason: "Refused", Message: strings.Repeat("m", 256)}}
	ours.Spec.Status.Conditions = []metav1.Condition{{Type: v1.ConditionReady, Status: metav1.ConditionFalse}}
	ours.Spec.States = map[string]v1.State{"a": {JSON: []byte(`{"replicas":1}`)}}
	before, err := json.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	if after := kept(ours); after != string(before) {
		t.Errorf("of\n%s\nis kept\n%s", before, after)
	}
}

// TestNoticesOfTwoClusters: units of one value in two clusters are two, and one that is not heard
// of has neither failed nor returned.
func TestNoticesOfTwoClusters(t *testing.T) {
	status := func(own, west v1.UnitPhase) v1.WorkloadGridStatus {
		return v1.WorkloadGridStatus{Units: []v1.UnitStatus{
			{Value: "a", Phase: own, Reason: "R", Message: "m"}, {Cluster: "west", Value: "a", Phase: west, Reason: "R", Message: "m", Nodes: 3},
		}}
	}
	for _, c := range []struct {
		what          string
		before, after v1.WorkloadGridStatus
		want          []notice
	}{
		{"one fails", status(v1.UnitFailed, v1.UnitReady), status(v1.UnitFailed, v1.UnitFailed), []notice{{corev1.EventTypeWarning, "R", "unit west/a: m"}}},
		{"one is back", status(v1.UnitLost, v1.UnitLost), status(v1.UnitLost, v1.UnitReady), []notice{{corev1.EventTypeNormal, eventUnitReturned, "unit west/a has Nodes again: 3"}}},
		{"one is stale", status(v1.UnitReady, v1.UnitLost), status(v1.UnitReady, v1.UnitStale), nil},
	} {
		got := notices(noticed(c.before), c.after)
		if d := cmp.Diff(c.want, got, cmp.AllowUnexported(notice{})); d != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, d)
		}
	}
}

// TestFleetIsObserved: what is read of the clusters is in the observed state of each kind, and so
// is the last status of this process.
func TestFleetIsObserved(t *testing.T) {
	entry := v1alpha1.ClusterGrid{Kind: "ServiceGrid", Namespace: "default", Name: "web", UID: "1", State: expand.StateCurrent}
	r := hub(t, fleetCluster("east", nil, entry))
	r.kind, r.now = serviceGrid(), time.Now
	r.client = childless{r.client}
	g := &v1.ServiceGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "1"}}
	known := r.memory.of(client.ObjectKeyFromObject(g), g.UID)
	known.announced = &v1.WorkloadGridStatus{}
	observed, err := r.observe(t.Context(), g, g.Status, known)
	if err != nil || len(observed.Fleet) != 1 || observed.Fleet[0].Name != "east" || observed.Reported != known.announced {
		t.Errorf("%+v, %v", observed, err)
	}
}

type childless struct{ client.Client }

// List leaves a list of Services empty.
func (c childless) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, is := list.(*serviceList); is {
		return nil
	}
	return c.Client.List(ctx, list, options...)
}
