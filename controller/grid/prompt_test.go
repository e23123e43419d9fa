package grid

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	v1 "gridproxy/controller/api/v1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestNoTimeToWrite: whatever changes, all that it makes the controller write is written before any
// time passes.
func TestNoTimeToWrite(t *testing.T) {
	type change struct {
		What, Unit uint8
		Pause      uint16
	}
	rapid.Check(t, func(rt *rapid.T) {
		changes := rapid.SliceOfN(rapid.Make[change](), 1, 12).Draw(rt, "changes")
		var err error
		synctest.Test(t, func(t *testing.T) {
			p := newInstantCluster(t)
			defer p.queue.ShutDown()
			for i := 0; i < len(changes) && err == nil; i++ {
				begin := time.Now()
				err = errors.Join(p.change(i, changes[i].What%4, string("abcd"[changes[i].Unit%4])), p.reconcile(), p.written())
				if took := time.Since(begin); took > 0 {
					err = errors.Join(err, fmt.Errorf("it is written %s later", took))
				}
				time.Sleep(time.Duration(changes[i].Pause%3000) * time.Millisecond)
			}
		})
		if err != nil {
			rt.Fatalf("%v; changes %+v", err, changes)
		}
	})
}

// instantCluster is a cluster with one Grid, and the controller's queue. Its caches show a write
// when it is answered, and no request takes time: a real API server's answers do.
type instantCluster struct {
	client.Client
	t     *testing.T
	r     *reconciler
	queue queue
	grid  *v1.DeploymentGrid
	image string          // of its template
	units map[string]bool // with Nodes
}

func newInstantCluster(t *testing.T) *instantCluster {
	scheme := kruntime.NewScheme()
	if err := errors.Join(v1.AddToScheme(scheme), appsv1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	p := &instantCluster{t: t, grid: foo("1"), units: map[string]bool{}}
	p.Client = fake.NewClientBuilder().WithScheme(scheme).WithReturnManagedFields().WithObjects(p.grid).Build()
	p.r = &reconciler{
		kind: deploymentGrid(), client: p, live: p, now: time.Now, grace: -1, events: &events.FakeRecorder{}, metrics: NewMetrics(),
		memory: newMemory(), misplaced: &misplaced{},
	}
	p.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	if err := p.edit(0); err != nil {
		t.Fatal(err)
	}
	return p
}

// change changes a unit or its child, and calls the controller's handlers. If there is no child,
// the Grid gets another template.
func (p *instantCluster) change(number int, what uint8, unit string) error {
	ctx, c := p.t.Context(), &appsv1.Deployment{}
	missing := p.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: "foo-" + unit}, c)
	switch {
	case what == 0:
		p.units[unit] = true
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", number), Labels: map[string]string{"location": unit}}}
		err := p.Create(ctx, n)
		onNode(reachedKeys, p.r.wakeByKey).CreateFunc(ctx, event.TypedCreateEvent[*corev1.Node]{Object: n}, p.queue)
		return err
	case what == 1 && missing == nil:
		c.Spec.Template.Spec.Containers[0].Image = "another"
		return p.tell(c.Name, func() error { return p.Update(ctx, c, client.FieldOwner("another")) })
	case what == 2 && missing == nil:
		return p.tell(c.Name, func() error { return p.Delete(ctx, c) })
	default:
		return p.edit(number)
	}
}

func (p *instantCluster) edit(number int) error {
	p.image = fmt.Sprint("web:", number)
	p.grid.Generation++
	p.grid.Spec.GridUniqKey, p.grid.Spec.Template = "location", &v1.Template{JSON: fmt.Appendf(nil, `{"selector": {"matchLabels": {"app": "web"}},
"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": %q}]}}}`, p.image)}
	p.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p.grid)})
	return p.Update(p.t.Context(), p.grid)
}

// tell writes to a child, and tells the handlers.
func (p *instantCluster) tell(name string, write func() error) error {
	ctx, before, after, handlers := p.t.Context(), &deployment{}, &deployment{}, p.r.onChild()
	read := func(d *deployment) error { return p.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, d) }
	missing, err, gone := read(before), write(), read(after)
	switch {
	case missing != nil:
		handlers.CreateFunc(ctx, event.TypedCreateEvent[child]{Object: after}, p.queue)
	case gone != nil:
		handlers.DeleteFunc(ctx, event.TypedDeleteEvent[child]{Object: before}, p.queue)
	default:
		handlers.UpdateFunc(ctx, event.TypedUpdateEvent[child]{ObjectOld: before, ObjectNew: after}, p.queue)
	}
	return err
}

// reconcile does what is in the queue now.
func (p *instantCluster) reconcile() (err error) {
	for p.queue.Len() > 0 && err == nil {
		request, _ := p.queue.Get()
		var result reconcile.Result
		if result, err = p.r.Reconcile(p.t.Context(), request); result.RequeueAfter > 0 {
			p.queue.AddAfter(request, result.RequeueAfter)
		}
		p.queue.Done(request)
	}
	return err
}

// written returns an error unless each unit has the child that the Grid asks for.
func (p *instantCluster) written() error {
	for unit := range p.units {
		c := &appsv1.Deployment{}
		if err := p.Client.Get(p.t.Context(), client.ObjectKey{Namespace: "default", Name: "foo-" + unit}, c); err != nil {
			return err
		}
		if image := c.Spec.Template.Spec.Containers[0].Image; image != p.image {
			return fmt.Errorf("%s has image %s, want %s", c.Name, image, p.image)
		}
	}
	return nil
}

// Get reads a child as the controller's caches keep it.
func (p *instantCluster) Get(ctx context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	d, is := o.(*deployment)
	if !is {
		return p.Client.Get(ctx, key, o)
	}
	c := &appsv1.Deployment{}
	return errors.Join(p.Client.Get(ctx, key, c), d.reduce(c))
}

// List reads all of a kind.
func (p *instantCluster) List(ctx context.Context, list client.ObjectList, _ ...client.ListOption) error {
	l, is := list.(*deploymentList)
	if !is {
		return p.Client.List(ctx, list)
	}
	all := &appsv1.DeploymentList{}
	return errors.Join(p.Client.List(ctx, all), l.reduce(all))
}

// Apply applies a child. A new one gets a UID, which the fake client does not give.
func (p *instantCluster) Apply(ctx context.Context, o kruntime.ApplyConfiguration, options ...client.ApplyOption) error {
	applied, c := o.(client.Object), &appsv1.Deployment{}
	return p.tell(applied.GetName(), func() error {
		if err := p.Client.Apply(ctx, o, options...); err != nil || applied.GetUID() != "" {
			return err
		}
		err := p.Client.Get(ctx, client.ObjectKeyFromObject(applied), c)
		c.UID = uuid.NewUUID()
		err = errors.Join(err, p.Update(ctx, c))
		applied.SetUID(c.UID)
		applied.SetResourceVersion(c.ResourceVersion)
		return err
	})
}

// Status takes every status.
func (p *instantCluster) Status() client.SubResourceWriter { return prunedStatus{} }
