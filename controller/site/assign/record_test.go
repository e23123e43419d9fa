package assign_test

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

// history is a random history of a cluster in which one Node, "evil", writes about itself whatever
// a kubelet may write: annotations, managedFields, and labels that are not restricted.
type history struct {
	*cluster
	r *rapid.T
	// set and admins are the restricted things that some unit or the admin has set on a Node, as "node
	// thing".
	set, admins map[string]bool
}

func restrictedKeys() []string {
	return []string{"topology.kubernetes.io/zone", "rack.k8s.io/x", "node-restriction.kubernetes.io/y"}
}

func pairs() []string { return []string{"t:NoSchedule", "t:NoExecute", "s:NoSchedule"} }

// things are the restricted labels and taints of a Node but records, with their values.
func things(n *corev1.Node) map[string]string {
	all := map[string]string{}
	for key, value := range n.Labels {
		if v1alpha2.RestrictedKey(key) && !strings.HasPrefix(key, v1alpha2.RecordPrefix) {
			all[key] = value
		}
	}
	for _, t := range n.Spec.Taints {
		all[t.Key+":"+string(t.Effect)] = t.Value
	}
	return all
}

// admin sets or removes something restricted on a Node.
func (h *history) admin() {
	n := h.nodes[rapid.SampledFrom([]string{"evil", "good"}).Draw(h.r, "the admin's Node")]
	value := rapid.SampledFrom([]string{"1", "2", v1alpha2.UnitMark}).Draw(h.r, "value")
	if pair := rapid.SampledFrom(append(pairs(), "")).Draw(h.r, "taint"); pair != "" {
		key, effect, _ := strings.Cut(pair, ":")
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key && string(t.Effect) == effect })
		if rapid.Bool().Draw(h.r, "is there") {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
			h.admins[n.Name+" "+pair] = true
		}
		return
	}
	key := rapid.SampledFrom(restrictedKeys()).Draw(h.r, "label")
	if rapid.Bool().Draw(h.r, "is there") {
		if n.Labels[key] != value {
			disown(n, func(metav1.ManagedFieldsEntry) bool { return true }, map[string]string{key: ""}, nil)
		}
		n.Labels[key], h.admins[n.Name+" "+key] = value, true
		own(n, "kubectl-label", metav1.ManagedFieldsOperationUpdate, map[string]string{key: ""}, nil)
		return
	}
	removeLabel(n, key)
}

// forge has the Node evil write about itself.
func (h *history) forge() {
	n, r := h.nodes["evil"], h.r
	switch rapid.IntRange(0, 3).Draw(r, "forged") {
	case 0:
		n.Annotations[v1alpha2.AnnotationTaints] = strings.Join(rapid.SliceOf(rapid.SampledFrom(pairs())).Draw(r, "taints"), ",")
	case 1:
		key := rapid.SampledFrom([]string{v1alpha2.AnnotationKeptLabels, v1alpha2.AnnotationAllowRemoval}).Draw(r, "annotation")
		n.Annotations[key] = strings.Join(rapid.SliceOf(rapid.SampledFrom(restrictedKeys())).Draw(r, "keys"), ",")
	case 2:
		key := rapid.SampledFrom([]string{"u", "v", "ghost"}).Draw(r, "mark")
		n.Labels[key] = v1alpha2.UnitMark
	default:
		n.ManagedFields = nil
		for range rapid.IntRange(0, 3).Draw(r, "entries") {
			keys := map[string]string{}
			claims := append(restrictedKeys(), "u", "v", "ghost")
			for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
				if strings.HasPrefix(key, v1alpha2.RecordPrefix) {
					claims = append(claims, key)
				}
			}
			for _, key := range claims {
				if rapid.Bool().Draw(r, "claims "+key) {
					keys[key] = ""
				}
			}
			own(n, rapid.SampledFrom([]string{assign.Manager, "site-manager", "kubectl-label"}).Draw(r, "manager"),
				rapid.SampledFrom([]metav1.ManagedFieldsOperationType{"Apply", "Update"}).Draw(r, "operation"), keys, nil)
			if e := &n.ManagedFields[len(n.ManagedFields)-1]; rapid.Bool().Draw(r, "claims the taints") {
				e.FieldsV1 = metav1.NewFieldsV1(strings.TrimSuffix(string(e.FieldsV1.GetRawBytes()), "}") + `,"f:spec":{"f:taints":{}}}`)
			}
		}
	}
}

