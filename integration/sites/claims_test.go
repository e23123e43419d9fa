package sites

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/site/assign"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// forgery is what a kubelet writes about its own Node.
type forgery struct {
	name  string
	write func(n *corev1.Node)
}

// owns adds an entry to managedFields: a manager owns labels.
func owns(n *corev1.Node, manager string, operation metav1.ManagedFieldsOperationType, keys ...string) {
	var fields []string
	for _, key := range keys {
		fields = append(fields, fmt.Sprintf(`"f:%s":{}`, key))
	}
	n.ManagedFields = append(n.ManagedFields, metav1.ManagedFieldsEntry{
		Manager: manager, Operation: operation, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{` + strings.Join(fields, ",") + `}}}`),
	})
}

func forgeries() []forgery {
	claimed := []string{"admin.k8s.io/x", "shared.k8s.io/x", "rack.k8s.io/x"}
	return []forgery{
		{"none", func(*corev1.Node) {}},
		{"taints", func(n *corev1.Node) {
			n.Annotations[v1alpha2.AnnotationTaints] = "quarantine:NoExecute,shared:NoSchedule,t:NoSchedule"
		}},
		{"no-taints", func(n *corev1.Node) { delete(n.Annotations, v1alpha2.AnnotationTaints) }},
		{"kept", func(n *corev1.Node) {
			n.Annotations[v1alpha2.AnnotationKeptLabels] = strings.Join(claimed, ",")
			n.Labels["ghost"] = v1alpha2.UnitMark
		}},
		{"apply", func(n *corev1.Node) {
			n.ManagedFields = nil
			owns(n, assign.Manager, metav1.ManagedFieldsOperationApply, claimed...)
		}},
		{"apply-taints", func(n *corev1.Node) { // which an apply that does not name them would remove
			n.ManagedFields = nil
			owns(n, assign.Manager, metav1.ManagedFieldsOperationApply, claimed...)
			e := &n.ManagedFields[0]
			e.FieldsV1 = metav1.NewFieldsV1(strings.TrimSuffix(string(e.FieldsV1.GetRawBytes()), "}") + `,"f:spec":{"f:taints":{}}}`)
		}},
		{"apply-spec", func(n *corev1.Node) { // which an apply would remove, taints and all
			n.ManagedFields = nil
			owns(n, assign.Manager, metav1.ManagedFieldsOperationApply)
			n.ManagedFields[0].FieldsV1 = metav1.NewFieldsV1(`{"f:spec":{}}`)
		}},
		{"site-manager", func(n *corev1.Node) {
			n.ManagedFields, n.Labels["ghost"] = nil, v1alpha2.UnitMark
			owns(n, "site-manager", metav1.ManagedFieldsOperationUpdate, append(claimed, "ghost", "u")...)
		}},
		{"kubectl", func(n *corev1.Node) {
			n.ManagedFields = nil
			owns(n, "kubectl-label", metav1.ManagedFieldsOperationUpdate, claimed...)
		}},
	}
}

// forge writes as the kubelet of each Node.
func (r *running) forge() {
	r.t.Helper()
	for _, f := range forgeries() {
		kubelet := apiserver.ClientForTest(r.t, r.UserForTest(r.t, "system:node:"+f.name, "system:nodes"))
		wait.Until(r.t, "the kubelet of "+f.name+" writes to its Node", func() error {
			n := r.get(f.name)
			if n.Annotations == nil {
				n.Annotations = map[string]string{}
			}
			f.write(n)
			_, err := kubelet.CoreV1().Nodes().Update(r.ctx, n, metav1.UpdateOptions{FieldManager: "kubelet"})
			return err
		})
	}
}

// restricted returns what a kubelet cannot write of a Node, without records.
func (r *running) restricted(node string) string {
	n := r.get(node)
	var all []string
	for key, value := range n.Labels {
		if v1alpha2.RestrictedKey(key) && key != "kubernetes.io/os" && !strings.HasPrefix(key, v1alpha2.RecordPrefix) {
			all = append(all, key+"="+value)
		}
	}
	for _, t := range n.Spec.Taints {
		all = append(all, t.ToString())
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}

// TestClaims: whatever a kubelet writes about its own Node, before and after its Node joins and
// leaves a unit, what it cannot write itself is what the admin has set and the unit asks for.
func TestClaims(t *testing.T) {
	t.Parallel()
	r := newRunning(t, nil)
	names := []string{`"stays"`}
	r.node("stays")
	for _, f := range forgeries() {
		r.node(f.name, "admin.k8s.io/x=1", "shared.k8s.io/x=1")
		r.patchNode(f.name, "kubectl", `{"spec": {"taints": [{"key": "quarantine", "effect": "NoExecute"}, {"key": "shared", "effect": "NoSchedule"}]}}`)
		names = append(names, fmt.Sprintf("%q", f.name))
	}
	r.kubectl(`{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {topologyKeys: '["rack.k8s.io/x","shared.k8s.io/x"]'}}, spec: {ports: [{port: 80}]}}`, "apply", "-f", "-")
	const admins = "admin.k8s.io/x=1 quarantine:NoExecute shared.k8s.io/x=1 shared:NoSchedule"
	const joined = "admin.k8s.io/x=1 quarantine:NoExecute rack.k8s.io/x=1 shared.k8s.io/x=1 shared:NoSchedule t:NoSchedule"
	unit := func(nodes string) string {
		return nodeUnit("v1alpha2", "u", `{"nodes": [`+nodes+`], "setNode": {"labels": {"rack.k8s.io/x": "1", "shared.k8s.io/x": "1"},
			"taints": [{"key": "t", "effect": "NoSchedule"}, {"key": "shared", "effect": "NoSchedule"}]}}`)
	}
	step := 0
	want := func(after, restricted string) {
		t.Helper()
		step++
		r.sync(fmt.Sprintf("decided-%d", step))
		for _, f := range forgeries() {
			wait.Until(t, after+": what is restricted on "+f.name, func() error { return unlike(r.restricted(f.name), restricted) })
		}
	}
	r.forge()
	want("before", admins)
	r.kubectl(unit(strings.Join(names, ",")), "apply", "-f", "-")
	want("joined", joined)
	r.forge()
	want("joined and forged", joined)
	for i := range forgeries() { // one after the other: labels in use outlive an edit that takes most Nodes
		r.kubectl(unit(strings.Join(names[:len(names)-1-i], ",")), "apply", "-f", "-")
		step++
		r.sync(fmt.Sprintf("decided-%d", step))
	}
	want("left", admins)
	r.forge()
	want("left and forged", admins)
	for _, f := range forgeries() {
		for key := range maps.Keys(r.get(f.name).Labels) {
			if strings.HasPrefix(key, v1alpha2.RecordPrefix) {
				t.Errorf("%s keeps the record %s", f.name, key)
			}
		}
	}
	wait.Until(t, "an Event says what the Node claims", func() error {
		found, err := r.api.CoreV1().Events("").List(r.ctx, metav1.ListOptions{FieldSelector: "reason=ForeignRecord"})
		if err != nil {
			return err
		}
		var about []string
		for _, e := range found.Items {
			about = append(about, e.InvolvedObject.Name)
		}
		return wait.Check(slices.Equal(about, []string{"taints"}), "Events about %v", about)
	})
}

// TestRecordsAreProtected: a kubelet cannot write a record, so what a record says is what we wrote.
func TestRecordsAreProtected(t *testing.T) {
	t.Parallel()
	r := newStopped(t)
	r.node("evil")
	kubelet := apiserver.ClientForTest(t, r.UserForTest(t, "system:node:evil", "system:nodes"))
	n := r.get("evil")
	n.Labels[v1alpha2.RecordPrefix+"0123456789abcdef"] = v1alpha2.RecordTaint
	if _, err := kubelet.CoreV1().Nodes().Update(r.ctx, n, metav1.UpdateOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a kubelet writes a record: %v", err)
	}
}
