package assign_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/removal"
	"gridproxy/controller/site/assign"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// tb is a test, plain or of random input.
type tb interface {
	Helper()
	Errorf(format string, args ...any)
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// cluster is a small model of the API server: it takes a Plan's steps as the API server would,
// field owners included.
type cluster struct {
	t        tb
	nodes    map[string]*corev1.Node
	units    map[string]*v1alpha2.NodeUnit
	groups   map[string]*v1alpha2.NodeGroup
	observed assign.Observed // what is not objects
	writes   int             // to Nodes
}

func newCluster(t tb) *cluster {
	return &cluster{
		t: t, nodes: map[string]*corev1.Node{}, units: map[string]*v1alpha2.NodeUnit{}, groups: map[string]*v1alpha2.NodeGroup{},
		observed: assign.Observed{Now: noon, Grace: 5 * time.Minute, Uses: assign.NewUses(), Budget: removal.Default()},
	}
}

// node adds a Node with labels "k=v" that a field manager called manager has set.
func (c *cluster) node(name, manager string, labels ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: map[string]string{}, Annotations: map[string]string{}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	keys := map[string]string{}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[key], keys[key] = value, ""
	}
	own(n, manager, metav1.ManagedFieldsOperationUpdate, keys, nil)
	c.nodes[name] = n
	return n
}

func (c *cluster) unit(name, spec string) *v1alpha2.NodeUnit {
	c.t.Helper()
	u := &v1alpha2.NodeUnit{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("unit-" + name), Generation: 1}}
	if err := json.Unmarshal([]byte(spec), &u.Spec); err != nil {
		c.t.Fatal(err)
	}
	c.units[name] = u
	return u
}

func (c *cluster) group(name, spec string) *v1alpha2.NodeGroup {
	c.t.Helper()
	g := &v1alpha2.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("group-" + name), Generation: 1}}
	if err := json.Unmarshal([]byte(spec), &g.Spec); err != nil {
		c.t.Fatal(err)
	}
	c.groups[name] = g
	return g
}

func (c *cluster) decide() assign.Plan {
	observed := c.observed
	observed.Nodes, observed.Units, observed.Groups = nil, nil, nil
	for _, n := range c.nodes {
		trimmed := n.DeepCopy()
		assign.Trim(trimmed)
		observed.Nodes = append(observed.Nodes, assign.ReadNode(trimmed))
	}
	for _, u := range c.units {
		observed.Units = append(observed.Units, u)
	}
	for _, g := range c.groups {
		observed.Groups = append(observed.Groups, g)
	}
	return assign.Decide(observed)
}

func (c *cluster) settle() {
	c.t.Helper()
	for range 10 {
		p := c.decide()
		if len(p.Nodes)+len(p.Units)+len(p.Groups)+len(p.Create)+len(p.Delete) == 0 {
			return
		}
		c.take(p)
	}
	c.t.Fatalf("no end after 10 rounds; still wanted: %s", text(c.decide()))
}

func (c *cluster) take(p assign.Plan) {
	c.t.Helper()
	for _, s := range p.Nodes {
		c.takeNode(s)
	}
	for _, u := range p.Create {
		u.UID, u.Generation = types.UID("unit-"+u.Name), 1
		c.units[u.Name] = u
	}
	for _, s := range p.Units {
		u := merged(c.t, c.units[s.Name], s)
		c.units[s.Name] = u
		if u.DeletionTimestamp != nil && len(u.Finalizers) == 0 {
			delete(c.units, s.Name)
		}
	}
	for _, s := range p.Groups {
		g := merged(c.t, c.groups[s.Name], s)
		c.groups[s.Name] = g
		if g.DeletionTimestamp != nil && len(g.Finalizers) == 0 {
			delete(c.groups, s.Name)
		}
	}
	for _, s := range p.Delete {
		c.units[s.Name].DeletionTimestamp = &metav1.Time{Time: noon}
	}
}

func (c *cluster) takeNode(s assign.NodeStep) {
	n := c.nodes[s.Name]
	if s.Overclaims {
		c.writes++
		n.ManagedFields = slices.DeleteFunc(n.ManagedFields, func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == assign.Manager && e.Operation == metav1.ManagedFieldsOperationApply
		})
		return
	}
	if len(s.Restricted) > 0 || s.Taints != nil {
		c.writes++
	}
	for key, value := range s.Restricted {
		if value == nil {
			delete(n.Labels, key)
			continue
		}
		n.Labels[key] = *value
	}
	if s.Taints != nil {
		n.Spec.Taints = *s.Taints
	}
	if s.Apply != nil {
		c.writes++
		apply(n, s.Apply.Labels, s.Apply.Annotations)
	}
	if len(s.Drop.Labels)+len(s.Drop.Annotations) > 0 {
		c.writes++
		for key := range s.Drop.Labels {
			delete(n.Labels, key)
		}
		for key := range s.Drop.Annotations {
			delete(n.Annotations, key)
		}
		disown(n, func(metav1.ManagedFieldsEntry) bool { return true }, s.Drop.Labels, s.Drop.Annotations)
	}
	if s.TaintRecord != nil {
		c.writes++
		if n.Annotations[v1alpha2.AnnotationTaints] = *s.TaintRecord; *s.TaintRecord == "" {
			delete(n.Annotations, v1alpha2.AnnotationTaints)
		}
	}
}

