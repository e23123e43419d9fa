package assign

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"gridproxy/controller/api/site/v1alpha2"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Trim reduces a Node to what ReadNode and package grid read, so that a cache of many Nodes stays
// small. Package grid also reads since when the Node is ready.
func Trim(n *corev1.Node) {
	ready := slices.IndexFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool { return c.Type == corev1.NodeReady })
	var conditions []corev1.NodeCondition
	if ready >= 0 {
		c := n.Status.Conditions[ready]
		conditions = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
	}
	n.Spec = corev1.NodeSpec{Taints: n.Spec.Taints}
	n.Status = corev1.NodeStatus{Conditions: conditions}
	delete(n.Annotations, corev1.LastAppliedConfigAnnotation)
	n.OwnerReferences = nil
	var kept []metav1.ManagedFieldsEntry
	for _, e := range n.ManagedFields {
		keys, more := keysOf(e)
		if more = more && e.Manager == Manager; more || keys.Labels.Len()+keys.Annotations.Len() > 0 {
			kept = append(kept, metav1.ManagedFieldsEntry{Manager: e.Manager, Operation: e.Operation, FieldsV1: toFieldsV1(keys, more)})
		}
	}
	n.ManagedFields = kept
}

// ReadNode takes from a Node what decisions need.
func ReadNode(n *corev1.Node) Node {
	read := Node{
		Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion,
		Labels: n.Labels, Annotations: n.Annotations, Taints: n.Spec.Taints,
		Owned: newKeys(), Foreign: newKeys(), Legacy: newKeys(),
	}
	for _, c := range n.Status.Conditions {
		read.Ready = read.Ready || c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	}
	for _, e := range n.ManagedFields {
		keys, more := keysOf(e)
		if e.Manager == Manager {
			// What is ours as an Update are records, which no apply concerns.
			if e.Operation == metav1.ManagedFieldsOperationApply {
				read.Owned.add(keys)
				read.Overclaims = read.Overclaims || more
			}
			continue
		}
		read.Foreign.add(keys)
		if isSiteManager(e, keys, n.Labels) {
			read.Legacy.add(keys)
		}
	}
	return read
}

// isSiteManager reports whether an entry is of SuperEdge's site-manager, by what only it does:
// it updates Nodes with labels whose value says that a unit holds them. A user with kubectl may
// have done so too, and keeps the ownership of these keys.
func isSiteManager(e metav1.ManagedFieldsEntry, keys Keys, labels map[string]string) bool {
	if e.Operation != metav1.ManagedFieldsOperationUpdate || strings.HasPrefix(e.Manager, "kube") {
		return false
	}
	for key := range keys.Labels {
		if labels[key] == v1alpha2.UnitMark {
			return true
		}
	}
	return false
}

func (k Keys) add(other Keys) {
	k.Labels.Insert(other.Labels.UnsortedList()...)
	k.Annotations.Insert(other.Annotations.UnsortedList()...)
}

// keysOf returns the labels and annotations that an entry of managedFields owns. more reports
// whether it owns something else too, or cannot be read.
func keysOf(e metav1.ManagedFieldsEntry) (keys Keys, more bool) {
	keys = newKeys()
	if e.Subresource != "" || e.FieldsV1 == nil {
		return keys, false
	}
	var all map[string]map[string]map[string]any
	if json.Unmarshal(e.FieldsV1.GetRawBytes(), &all) != nil {
		return keys, true
	}
	metadata := all["f:metadata"]
	collect := func(name string, into sets.Set[string]) {
		for field := range metadata[name] {
			if key, isField := strings.CutPrefix(field, "f:"); isField {
				into.Insert(key)
			}
		}
		delete(metadata, name)
	}
	collect("f:labels", keys.Labels)
	collect("f:annotations", keys.Annotations)
	delete(all, "f:metadata")
	return keys, len(all)+len(metadata) > 0
}

// toFieldsV1 returns the fields from which keysOf returns keys and more.
func toFieldsV1(keys Keys, more bool) *metav1.FieldsV1 {
	spell := func(keys sets.Set[string]) map[string]any {
		out := map[string]any{}
		for key := range keys {
			out["f:"+key] = struct{}{}
		}
		return out
	}
	all := map[string]any{"f:metadata": map[string]any{"f:labels": spell(keys.Labels), "f:annotations": spell(keys.Annotations)}}
	if more {
		all["f:spec"] = map[string]any{"f:taints": struct{}{}}
	}
	raw, err := json.Marshal(all)
	if err != nil {
		return nil // cannot be: maps of strings
	}
	return metav1.NewFieldsV1(string(raw))
}

// ReadAnnotations returns the keys of annotations of Nodes that decisions about these units
// read or write.
func ReadAnnotations(units []*v1alpha2.NodeUnit) sets.Set[string] {
	keys := sets.New(v1alpha2.AnnotationTaints, v1alpha2.AnnotationKeptLabels, v1alpha2.AnnotationAllowRemoval)
	for _, u := range units {
		if u.Spec.Selector != nil {
			for key := range u.Spec.Selector.Annotations {
				keys.Insert(key)
			}
		}
		for key := range u.Spec.Set().Annotations {
			keys.Insert(key)
		}
	}
	return keys
}

// Matters reports whether a Node has changed in something that decisions rest on, of its
// annotations only those with the given keys and our own. Heartbeats do not matter.
func Matters(before, after *corev1.Node, annotations sets.Set[string]) bool {
	same := *before
	same.ResourceVersion = after.ResourceVersion
	if reflect.DeepEqual(&same, after) {
		return false
	}
	a, b := ReadNode(&same), ReadNode(after)
	for _, n := range []*Node{&a, &b} {
		n.Foreign.Annotations = n.Foreign.Annotations.Intersection(annotations)
		read := map[string]string{}
		for key, value := range n.Annotations {
			if annotations.Has(key) || n.Owned.Annotations.Has(key) {
				read[key] = value
			}
		}
		n.Annotations = read
	}
	return !reflect.DeepEqual(a, b)
}
