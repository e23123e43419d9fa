package sites

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	toolswatch "k8s.io/client-go/tools/watch"
)

// witness watches Nodes, units and groups, so that the order of what happens is known: by the revisions of the store,
// which all kinds have in common.
type witness struct {
	mu     sync.Mutex
	gone   map[string]uint64            // revisions of deletions, by kind and name
	labels map[string]map[string]string // by Node
	last   map[[2]string]uint64         // when a Node last lost a label, by key and value
}

func newWitness(t *testing.T, config *rest.Config) *witness {
	t.Helper()
	w := &witness{gone: map[string]uint64{}, labels: map[string]map[string]string{}, last: map[[2]string]uint64{}}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	t.Cleanup(func() { cancel(); running.Wait() })
	for kind, resource := range map[string]schema.GroupVersionResource{
		"node":      corev1.SchemeGroupVersion.WithResource("nodes"),
		"nodeunit":  {Group: "site.superedge.io", Version: "v1alpha2", Resource: "nodeunits"},
		"nodegroup": {Group: "site.superedge.io", Version: "v1alpha2", Resource: "nodegroups"},
	} {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			w.note(kind, watch.Event{Type: watch.Added, Object: &list.Items[i]})
		}
		from := lister{client.Resource(resource)}
		watcher, err := toolswatch.NewRetryWatcherWithContext(ctx, list.ResourceVersion, from)
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			for e := range watcher.ResultChan() {
				w.note(kind, e)
			}
		})
	}
	return w
}

type lister struct{ metadata.Getter }

// WatchWithContext is a watch.
func (l lister) WatchWithContext(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	return l.Watch(ctx, o)
}

func (w *witness) note(kind string, e watch.Event) {
	o, ok := e.Object.(*metav1.PartialObjectMetadata)
	if !ok {
		return
	}
	revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if kind != "node" {
		if e.Type == watch.Deleted {
			w.gone[kind+"/"+o.Name] = revision
		} else {
			delete(w.gone, kind+"/"+o.Name)
		}
		return
	}
	for key, value := range w.labels[o.Name] {
		if now, has := o.Labels[key]; !has || now != value || e.Type == watch.Deleted {
			w.last[[2]string{key, value}] = max(w.last[[2]string{key, value}], revision)
		}
	}
	w.labels[o.Name] = o.Labels
	if e.Type == watch.Deleted {
		delete(w.labels, o.Name)
	}
}

// goneAt is the revision of an object's deletion; 0: it is there.
func (w *witness) goneAt(kind, name string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.gone[strings.ToLower(kind)+"/"+name]
}

// lastWith is the revision in which the last Node lost a label with a value, "" for any, and whether one has it still.
func (w *witness) lastWith(key, value string) (last uint64, left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, labels := range w.labels {
		if has, found := labels[key]; found && (value == "" || has == value) {
			return 0, true
		}
	}
	for of, revision := range w.last {
		if of[0] == key && (value == "" || of[1] == value) {
			last = max(last, revision)
		}
	}
	return last, false
}
