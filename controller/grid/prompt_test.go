package grid

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	v1 "gridproxy/controller/api/v1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// instantCluster is a cluster with one Grid, and the controller's queue. Its caches show a write
// when it is answered, and no request takes time: a real API server's answers do.
type instantCluster struct {
	client.Client
	t     *testing.T
	r     *reconciler
	queue queue

	mu       sync.Mutex
	grid     *v1.DeploymentGrid
	image    string // of its template
	nodes    []corev1.Node
	children map[string]*appsv1.Deployment
	version  int
}

// TestNoTimeToWrite: whatever changes, all that it makes the controller write is written before any
// time passes.
func TestNoTimeToWrite(t *testing.T) {
	type change struct {
		what  string
		unit  string
		pause time.Duration
	}
	rapid.Check(t, func(rt *rapid.T) {
		changes := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) change {
			return change{
				rapid.SampledFrom([]string{"template", "node", "edit", "deletion"}).Draw(rt, "what"), rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "unit"),
				time.Duration(rapid.IntRange(0, 3000).Draw(rt, "pause")) * time.Millisecond,
			}
		}), 1, 12).Draw(rt, "changes")
		failure := ""
		synctest.Test(t, func(t *testing.T) {
			p := newInstantCluster(t)
			for i := 0; i < len(changes) && failure == ""; i++ {
				p.change(changes[i].what, changes[i].unit, i)
				synctest.Wait()
				if problem := p.problem(); problem != "" {
					failure = fmt.Sprintf("no time has passed since change %d, and %s", i, problem)
				}
				time.Sleep(changes[i].pause)
			}
		})
		if failure != "" {
			rt.Fatalf("%s; changes %+v", failure, changes)
		}
	})
}

func newInstantCluster(t *testing.T) *instantCluster {
	p := &instantCluster{t: t, grid: foo("1"), children: map[string]*appsv1.Deployment{}}
	p.grid.Spec.GridUniqKey = "location"
	p.edit(0)
	p.r = &reconciler{
		kind: deploymentGrid(), client: p, live: p, now: time.Now, grace: -1, events: &events.FakeRecorder{}, metrics: NewMetrics(),
		memory: newMemory(), misplaced: &misplaced{},
	}
	p.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstPause, lastPause))
	ended := make(chan struct{})
	t.Cleanup(func() { p.queue.ShutDown(); <-ended })
	go func() {
		defer close(ended)
		for q, ended := p.queue.Get(); !ended; q, ended = p.queue.Get() {
			result, err := p.r.Reconcile(t.Context(), q)
			if err != nil {
				t.Error(err)
			}
			if result.RequeueAfter > 0 {
				p.queue.AddAfter(q, result.RequeueAfter)
			}
			p.queue.Done(q)
		}
	}()
	return p
}

// change lets something happen, of which the controller's handlers hear.
func (p *instantCluster) change(what, unit string, number int) {
	c := p.child("foo-" + unit)
	switch {
	case what == "node":
		n := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("node-", number), Labels: map[string]string{"location": unit}}}
		p.nodes = append(p.nodes, n)
		onNode(reachedKeys, p.r.wakeByKey).CreateFunc(p.t.Context(), event.TypedCreateEvent[*corev1.Node]{Object: &n}, p.queue)
	case what == "edit" && c != nil: // by another field manager
		c.Spec.Template.Spec.Containers[0].Image = "another"
		c.ManagedFields = nil
		p.store(c)
	case what == "deletion" && c != nil:
		delete(p.children, c.Name)
		p.r.onChild().DeleteFunc(p.t.Context(), event.TypedDeleteEvent[child]{Object: p.reduced(c)}, p.queue)
	default:
		p.edit(number)
		p.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(p.grid)})
	}
}

// edit gives the Grid another template.
func (p *instantCluster) edit(number int) {
	p.image = fmt.Sprint("web:", number)
	p.grid.Generation++
	p.grid.Spec.Template = &v1.Template{JSON: fmt.Appendf(nil, `{"selector": {"matchLabels": {"app": "web"}},
"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "web", "image": %q}]}}}`, p.image)}
}

// problem says which child is not what the Grid says; "": each is.
func (p *instantCluster) problem() string {
	for _, n := range p.nodes {
		name := "foo-" + n.Labels["location"]
		switch child := p.child(name); {
		case child == nil:
			return "there is no " + name
		case child.Spec.Template.Spec.Containers[0].Image != p.image:
			return fmt.Sprintf("%s has image %s, want %s", name, child.Spec.Template.Spec.Containers[0].Image, p.image)
		}
	}
	return ""
}

// child returns a copy of a child, or nil.
func (p *instantCluster) child(name string) *appsv1.Deployment {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.children[name].DeepCopy()
}

func (p *instantCluster) reduced(o *appsv1.Deployment) *deployment {
	d := &deployment{}
	if err := d.reduce(o); err != nil {
		p.t.Error(err)
	}
	return d
}

// store writes a child, and has the handlers hear of it.
func (p *instantCluster) store(o *appsv1.Deployment) {
	p.mu.Lock()
	old := p.children[o.Name]
	p.version++
	o.ResourceVersion = strconv.Itoa(1000 + p.version)
	if o.UID = types.UID(o.ResourceVersion); old != nil {
		o.UID = old.UID
	}
	p.children[o.Name] = o.DeepCopy()
	p.mu.Unlock()
	if old == nil {
		p.r.onChild().CreateFunc(p.t.Context(), event.TypedCreateEvent[child]{Object: p.reduced(o)}, p.queue)
	} else {
		p.r.onChild().UpdateFunc(p.t.Context(), event.TypedUpdateEvent[child]{ObjectOld: p.reduced(old), ObjectNew: p.reduced(o)}, p.queue)
	}
}

// Get answers with the Grid or a child.
func (p *instantCluster) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	if g, is := o.(*v1.DeploymentGrid); is {
		p.grid.DeepCopyInto(g)
		return nil
	}
	found := p.child(key.Name)
	switch o := o.(type) {
	case *deployment:
		if found != nil {
			return o.reduce(found)
		}
	case *metav1.PartialObjectMetadata:
		if found != nil {
			o.ObjectMeta = found.ObjectMeta
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "deployments"}, key.Name)
}

// List answers with all of a kind.
func (p *instantCluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch list := list.(type) {
	case *corev1.NodeList:
		list.Items = slices.Clone(p.nodes)
	case *v1.DeploymentGridList:
		list.Items = []v1.DeploymentGrid{*p.grid.DeepCopy()}
	case *deploymentList:
		all := &appsv1.DeploymentList{}
		for _, name := range slices.Sorted(maps.Keys(p.children)) {
			all.Items = append(all.Items, *p.children[name].DeepCopy())
		}
		return list.reduce(all)
	}
	return nil
}

// Apply stores a child.
func (p *instantCluster) Apply(_ context.Context, o kruntime.ApplyConfiguration, _ ...client.ApplyOption) error {
	text, err := json.Marshal(o)
	applied := &appsv1.Deployment{}
	if err == nil {
		err = json.Unmarshal(text, applied)
	}
	if err != nil {
		return err
	}
	applied.ManagedFields = []metav1.ManagedFieldsEntry{fields(Manager, metav1.ManagedFieldsOperationApply, `{"f:spec":{"f:template":{}}}`)}
	p.store(applied)
	if text, err = json.Marshal(applied); err != nil {
		return err
	}
	return json.Unmarshal(text, o)
}

// Status takes every status.
func (p *instantCluster) Status() client.SubResourceWriter { return prunedStatus{} }