// change creates, changes or deletes a unit.
func (h *history) change() {
	r, name := h.r, rapid.SampledFrom([]string{"u", "v"}).Draw(h.r, "unit")
	if u := h.units[name]; u != nil && u.DeletionTimestamp == nil && rapid.Bool().Draw(r, "is deleted") {
		h.deleteUnit(name)
		return
	} else if u != nil && u.DeletionTimestamp != nil {
		return
	}
	key, effect, _ := strings.Cut(rapid.SampledFrom(pairs()).Draw(r, "taint"), ":")
	spec := fmt.Sprintf(`{"nodes": [%s], "selector": {"matchLabels": {"in": "yes"}}, "setNode": {"labels": {%q: %q}, "taints": [{"key": %q, "value": %q, "effect": %q}]}}`,
		rapid.SampledFrom([]string{``, `"evil"`, `"good"`, `"evil", "good"`}).Draw(r, "nodes"),
		rapid.SampledFrom(restrictedKeys()).Draw(r, "label"), rapid.SampledFrom([]string{"1", "2"}).Draw(r, "label's value"),
		key, rapid.SampledFrom([]string{"1", "2"}).Draw(r, "taint's value"), effect)
	before := h.units[name]
	u := h.unit(name, spec)
	if before != nil {
		u.ObjectMeta, u.Status = before.ObjectMeta, before.Status
	}
}

// reconcile takes a Plan, all of it or only the first writes to each Node, and checks that nothing
// restricted goes or changes but what a unit has asked of that Node.
func (h *history) reconcile() {
	p := h.decide()
	if rapid.IntRange(0, 3).Draw(h.r, "forged meanwhile") == 0 {
		h.forge()
		// Whatever meets another version is not written, and nothing after it.
		p.Nodes = slices.DeleteFunc(p.Nodes, func(s assign.NodeStep) bool {
			return s.Name == "evil" && (s.Apply != nil || s.Taints != nil || len(s.Restricted) > 0)
		})
	}
	before := map[string]map[string]string{}
	for name, n := range h.nodes {
		before[name] = things(n)
	}
	for i := range p.Nodes {
		s := &p.Nodes[i]
		switch rapid.IntRange(0, 4).Draw(h.r, "killed after") {
		case 0:
			s.Apply, s.Drop, s.TaintRecord = nil, assign.Metadata{}, nil
		case 1:
			s.Drop, s.TaintRecord = assign.Metadata{}, nil
		case 2:
			s.TaintRecord = nil
		}
	}
	h.take(p)
	for name, n := range h.nodes {
		now := things(n)
		for thing, value := range before[name] {
			if got, there := now[thing]; (!there || got != value) && !h.set[name+" "+thing] {
				h.r.Fatalf("on Node %s %s=%s went or changed (now %q), which no unit has set: %s", name, thing, value, got, text(p.Nodes))
			}
		}
	}
	for _, s := range p.Nodes {
		if s.Taints != nil {
			for _, t := range *s.Taints {
				h.note(s.Name, t.Key+":"+string(t.Effect), t.Value, before[s.Name])
			}
		}
		if s.Apply != nil {
			for key, value := range s.Apply.Labels {
				h.note(s.Name, key, value, before[s.Name])
			}
		}
		// A record is written before its label: whoever sets the label in between changes a unit's.
		for _, key := range restrictedKeys() {
			digits := sha256.Sum256([]byte(key))
			if h.nodes[s.Name].Labels[fmt.Sprintf("%s%x", v1alpha2.RecordPrefix, digits[:8])] == v1alpha2.RecordLabel {
				for _, value := range []string{"1", "2"} {
					h.note(s.Name, key, value, before[s.Name])
				}
			}
		}
	}
}

// note remembers that a unit that holds the Node asks for something with this value, and that it
// was not there before.
func (h *history) note(node, thing, value string, before map[string]string) {
	if was, there := before[thing]; there && was == value {
		return
	}
	for _, u := range h.units {
		set := u.Spec.Set()
		asks := string(set.Labels[thing]) == value && set.Labels[thing] != ""
		for _, t := range set.Taints {
			asks = asks || t.Key+":"+t.Effect == thing && t.Value == value
		}
		if asks && (slices.Contains(u.Spec.Nodes, node) || h.nodes[node].Labels["in"] == "yes") {
			h.set[node+" "+thing] = true
		}
	}
}

