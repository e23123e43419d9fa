package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"
	"gridproxy/controller/federation/hub/plan"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// hubInMemory is a hub. Its client is a fake, because no real one fails on demand.
type hubInMemory struct {
	t      *testing.T
	store  client.Client // writes without being counted
	r      *reconciler
	now    time.Time
	mu     sync.Mutex
	writes []string
	// fail says what becomes of the write with this number, from 1 on: whether it is executed,
	// and the answer.
	fail      func(number int) (executed bool, answer error)
	behind    []v1alpha1.FleetCluster // what the cache shows; nil: what there is
	uids      int                     // that were given to new objects
	unchecked bool                    // objects of tests are no real ones
}

func newHubInMemory(t *testing.T, objects ...client.Object) *hubInMemory {
	w := &hubInMemory{t: t, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	scheme := runtime.NewScheme()
	w.must(errors.Join(v1.AddToScheme(scheme), AddToScheme(scheme), corev1.AddToScheme(scheme)))
	system := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: "hub"}}
	w.store = fake.NewClientBuilder().WithScheme(scheme).WithObjects(system).WithObjects(objects...).
		WithStatusSubresource(&v1alpha1.FleetCluster{}, &v1.DeploymentGrid{}).
		WithIndex(&v1alpha1.GridBundle{}, "metadata.name", func(o client.Object) []string { return []string{o.GetName()} }).Build()
	w.restart()
	return w
}

func (w *hubInMemory) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// restart is what is left after the process was killed.
func (w *hubInMemory) restart() {
	c := interceptor.NewClient(w.store.(client.WithWatch), w.counted())
	w.r = &reconciler{
		client: c, live: w.store, now: func() time.Time { return w.now }, events: events.NewFakeRecorder(100), metrics: NewMetrics(),
		decide: plan.Decide, memory: &memory{}, written: newWrites(), excess: excess{},
	}
	w.must(w.r.budget.Set("100%")) // with the grace of 0 nothing waits
}

// counted are functions that count and check all writes, and let some fail.
func (w *hubInMemory) counted() interceptor.Funcs {
	write := func(what string, do func() error) error {
		executed, answer := w.write(what)
		if executed {
			if err := do(); err != nil {
				return err
			}
			w.check(what)
		}
		return answer
	}
	name := func(o client.Object) string { return strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/") }
	return interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
			if clusters, ok := l.(*v1alpha1.FleetClusterList); ok && w.behind != nil {
				clusters.Items = w.behind
				return nil
			}
			return c.List(ctx, l, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return write("patch "+name(o), func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return write("apply "+name(o.(client.Object)), func() error {
				err := c.Apply(ctx, o, opts...)
				if err == nil {
					w.identify(o.(client.Object))
				}
				return err
			})
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return write("delete "+name(o), func() error { return c.Delete(ctx, o, opts...) })
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object, opts ...client.SubResourceUpdateOption) error {
			return write(sub+" "+name(o), func() error { return c.SubResource(sub).Update(ctx, o, opts...) })
		},
	}
}

// write counts a write, and says what becomes of it. Several are under way at the same time.
func (w *hubInMemory) write(what string) (executed bool, answer error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes = append(w.writes, what)
	if w.fail == nil {
		return true, nil
	}
	return w.fail(len(w.writes))
}

// identify gives a new object a UID, which the fake client does not.
func (w *hubInMemory) identify(o client.Object) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := &v1alpha1.GridBundle{ObjectMeta: metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName()}}
	if o.GetUID() == "" {
		w.uids++
		w.change(b, func() { b.UID = types.UID(fmt.Sprintf("bundle-%d", w.uids)) })
		o.SetUID(b.UID)
		o.SetResourceVersion(b.ResourceVersion)
	}
}

// check compares what must hold after every write: each Grid in a bundle exists with its finalizer.
func (w *hubInMemory) check(after string) {
	if w.unchecked {
		return
	}
	guarded := map[string]bool{}
	var grids v1.DeploymentGridList
	var bundles v1alpha1.GridBundleList
	w.list(&grids)
	w.list(&bundles)
	for _, g := range grids.Items {
		if isDistributed(&g) && len(g.Finalizers) > 0 {
			guarded["hub/"+string(g.UID)] = true
		}
	}
	for _, b := range bundles.Items {
		for _, from := range w.sources(b) {
			if !guarded[from] {
				w.t.Errorf("after %s: the bundle %s/%s has the Grid %s, which has no finalizer", after, b.Namespace, b.Name, from)
			}
		}
	}
}

// sources are the Grids of the hub that a bundle has.
func (w *hubInMemory) sources(b v1alpha1.GridBundle) []string {
	w.t.Helper()
	objects, err := archive.Unpack(b.Spec.Archive)
	if err != nil || archive.Digest(b.Spec.Archive) != b.Spec.Digest {
		w.t.Fatalf("bundle %s/%s: digest %s, %v", b.Namespace, b.Name, b.Spec.Digest, err)
	}
	var all []string
	for _, text := range objects {
		var o metav1.PartialObjectMetadata
		w.must(json.Unmarshal(text, &o))
		if from := o.Annotations[v1alpha1.AnnotationFrom]; from != "" {
			all = append(all, from)
		}
	}
	return all
}

