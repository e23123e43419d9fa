package watch

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// access is how the objects of a kind are asked for.
type access struct {
	what    string             // the kind, for messages
	options metav1.ListOptions // selectors
	lister  lister
	outages []*outage // that an answer may begin or end
}

// heard reports an answer to all outages; nil = one without error.
func (a access) heard(ctx context.Context, err error) {
	for _, o := range a.outages {
		o.heard(ctx, a.what, err)
	}
}

// lister is the part of a typed or metadata client that is used.
type lister struct {
	list  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watch func(context.Context, metav1.ListOptions) (watch.Interface, error)
}

func listerOf[L runtime.Object](client interface {
	List(context.Context, metav1.ListOptions) (L, error)
	Watch(context.Context, metav1.ListOptions) (watch.Interface, error)
}) lister {
	return lister{
		list:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return client.List(ctx, o) },
		watch: client.Watch,
	}
}

// listerWatcher returns what an informer needs. Its requests are repeated until a connection
// can be made, and every outcome is reported to the outages.
func (a access) listerWatcher() cache.ListerWatcher {
	selected := func(o metav1.ListOptions) metav1.ListOptions {
		o.LabelSelector, o.FieldSelector = a.options.LabelSelector, a.options.FieldSelector
		return o
	}
	return listFirst{&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return connected(ctx, connectPause, a.heard, func() (runtime.Object, error) { return a.lister.list(ctx, selected(o)) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return connected(ctx, connectPause, a.heard, func() (watch.Interface, error) { return a.lister.watch(ctx, selected(o)) })
		},
	}}
}

// listFirst has a kind listed and then watched, instead of a watch that begins with everything
// (KEP-3157): an API server compresses lists and no streams, and a site's uplink is narrow.
type listFirst struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported returns true, so that client-go lists before it watches.
func (listFirst) IsWatchListSemanticsUnSupported() bool { return true }