func newHistory(r *rapid.T) *history {
	h := &history{cluster: newCluster(r), r: r, set: map[string]bool{}, admins: map[string]bool{}}
	h.node("evil", "kubelet", "in=yes")
	h.node("good", "kubelet")
	h.observed.AllowPrivileged = rapid.Bool().Draw(r, "privileged entries are allowed")
	if rapid.Bool().Draw(r, "all keys are in use") {
		for _, key := range restrictedKeys() {
			h.observed.Uses.Add(key, "Service shop/web")
		}
	}
	return h
}

// TestClaims: whatever a Node says of itself, nothing restricted goes or changes on any Node but
// what a unit has set there, and in the end nothing of a unit stays. Controllers are killed between
// any two writes.
func TestClaims(t *testing.T) {
	for range 10 { // a label that our entry claims and we have not set is rare
		rapid.Check(t, func(r *rapid.T) {
			h := newHistory(r)
			for range rapid.IntRange(1, 25).Draw(r, "steps") {
				switch rapid.IntRange(0, 6).Draw(r, "step") {
				case 0:
					h.admin()
				case 1, 2:
					h.forge()
				case 3:
					h.change()
				default:
					h.reconcile()
				}
			}
			h.observed.Uses = assign.NewUses()
			for name, u := range h.units {
				if u.DeletionTimestamp == nil {
					h.deleteUnit(name)
				}
			}
			h.settle()
			for name, n := range h.nodes {
				for key := range n.Labels {
					if strings.HasPrefix(key, v1alpha2.RecordPrefix) {
						r.Fatalf("Node %s keeps the record %s", name, key)
					}
				}
				for thing := range things(n) {
					if !h.admins[name+" "+thing] {
						r.Fatalf("Node %s keeps %s of a unit", name, thing)
					}
				}
			}
		})
	}
}

// TestForgedRecords: a Node that has left a unit keeps nothing restricted of it, whatever it says
// of itself before, though a Service names the key; and it keeps what the admin has set, though the
// unit has asked for it too.
func TestForgedRecords(t *testing.T) {
	const key = "rack.k8s.io/x"
	shared := map[string]string{"shared.k8s.io/x": ""}
	for name, forge := range map[string]func(n *corev1.Node){
		"nothing":             func(*corev1.Node) {},
		"kept labels":         func(n *corev1.Node) { n.Annotations[v1alpha2.AnnotationKeptLabels] = key },
		"mark of a lost unit": func(n *corev1.Node) { n.Labels["ghost"] = v1alpha2.UnitMark },
		"another owner": func(n *corev1.Node) {
			n.ManagedFields = nil
			own(n, "kubectl-label", metav1.ManagedFieldsOperationUpdate, map[string]string{key: ""}, nil)
		},
		"no owner": func(n *corev1.Node) { n.ManagedFields = nil },
		"our apply of a record": func(n *corev1.Node) {
			sum := sha256.Sum256([]byte(key))
			own(n, assign.Manager, metav1.ManagedFieldsOperationApply, map[string]string{key: "", fmt.Sprintf("%s%x", v1alpha2.RecordPrefix, sum[:8]): ""}, nil)
		},
		"our apply":    func(n *corev1.Node) { own(n, assign.Manager, metav1.ManagedFieldsOperationApply, shared, nil) },
		"site-manager": func(n *corev1.Node) { own(n, "site-manager", metav1.ManagedFieldsOperationUpdate, shared, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			n := c.node("a", "kubectl-label", "shared.k8s.io/x=1")
			c.observed.Uses.Add(key, "Service shop/web")
			forge(n)
			c.unit("u", `{"nodes": ["a"], "setNode": {"labels": {"rack.k8s.io/x": "1", "shared.k8s.io/x": "1"}, "taints": [{"key": "t", "effect": "NoSchedule"}]}}`)
			c.settle()
			if got := things(n); got[key] != "1" || len(got) != 3 {
				t.Fatalf("the unit has set %v", got)
			}
			forge(n)
			c.settle()
			forge(n)
			c.units["u"].Spec.Nodes = nil
			c.settle()
			if got := things(n); len(got) != 1 || got["shared.k8s.io/x"] != "1" {
				t.Errorf("the Node has left its unit, and has %v", got)
			}
			if got := slices.Collect(maps.Keys(n.Labels)); strings.Contains(fmt.Sprint(got), v1alpha2.RecordPrefix) {
				t.Errorf("the Node keeps records: %v", got)
			}
		})
	}
}

