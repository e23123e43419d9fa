package grid

import (
	"encoding/json"
	"fmt"
	"slices"
	"unique"

	"gridproxy/controller/grid/expand"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The kinds of children as the caches hold them.
type (
	deployment  = reduced[appsv1.Deployment, *appsv1.Deployment]
	statefulSet = reduced[appsv1.StatefulSet, *appsv1.StatefulSet]
	service     = reduced[corev1.Service, *corev1.Service]

	deploymentList  = reducedList[appsv1.Deployment, *appsv1.Deployment, appsv1.DeploymentList, *appsv1.DeploymentList]
	statefulSetList = reducedList[appsv1.StatefulSet, *appsv1.StatefulSet, appsv1.StatefulSetList, *appsv1.StatefulSetList]
	serviceList     = reducedList[corev1.Service, *corev1.Service, corev1.ServiceList, *corev1.ServiceList]
)

// child is an object of a child's kind, whoever made it.
type child interface {
	client.Object
	// decode reads it from a decoded JSON object.
	decode(map[string]any) error
	// read returns what expand reads of it. It shares everything with the object: that never
	// changes.
	read() expand.Live
	// owner returns the name of the Grid that it belongs to, or may belong to, "" for none.
	owner() string
}

// decodable is a type of the API that can be decoded from protobuf.
type decodable[T any] interface {
	*T
	client.Object
	Unmarshal([]byte) error
}

// reduced is an object of the API type T with only what is read of it. It is reduced when it is
// decoded, and does not change afterwards. The API type takes more than a kilobyte even
// if it is empty. It cannot be encoded: no child is ever written as a whole.
type reduced[T any, P decodable[T]] struct {
	metav1.TypeMeta
	metav1.ObjectMeta // namespace, name, UID, version; of a bookmark, what it says
	grid              string
	shared            unique.Handle[shared]
	live              expand.Live
}

// shared is what the children of a Grid have in common. It is held once.
type shared struct {
	namespace, grid         string
	owner, ownerName, owned string
	labels, selects         expand.Pairs
}

func (r *reduced[T, P]) read() expand.Live { return r.live }
func (r *reduced[T, P]) owner() string     { return r.grid }

// DeepCopyObject copies what identifies the object, and shares the rest, which never changes.
func (r *reduced[T, P]) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// Reset makes it empty.
func (r *reduced[T, P]) Reset() { *r = reduced[T, P]{} }

// Unmarshal decodes protobuf.
func (r *reduced[T, P]) Unmarshal(text []byte) error {
	o := P(new(T))
	if err := o.Unmarshal(text); err != nil {
		return err
	}
	return r.reduce(o)
}

// UnmarshalJSON decodes JSON.
func (r *reduced[T, P]) UnmarshalJSON(text []byte) error {
	o := P(new(T))
	if err := json.Unmarshal(text, o); err != nil {
		return err
	}
	return r.reduce(o)
}

func (r *reduced[T, P]) decode(object map[string]any) error {
	o := P(new(T))
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, o); err != nil {
		return err
	}
	return r.reduce(o)
}

// MarshalJSON returns an error, because only a part of the object was kept.
func (r *reduced[T, P]) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("writing %s/%s: only a part of it was kept", r.Namespace, r.Name)
}

func (r *reduced[T, P]) reduce(o P) error {
	l, err := live(o)
	if err != nil {
		return err
	}
	grid := ownerGrid(gridKind(o), o)
	if grid == "" { // no status shows its state
		l.State = nil
	}
	r.shared = unique.Make(shared{
		namespace: o.GetNamespace(), grid: grid, owner: string(l.Owner), ownerName: l.OwnerName, owned: l.Owned,
		labels: l.Labels, selects: l.Selects,
	})
	s := r.shared.Value()
	l.Owner, l.OwnerName, l.Owned, l.Labels, l.Selects = types.UID(s.owner), s.ownerName, s.owned, s.labels, s.selects
	r.ObjectMeta = metav1.ObjectMeta{Namespace: s.namespace, Name: l.Name, UID: l.UID, ResourceVersion: l.ResourceVersion}
	if end := o.GetAnnotations()[metav1.InitialEventsAnnotationKey]; end != "" { // a bookmark: the watch is complete from here on
		r.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end}
	}
	r.grid, r.live = s.grid, l
	return nil
}

// gridKind returns the kind of Grid that may have an object as a child, by its Go type.
func gridKind(o client.Object) expand.Kind {
	switch o.(type) {
	case *appsv1.Deployment:
		return expand.DeploymentGrid
	case *appsv1.StatefulSet:
		return expand.StatefulSetGrid
	default:
		return expand.ServiceGrid
	}
}

// decodableList is a list type of the API that can be decoded from protobuf.
type decodableList[L any] interface {
	*L
	client.ObjectList
	Unmarshal([]byte) error
}

// reducedList is a list of reduced objects, decoded from the API type L.
type reducedList[T any, P decodable[T], L any, PL decodableList[L]] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []reduced[T, P]
}

// DeepCopyObject copies the list. The copied objects share their contents with the originals.
func (r *reducedList[T, P, L, PL]) DeepCopyObject() runtime.Object {
	c := *r
	r.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(r.Items)
	return &c
}

// Reset makes it empty.
func (r *reducedList[T, P, L, PL]) Reset() { *r = reducedList[T, P, L, PL]{} }

// Unmarshal decodes protobuf.
func (r *reducedList[T, P, L, PL]) Unmarshal(text []byte) error {
	list := PL(new(L))
	if err := list.Unmarshal(text); err != nil {
		return err
	}
	return r.reduce(list)
}

// UnmarshalJSON decodes JSON.
func (r *reducedList[T, P, L, PL]) UnmarshalJSON(text []byte) error {
	list := PL(new(L))
	if err := json.Unmarshal(text, list); err != nil {
		return err
	}
	return r.reduce(list)
}

func (r *reducedList[T, P, L, PL]) reduce(list PL) error {
	r.SetResourceVersion(list.GetResourceVersion())
	r.SetContinue(list.GetContinue())
	r.SetRemainingItemCount(list.GetRemainingItemCount())
	return meta.EachListItem(list, func(o runtime.Object) error {
		r.Items = append(r.Items, reduced[T, P]{})
		return r.Items[len(r.Items)-1].reduce(o.(P)) // an item of L is a T
	})
}
