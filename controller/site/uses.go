package site

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/site/assign"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// uses reads which Grids and Services name label keys. One goroutine calls read.
type uses struct {
	cache   cache.Cache
	sources []*useSource
	since   time.Time // of the first read
	// lastKeys are the last keys of each Service whose annotation could be read. As in the node
	// daemon, they stay in force if it becomes malformed.
	lastKeys map[types.UID][]string
	wake     chan event.GenericEvent // an object has stopped naming a key
}

// useSource is a kind of object that names label keys.
type useSource struct {
	kind   string
	object client.Object
	list   func() client.ObjectList
	keys   func(client.Object) assign.NamedKeys
	// mayBeMalformed: no schema checks what names the keys.
	mayBeMalformed bool
	informer       cache.Informer // nil: not asked for yet, or the kind is not served
	asked          time.Time      // when the API server last did not serve the kind
}

func newUses(c cache.Cache) *uses {
	return &uses{
		cache: c, lastKeys: map[types.UID][]string{}, wake: make(chan event.GenericEvent, 1),
		sources: []*useSource{
			{
				kind: "Service", object: newService(),
				list: func() client.ObjectList {
					l := &metav1.PartialObjectMetadataList{}
					l.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ServiceList"))
					return l
				},
				keys:           func(o client.Object) assign.NamedKeys { return assign.KeysOfService(o.GetAnnotations()) },
				mayBeMalformed: true,
			},
			gridSource("DeploymentGrid", &v1.DeploymentGrid{}, func() client.ObjectList { return &v1.DeploymentGridList{} },
				func(g *v1.DeploymentGrid) string { return g.Spec.GridUniqKey }),
			gridSource("StatefulSetGrid", &v1.StatefulSetGrid{}, func() client.ObjectList { return &v1.StatefulSetGridList{} },
				func(g *v1.StatefulSetGrid) string { return g.Spec.GridUniqKey }),
			gridSource("ServiceGrid", &v1.ServiceGrid{}, func() client.ObjectList { return &v1.ServiceGridList{} },
				func(g *v1.ServiceGrid) string { return g.Spec.GridUniqKey }),
		},
	}
}

func gridSource[G client.Object](kind string, object G, list func() client.ObjectList, key func(G) string) *useSource {
	return &useSource{kind: kind, object: object, list: list, keys: func(o client.Object) assign.NamedKeys {
		if g, isGrid := o.(G); isGrid && key(g) != "" {
			return assign.NamedKeys{Keys: []string{key(g)}}
		}
		return assign.NamedKeys{}
	}}
}

// read returns all uses; nil if they cannot be read now. wait: the caches are expected to be filled
// soon, so that a decision can wait for them.
func (u *uses) read(ctx context.Context, now time.Time) (all *assign.Uses, wait bool, err error) {
	if u.since.IsZero() {
		u.since = now
	}
	for _, s := range u.sources {
		if err := u.follow(ctx, s, now); err != nil {
			return nil, false, err
		}
	}
	unsynced := func(s *useSource) bool { return s.informer != nil && !s.informer.HasSynced() }
	if slices.ContainsFunc(u.sources, unsynced) {
		return nil, now.Sub(u.since) < usesTimeout, nil
	}
	all, last := assign.NewUses(), map[types.UID][]string{}
	for _, s := range u.sources {
		if s.informer == nil {
			continue // the API server does not serve the kind: there are no objects of it
		}
		if err := u.add(ctx, s, all, last); err != nil {
			return nil, false, err
		}
	}
	u.lastKeys = last
	return all, false, nil
}

// follow starts to watch a kind, unless the API server does not serve it, which is no error.
func (u *uses) follow(ctx context.Context, s *useSource, now time.Time) error {
	if s.informer != nil || now.Sub(s.asked) < usesPeriod {
		return nil
	}
	informer, err := u.cache.GetInformer(ctx, s.object, cache.BlockUntilSynced(false))
	if meta.IsNoMatchError(err) {
		s.asked = now
		return nil
	}
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			UpdateFunc: func(before, after any) { u.released(s, before, after) },
			DeleteFunc: func(before any) { u.released(s, before, nil) },
		})
	}
	if err != nil {
		return fmt.Errorf("watching %ss for the label keys that they name: %w", s.kind, err)
	}
	s.informer = informer
	return nil
}

// released wakes the controller if an object named a key before and names it no more.
func (u *uses) released(s *useSource, before, after any) {
	keys := func(o any) []string {
		if object, isObject := o.(client.Object); isObject {
			return s.keys(object).Keys
		}
		return nil
	}
	_, isObject := before.(client.Object) // what a delete event lacks may have named a key
	stays := keys(after)
	if !isObject || slices.ContainsFunc(keys(before), func(key string) bool { return !slices.Contains(stays, key) }) {
		select {
		case u.wake <- event.GenericEvent{Object: s.object}:
		default: // it will be woken anyway
		}
	}
}

func (u *uses) add(ctx context.Context, s *useSource, all *assign.Uses, last map[types.UID][]string) error {
	list := s.list()
	if err := u.cache.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("reading %ss from the cache: %w", s.kind, err)
	}
	parsed := map[string]assign.NamedKeys{} // by annotation: few differ
	return meta.EachListItem(list, func(item runtime.Object) error {
		o, isObject := item.(client.Object)
		if !isObject {
			return nil
		}
		text := o.GetAnnotations()[topology.AnnotationKeys]
		named, known := parsed[text]
		if !known || text == "" {
			named = s.keys(o)
		}
		if s.mayBeMalformed {
			parsed[text] = named
		}
		if valid := u.lastKeys[o.GetUID()]; named.Malformed && len(valid) > 0 {
			named.Keys = slices.Compact(slices.Sorted(slices.Values(slices.Concat(named.Keys, valid))))
			last[o.GetUID()] = valid
		} else if !named.Malformed && len(named.Keys) > 0 && s.mayBeMalformed {
			last[o.GetUID()] = named.Keys
		}
		for _, key := range named.Keys {
			all.Add(key, s.kind+" "+o.GetNamespace()+"/"+o.GetName())
		}
		return nil
	})
}

// newService returns the object by which only the metadata of Services is read.
func newService() *metav1.PartialObjectMetadata {
	s := &metav1.PartialObjectMetadata{}
	s.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return s
}