// TestConversion: what a release without records has set is ours after the upgrade, as far as the
// unit asks for it still; what a Node claims besides, and later, is not.
func TestConversion(t *testing.T) {
	c := newCluster(t)
	n := c.node("a", "kubelet", "other.k8s.io/x=admin")
	n.Labels["rack.k8s.io/x"] = "1"
	own(n, assign.Manager, metav1.ManagedFieldsOperationApply, map[string]string{"rack.k8s.io/x": "", "other.k8s.io/x": "", "u": ""}, nil)
	n.Labels["u"] = v1alpha2.UnitMark
	n.Spec.Taints = []corev1.Taint{{Key: "t", Effect: "NoSchedule"}, {Key: "admin", Effect: "NoExecute"}, {Key: "changed", Value: "old", Effect: "NoSchedule"}}
	n.Annotations[v1alpha2.AnnotationTaints] = "admin:NoExecute,changed:NoSchedule,t:NoSchedule"
	u := c.unit("u", `{"nodes": ["a"], "setNode": {"labels": {"rack.k8s.io/x": "1"}, "taints": [{"key": "t", "effect": "NoSchedule"}, {"key": "changed", "value": "new", "effect": "NoSchedule"}]}}`)
	u.Finalizers = []string{v1alpha2.FinalizerUnit}
	if p := c.decide(); len(p.Units) > 0 && p.Units[0].Status["restrictedRecorded"] != nil {
		t.Errorf("the unit has the mark before its Node has its records: %s", text(p.Units))
	}
	c.settle()
	if !c.units["u"].Status.RestrictedRecorded {
		t.Error("the unit has no mark")
	}
	if got := c.decide().Foreign; len(got) != 0 {
		t.Errorf("the annotation is written with the records, and yet: %v", got)
	}
	n.Annotations[v1alpha2.AnnotationTaints] = "admin:NoExecute,gone:NoSchedule,t:NoSchedule"
	before := c.writes
	c.settle()
	if got := c.decide().Foreign; len(got) != 1 || got[0].Node != "a" || strings.Join(got[0].Taints, " ") != "admin:NoExecute" || c.writes != before {
		t.Errorf("the Node claims the admin's taint: %v, and %d writes", got, c.writes-before)
	}
	c.deleteUnit("u")
	c.settle()
	if got := things(n); len(got) != 3 || got["other.k8s.io/x"] != "admin" || got["admin:NoExecute"] != "" || got["changed:NoSchedule"] != "old" {
		t.Errorf("after the unit has gone: %v", got)
	}
}

// TestMembershipIsAClaim: with privileged entries allowed, a Node that labels itself into a unit
// does not get them, unless the selector requires a label that it cannot give itself.
func TestMembershipIsAClaim(t *testing.T) {
	const privileged = "node-role.kubernetes.io/x"
	c := newCluster(t)
	c.observed.AllowPrivileged = true
	c.node("listed", "kubelet", "region=east")
	c.node("selected", "kubelet", "region=east")
	spec := `{"nodes": ["listed"], "selector": {"matchLabels": {%s}}, "setNode": {"labels": {"node-role.kubernetes.io/x": "1"}, "taints": [{"key": "t", "effect": "NoExecute"}]}}`
	c.unit("u", fmt.Sprintf(spec, `"region": "east"`))
	c.settle()
	if listed, selected := things(c.nodes["listed"]), things(c.nodes["selected"]); listed[privileged] != "1" || len(listed) != 2 || len(selected) != 0 {
		t.Errorf("the Node that is listed has %v, the one that selected itself %v", listed, selected)
	}
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionInvalid, "spec.nodes")
	u := c.unit("u", fmt.Sprintf(spec, `"region": "east", "node-restriction.kubernetes.io/trusted": "yes"`))
	u.Finalizers, u.Status.RestrictedRecorded = []string{v1alpha2.FinalizerUnit}, true
	c.nodes["selected"].Labels["node-restriction.kubernetes.io/trusted"] = "yes"
	c.settle()
	if selected := things(c.nodes["selected"]); selected[privileged] != "1" {
		t.Errorf("the selector requires what a Node cannot give itself, and the Node has %v", selected)
	}
	c.wantSays(c.units["u"].Status.Conditions, v1alpha2.ConditionInvalid)
}