func (w *hubInMemory) list(l client.ObjectList) {
	w.t.Helper()
	w.must(w.store.List(context.Background(), l))
}

// reconcile decides and executes once.
func (w *hubInMemory) reconcile() error {
	_, err := w.step()
	return err
}

func (w *hubInMemory) step() (reconcile.Result, error) {
	w.now = w.now.Add(time.Second)
	return w.r.Reconcile(context.Background(), reconcile.Request{})
}

// meanwhile has something happen between the reading of the caches and each decision.
func (w *hubInMemory) meanwhile(do func()) {
	decide := w.r.decide
	w.r.decide = func(o plan.Observed) plan.Plan {
		do()
		return decide(o)
	}
}

// settle reconciles until nothing is written. After a failed reconcile, the process is another one.
func (w *hubInMemory) settle() {
	w.t.Helper()
	for range 50 {
		before := len(w.writes)
		if result, err := w.step(); err != nil {
			w.restart()
		} else if len(w.writes) == before && (result.RequeueAfter == 0 || result.RequeueAfter > plan.BundleDelayMax) {
			return
		}
	}
	w.t.Fatalf("it still writes: %q", w.writes[max(0, len(w.writes)-10):])
}

// change writes to an object as a user does.
func (w *hubInMemory) change(o client.Object, do func()) {
	w.t.Helper()
	w.must(w.store.Get(context.Background(), client.ObjectKeyFromObject(o), o))
	do()
	w.must(w.store.Update(context.Background(), o))
}

func (w *hubInMemory) create(o client.Object) {
	w.t.Helper()
	w.must(w.store.Create(context.Background(), o))
}

func (w *hubInMemory) delete(o client.Object) {
	w.t.Helper()
	w.must(w.store.Delete(context.Background(), o))
}

// state is what the hub has, in lines.
func (w *hubInMemory) state() string {
	w.t.Helper()
	var text strings.Builder
	var grids v1.DeploymentGridList
	var clusters v1alpha1.FleetClusterList
	var bundles v1alpha1.GridBundleList
	for _, l := range []client.ObjectList{&grids, &clusters, &bundles} {
		w.list(l)
	}
	for _, g := range grids.Items {
		fmt.Fprintf(&text, "grid %s/%s %q\n", g.Namespace, g.Name, g.Finalizers)
	}
	for _, c := range clusters.Items {
		fmt.Fprintf(&text, "cluster %s %q withdrawn %q", c.Name, c.Finalizers, slices.Sorted(slices.Values(c.Status.Withdrawn)))
		for _, g := range c.Status.Grids {
			fmt.Fprintf(&text, " %s/%s:%s", g.Namespace, g.Name, g.State)
		}
		text.WriteString("\n")
	}
	for _, b := range bundles.Items {
		fmt.Fprintf(&text, "bundle %s/%s %q\n", b.Namespace, b.Name, w.sources(b))
	}
	return text.String()
}

// newGrid is a distributed Grid with a UID that is its name.
func newGrid(namespace, name string) *v1.DeploymentGrid {
	return &v1.DeploymentGrid{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: name, UID: types.UID(name), Labels: map[string]string{v1alpha1.LabelFederated: v1alpha1.Federated},
			Finalizers: []string{"others/finalizer"},
		},
		Spec: v1.WorkloadGridSpec{GridUniqKey: "location"},
	}
}

// newFleet is a FleetCluster with pull, and its namespace.
func newFleet(name string) []client.Object {
	return []client.Object{
		&v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("cluster-" + name)}, Spec: v1alpha1.FleetClusterSpec{Pull: true}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.NamespacePrefix + name, UID: types.UID("ns-" + name),
			Labels: map[string]string{v1alpha1.LabelCluster: name}}},
	}
}

// newReport says that a Grid is in a cluster.
func newReport(cluster string, g *v1.DeploymentGrid) *v1alpha1.GridReport {
	return &v1alpha1.GridReport{
		ObjectMeta: metav1.ObjectMeta{Namespace: v1alpha1.NamespacePrefix + cluster, Name: "report-" + g.Name, UID: types.UID("report-" + cluster + g.Name)},
		Spec: v1alpha1.GridReportSpec{
			Format: v1alpha1.ReportFormat, From: "hub/" + string(g.UID), Kind: "DeploymentGrid", Namespace: g.Namespace, Name: g.Name,
		},
	}
}

// newLease is what a member renews.
func newLease(cluster string, renewed time.Time, heartbeat string) *coordinationv1.Lease {
	at := metav1.NewMicroTime(renewed)
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: v1alpha1.NamespacePrefix + cluster, Name: v1alpha1.HeartbeatLease, UID: types.UID("lease-" + cluster),
			Labels: map[string]string{v1alpha1.LabelCluster: cluster}, Annotations: map[string]string{v1alpha1.AnnotationHeartbeat: heartbeat},
		},
		Spec: coordinationv1.LeaseSpec{RenewTime: &at},
	}
}

var errInjected = errors.New("the connection is lost")
