package expand

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/gridspec"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Child is what a Grid wants in one unit. A ServiceGrid has one, with an empty Value.
type Child struct {
	Value    string
	Name     string
	Template string // the name of the template, DefaultTemplate for spec.template
	// Object is what to apply, complete except for metadata.uid; nil if there is a Problem.
	Object  *unstructured.Unstructured
	Problem *Problem
}

// Children returns the children that a Grid wants in the units with the values, sorted by
// value, one for each value however many Nodes carry it (B-05). A problem of one does not stop
// the others (B-06). live has the existing children by name; nil: none exist. A ServiceGrid has
// one child whatever the values. The objects share parts of the template: copy one before you
// change it.
func Children(g Grid, values []string, live map[string]*Live) []Child {
	all := allMade(g, values, live, &Memo{})
	children := make([]Child, len(all))
	for i, m := range all {
		children[i] = m.child
	}
	return children
}

// allMade makes the children that Children returns, and reuses those that memo has.
func allMade(g Grid, values []string, live map[string]*Live, memo *Memo) []*made {
	all := &templates{grid: g, decoded: map[string]decoded{}}
	memo.about(g, len(values))
	if g.Kind == ServiceGrid {
		return []*made{{child: service(g, all)}}
	}
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	children := make([]*made, 0, len(values))
	taken := map[string]string{}
	for _, value := range values {
		name := g.childName(value)
		m := memo.workload(g, all, value, live[name])
		if other, found := taken[name]; found {
			c := m.child
			c.Object, c.Problem = nil, &Problem{ReasonNameCollision, fmt.Sprintf("its %s would have the name %s, as that of unit %s: "+
				"give the Nodes of one of the two another value", g.Kind.Child().Kind, c.Name, other)}
			m = &made{child: c}
		}
		taken[name] = value
		children = append(children, m)
	}
	return children
}

func workload(g Grid, all *templates, value string, live *Live) Child {
	c := Child{Value: value, Name: g.childName(value), Template: g.TemplateName(value)}
	shared, problem := all.get(c.Template)
	if problem != nil {
		c.Problem = problem
		return c
	}
	spec := maps.Clone(shared)
	pod := own(spec, "template") // checkWorkload has seen these
	own(own(pod, "spec"), "nodeSelector")[g.Key] = value
	if labels := gridspec.ObjectAt(pod, "metadata", "labels"); labels[v1.LabelTemplateHash] != nil {
		// SuperEdge wrote it into the Grid. It is not what the user asked for, and whether it still
		// exists depends on how the user applies manifests.
		delete(own(own(pod, "metadata"), "labels"), v1.LabelTemplateHash)
	}
	if g.selectsUnit(live) {
		unit := topology.LabelValue(value)
		own(own(spec, "selector"), "matchLabels")[v1.LabelUnit] = unit
		own(own(pod, "metadata"), "labels")[v1.LabelUnit] = unit
	}
	annotations := g.exactNames()
	if !live.unmarked() {
		annotations[v1.AnnotationValue] = value
	}
	c.Object = g.object(all, c.Name, annotations, spec)
	return c
}

func service(g Grid, all *templates) Child {
	c := Child{Name: g.childName(""), Template: v1.DefaultTemplate}
	shared, problem := all.get(c.Template)
	if problem != nil {
		c.Problem = problem
		return c
	}
	annotations := map[string]string{}
	for name, value := range g.Annotations {
		if !control(name) && !belongsToTool(name) {
			annotations[name] = value
		}
	}
	maps.Copy(annotations, g.exactNames())
	keys, _ := json.Marshal([]string{g.Key}) // strings cannot fail
	annotations[v1.AnnotationTopologyKeys] = string(keys)
	c.Object = g.object(all, c.Name, annotations, runtime.DeepCopyJSON(shared))
	return c
}

// control reports whether an annotation of a ServiceGrid is for us or for kubectl, so that the
// Service does not get it. superedge.io/topology-policy is not one: the node daemon reads it on
// the Service.
func control(name string) bool {
	switch name {
	case corev1.LastAppliedConfigAnnotation, v1.AnnotationGrid, v1.AnnotationKey, v1.AnnotationValue, v1.AnnotationLostAt,
		v1.AnnotationRemovalGrace, v1.AnnotationRemovalBudget, v1.AnnotationAllowRemoval, v1.AnnotationUnitSelector, v1.AnnotationOnImmutableChange,
		v1.AnnotationMisplacedPods, v1.AnnotationPaused, v1.AnnotationMaxUnits:
		return true
	}
	return false
}

// selectsUnit reports whether a child's selector holds its unit. That of an existing child is
// immutable, so it keeps its form. If live is nil, the annotation unit-selector decides.
func (g Grid) selectsUnit(live *Live) bool {
	if live != nil {
		_, found := live.Selects.Lookup(v1.LabelUnit)
		return found
	}
	return g.Annotations[v1.AnnotationUnitSelector] == "true"
}

// selector returns the value of the label by which the Grid's children are found.
func (g Grid) selector() string { return topology.LabelValue(g.Name) }

// exactNames returns annotations for what the labels cannot hold: a name of more than 63
// characters (B-08), a key with a prefix (B-09).
func (g Grid) exactNames() map[string]string {
	names := map[string]string{}
	if g.selector() != g.Name {
		names[v1.AnnotationGrid] = g.Name
	}
	if topology.LabelValue(g.Key) != g.Key {
		names[v1.AnnotationKey] = g.Key
	}
	return names
}

// belongsToTool reports whether a label or annotation is a mark by which a tool finds what it has
// applied. It deletes objects that carry its mark and that are not in its source: kubectl's
// ApplySets (KEP-3659), the object sets of Fleet and k3s, Argo CD, kapp, Flux. A Grid is in the
// source, its children are not.
func belongsToTool(name string) bool {
	domain, _, _ := strings.Cut(name, "/")
	switch domain {
	case "applyset.kubernetes.io", "objectset.rio.cattle.io", "argocd.argoproj.io", "kapp.k14s.io":
		return true
	}
	return strings.HasSuffix(domain, ".toolkit.fluxcd.io")
}

// object returns the object of a child. It has the labels of all children, and an owner
// reference to the Grid if that has a UID.
func (g Grid) object(all *templates, name string, annotations map[string]string, spec map[string]any) *unstructured.Unstructured {
	metadata := map[string]any{"name": name, "labels": all.sharedLabels()}
	if g.UID != "" { // a Grid in a file has none, and can own nothing
		metadata["ownerReferences"] = []any{map[string]any{
			"apiVersion": v1.GroupVersion().String(), "kind": string(g.Kind), "name": g.Name, "uid": string(g.UID),
			"controller": true, "blockOwnerDeletion": true,
		}}
	}
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": metadata, "spec": spec}}
	o.SetGroupVersionKind(g.Kind.Child())
	o.SetNamespace(g.Namespace)
	if len(annotations) > 0 {
		o.SetAnnotations(annotations)
	}
	return o
}

// own replaces the object in a field of parent by a copy, or by an empty one if it is absent,
// and returns it. The values in it stay shared.
func own(parent map[string]any, field string) map[string]any {
	o, _ := parent[field].(map[string]any)
	o = maps.Clone(o)
	if o == nil {
		o = map[string]any{}
	}
	parent[field] = o
	return o
}
