package need

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
)

// FakeObject is what can be Put: a *Service, an *EndpointSlice or a *Node.
type FakeObject interface {
	metav1.Object
	GetObjectKind() schema.ObjectKind
}

type stored struct {
	key    string
	labels labels.Set
	fields fields.Set
	whole  json.RawMessage
	meta   json.RawMessage // as PartialObjectMetadata
}

type event struct {
	version int
	kind    watch.EventType
	object  stored
	before  *stored // the version that it replaces; nil = none
}

// store is every object of every kind, and all that ever happened to them.
type store struct {
	mu      sync.Mutex
	version int
	current map[string][]stored // by resource; sorted by key
	log     map[string][]event
	more    chan struct{} // closed when something happens
}

func newStore() *store {
	return &store{current: map[string][]stored{}, log: map[string][]event{}, more: make(chan struct{})}
}

func (s *store) put(o FakeObject) error {
	resource, gvk, own, err := kindOf(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	v, err := encode(o, gvk, own, s.version)
	if err != nil {
		return err
	}
	list := s.current[resource]
	i, found := slices.BinarySearchFunc(list, v.key, compareKey)
	if found {
		before := list[i]
		list[i] = v
		s.happened(resource, event{s.version, watch.Modified, v, &before})
		return nil
	}
	s.current[resource] = slices.Insert(list, i, v)
	s.happened(resource, event{s.version, watch.Added, v, nil})
	return nil
}

// remove takes an object away; one that is not there is an error.
func (s *store) remove(o FakeObject) error {
	resource, gvk, own, err := kindOf(o)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.current[resource]
	i, found := slices.BinarySearchFunc(list, keyOf(o), compareKey)
	if !found {
		return fmt.Errorf("removing %s: there is none", keyOf(o))
	}
	s.version++
	v, err := encode(o, gvk, own, s.version)
	if err != nil {
		return err
	}
	s.current[resource] = slices.Delete(list, i, i+1)
	s.happened(resource, event{s.version, watch.Deleted, v, nil})
	return nil
}

func (s *store) happened(resource string, e event) {
	s.log[resource] = append(s.log[resource], e)
	close(s.more)
	s.more = make(chan struct{})
}

func (s *store) list(resource string) ([]stored, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.current[resource]), s.version
}

// since is what happened to a collection after a version, and a channel that is closed once more
// happened.
func (s *store) since(resource string, version int) ([]event, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	log := s.log[resource]
	i, _ := slices.BinarySearchFunc(log, version+1, func(e event, v int) int { return e.version - v })
	return slices.Clone(log[i:]), s.more
}

func compareKey(v stored, key string) int { return strings.Compare(v.key, key) }

func keyOf(o metav1.Object) string { return o.GetNamespace() + "/" + o.GetName() }

// kindOf is which collection an object belongs to, and the fields of its own that clients select by.
func kindOf(o FakeObject) (resource string, gvk schema.GroupVersionKind, own fields.Set, err error) {
	switch o := o.(type) {
	case *corev1.Service:
		return "services", corev1.SchemeGroupVersion.WithKind("Service"), fields.Set{"spec.clusterIP": o.Spec.ClusterIP}, nil
	case *corev1.Node:
		return "nodes", corev1.SchemeGroupVersion.WithKind("Node"), nil, nil
	case *discoveryv1.EndpointSlice:
		return "endpointslices", discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), nil, nil
	}
	return "", gvk, nil, fmt.Errorf("%T is not kept here", o)
}

// encode writes an object down as it is now; the caller's object gets its kind and version.
func encode(o FakeObject, gvk schema.GroupVersionKind, own fields.Set, version int) (stored, error) {
	o.GetObjectKind().SetGroupVersionKind(gvk)
	o.SetResourceVersion(strconv.Itoa(version))
	whole, err := json.Marshal(o)
	if err != nil {
		return stored{}, fmt.Errorf("encoding %s: %w", keyOf(o), err)
	}
	var partial metav1.PartialObjectMetadata
	if err := json.Unmarshal(whole, &partial); err != nil {
		return stored{}, fmt.Errorf("encoding the metadata of %s: %w", keyOf(o), err)
	}
	partial.TypeMeta = partialKind("PartialObjectMetadata")
	meta, err := json.Marshal(partial)
	if err != nil {
		return stored{}, fmt.Errorf("encoding the metadata of %s: %w", keyOf(o), err)
	}
	selectable := fields.Set{"metadata.name": o.GetName(), "metadata.namespace": o.GetNamespace()}
	maps.Copy(selectable, own)
	return stored{key: keyOf(o), labels: o.GetLabels(), fields: selectable, whole: whole, meta: meta}, nil
}

func partialKind(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: metav1.SchemeGroupVersion.String(), Kind: kind}
}