// apply is a forced server-side apply of labels and annotations.
func apply(n *corev1.Node, labels, annotations map[string]string) {
	isOurs := func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == assign.Manager && e.Operation == metav1.ManagedFieldsOperationApply
	}
	owned, foreign := assign.ReadNode(n).Owned, assign.ReadNode(n).Foreign
	for _, e := range n.ManagedFields {
		if isOurs(e) && strings.Contains(string(e.FieldsV1.GetRawBytes()), "f:taints") {
			n.Spec.Taints = nil // which the apply does not name
		}
	}
	for key := range owned.Labels {
		if _, stays := labels[key]; !stays && !foreign.Labels.Has(key) {
			delete(n.Labels, key)
		}
	}
	for key := range owned.Annotations {
		if _, stays := annotations[key]; !stays && !foreign.Annotations.Has(key) {
			delete(n.Annotations, key)
		}
	}
	n.ManagedFields = slices.DeleteFunc(n.ManagedFields, isOurs)
	for key, value := range labels {
		if old, has := n.Labels[key]; has && old != value {
			disown(n, func(metav1.ManagedFieldsEntry) bool { return true }, map[string]string{key: ""}, nil)
		}
		n.Labels[key] = value
	}
	for key, value := range annotations {
		n.Annotations[key] = value
	}
	own(n, assign.Manager, metav1.ManagedFieldsOperationApply, labels, annotations)
}

func own(n *corev1.Node, manager string, operation metav1.ManagedFieldsOperationType, labels, annotations map[string]string) {
	spell := func(keys map[string]string) map[string]any {
		out := map[string]any{}
		for key := range keys {
			out["f:"+key] = map[string]any{}
		}
		return out
	}
	raw, _ := json.Marshal(map[string]any{"f:metadata": map[string]any{"f:labels": spell(labels), "f:annotations": spell(annotations)}})
	n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(string(raw)),
	})
}

func disown(n *corev1.Node, of func(metav1.ManagedFieldsEntry) bool, labels, annotations map[string]string) {
	for i, e := range n.ManagedFields {
		if !of(e) {
			continue
		}
		var f map[string]map[string]map[string]any
		_ = json.Unmarshal(e.FieldsV1.GetRawBytes(), &f)
		for key := range labels {
			delete(f["f:metadata"]["f:labels"], "f:"+key)
		}
		for key := range annotations {
			delete(f["f:metadata"]["f:annotations"], "f:"+key)
		}
		raw, _ := json.Marshal(f)
		n.ManagedFields[i].FieldsV1 = metav1.NewFieldsV1(string(raw))
	}
}

// merged is an object after a step's merge patches.
func merged[T any](t tb, object *T, s assign.Patch) *T {
	t.Helper()
	fields := asMap(t, object)
	mergeInto(fields, asMap(t, s.Main))
	if s.Status != nil {
		mergeInto(fields, map[string]any{"status": asMap(t, s.Status)})
	}
	raw, _ := json.Marshal(fields)
	var out T
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return &out
}

func asMap(t tb, o any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func mergeInto(into, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isObject:
			below, found := into[key].(map[string]any)
			if !found {
				below = map[string]any{}
				into[key] = below
			}
			mergeInto(below, inner)
		default:
			into[key] = value
		}
	}
}

// labels are a Node's without records, sorted, "k=v".
func (c *cluster) labels(node string) string {
	var all []string
	for _, key := range slices.Sorted(maps.Keys(c.nodes[node].Labels)) {
		if strings.HasPrefix(key, v1alpha2.RecordPrefix) {
			continue
		}
		all = append(all, key+"="+c.nodes[node].Labels[key])
	}
	return strings.Join(all, " ")
}

func (c *cluster) taints(node string) string {
	var all []string
	for _, t := range c.nodes[node].Spec.Taints {
		all = append(all, t.ToString())
	}
	return strings.Join(all, " ")
}

func (c *cluster) want(node, labels string) {
	c.t.Helper()
	if got := c.labels(node); got != labels {
		c.t.Errorf("Node %s has labels %q, want %q", node, got, labels)
	}
}

func (c *cluster) wantTaints(node, taints string) {
	c.t.Helper()
	if got := c.taints(node); got != taints {
		c.t.Errorf("Node %s has taints %q, want %q", node, got, taints)
	}
}

// wantSays checks that a condition says all of these words, or that it is absent without words.
func (c *cluster) wantSays(conditions []metav1.Condition, kind string, words ...string) {
	c.t.Helper()
	got := says(conditions, kind)
	if len(words) == 0 && got != "" {
		c.t.Errorf("%s says %q, and is not wanted", kind, got)
	}
	for _, w := range words {
		if !strings.Contains(got, w) {
			c.t.Errorf("%s says %q, want also %q", kind, got, w)
		}
	}
}

func says(conditions []metav1.Condition, kind string) string {
	for _, c := range conditions {
		if c.Type == kind {
			return c.Message
		}
	}
	return ""
}

func text(o any) string {
	raw, err := json.MarshalIndent(o, "", " ")
	return fmt.Sprintf("%s%v", raw, map[bool]string{true: ""}[err == nil])
}
