package grids

import (
	"sync"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// witness watches the Deployments, so that what lasts for a moment only is seen too.
type witness struct {
	mu   sync.Mutex
	seen map[string]life
}

// life is what was seen of the last Deployment of a name; the zero life is nothing.
type life struct {
	made, gone time.Time
	lostAt     string // the annotation, once there was one
}

func newWitness(t *testing.T, client kubernetes.Interface) *witness {
	t.Helper()
	w := &witness{seen: map[string]life{}}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
	informer := factory.Apps().V1().Deployments().Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.note(o, func(l *life) { *l = life{made: time.Now()} }) },
		UpdateFunc: func(_, o any) { w.note(o, func(*life) {}) },
		DeleteFunc: func(o any) { w.note(o, func(l *life) { l.gone = time.Now() }) },
	}); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	factory.Start(stop)
	t.Cleanup(func() { close(stop); factory.Shutdown() })
	factory.WaitForCacheSync(stop)
	return w
}

func (w *witness) note(o any, change func(*life)) {
	if missed, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = missed.Obj
	}
	d, ok := o.(*appsv1.Deployment)
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.seen[d.Name]
	change(&l)
	if lost := d.Annotations[v1.AnnotationLostAt]; lost != "" {
		l.lostAt = lost
	}
	w.seen[d.Name] = l
}

func (w *witness) of(name string) life {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[name]
}

func (w *witness) wait(t *testing.T, name string) life {
	t.Helper()
	wait.Until(t, "Deployment "+name+" is made", func() error { return wait.Check(!w.of(name).made.IsZero(), "it was never there") })
	return w.of(name)
}
