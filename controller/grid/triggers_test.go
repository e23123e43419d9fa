package grid

import (
	"testing"

	v1 "gridproxy/controller/api/v1"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestChangedKeys(t *testing.T) {
	for _, c := range []struct {
		what     string
		old, new map[string]string
		want     []string
	}{
		{"nothing", map[string]string{"a": "1", "b": "2"}, map[string]string{"b": "2", "a": "1"}, nil},
		{"added", nil, map[string]string{"b": "2", "a": "1"}, []string{"a", "b"}},
		{"removed", map[string]string{"a": "1"}, nil, []string{"a"}},
		{"changed", map[string]string{"a": "1", "b": "2"}, map[string]string{"a": "1", "b": "3"}, []string{"b"}},
		{"an empty value", nil, map[string]string{"a": ""}, nil},
		{"removed, an empty value", map[string]string{"a": ""}, nil, nil},
	} {
		if diff := cmp.Diff(c.want, changedKeys(c.old, c.new)); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.what, diff)
		}
	}
}

// TestNodesThatWake: a change of readiness wakes the Grids of all units of a Node; a heartbeat
// wakes none, and has no Pods looked at.
func TestNodesThatWake(t *testing.T) {
	node := func(status corev1.ConditionStatus, labels map[string]string) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}
		if status != "" {
			beat := metav1.Now()
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status, LastHeartbeatTime: beat}}
		}
		return n
	}
	here, moved := map[string]string{"zone": "a", "site": "x", "empty": ""}, map[string]string{"zone": "b", "site": "x", "empty": ""}
	for _, c := range []struct {
		what           string
		old, new       *corev1.Node
		reached, moved []string
	}{
		{"a heartbeat", node("True", here), node("True", here), nil, nil},
		{"a heartbeat of a Node that is not ready", node("Unknown", here), node("False", here), nil, nil},
		{"not ready", node("True", here), node("Unknown", here), []string{"site", "zone"}, nil},
		{"ready", node("Unknown", here), node("True", here), []string{"site", "zone"}, nil},
		{"ready for the first time", node("", here), node("True", here), []string{"site", "zone"}, nil},
		{"moved", node("True", here), node("True", moved), []string{"zone"}, []string{"zone"}},
		{"moved and not ready", node("True", here), node("False", moved), []string{"site", "zone"}, []string{"zone"}},
		{"new, not ready", &corev1.Node{}, node("False", here), []string{"site", "zone"}, []string{"site", "zone"}},
		{"gone", node("True", here), &corev1.Node{}, []string{"site", "zone"}, []string{"site", "zone"}},
	} {
		if diff := cmp.Diff(c.reached, reachedKeys(c.old, c.new)); diff != "" {
			t.Errorf("%s: reached (-want +got)\n%s", c.what, diff)
		}
		if diff := cmp.Diff(c.moved, movedKeys(c.old, c.new)); diff != "" {
			t.Errorf("%s: moved (-want +got)\n%s", c.what, diff)
		}
	}
}

// TestOwnStatusDoesNotWake: of a Grid's changes, all count but those of the status.
func TestOwnStatusDoesNotWake(t *testing.T) {
	old := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{UID: "1", Generation: 1, ResourceVersion: "1", Labels: map[string]string{"a": "1"}}}
	now := metav1.Now()
	for what, change := range map[string]func(*v1.DeploymentGrid){
		"spec":        func(g *v1.DeploymentGrid) { g.Generation++ },
		"labels":      func(g *v1.DeploymentGrid) { g.Labels = nil },
		"annotations": func(g *v1.DeploymentGrid) { g.Annotations = map[string]string{"a": "1"} },
		"deletion":    func(g *v1.DeploymentGrid) { g.DeletionTimestamp = &now },
		"another":     func(g *v1.DeploymentGrid) { g.UID = "2" },
		"status":      func(g *v1.DeploymentGrid) { g.Status.UnitNumber = 7; g.ResourceVersion = "2" },
	} {
		g := old.DeepCopy()
		change(g)
		if got := wishes().Update(event.UpdateEvent{ObjectOld: old, ObjectNew: g}); got != (what != "status") {
			t.Errorf("%s: %t", what, got)
		}
	}
}

// TestOwnerGrid: the controller of an object is woken, and for an orphan the Grid that it names.
func TestOwnerGrid(t *testing.T) {
	controlled := func(apiVersion, kind, name string) []metav1.OwnerReference {
		yes := true
		return []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: name, UID: "1", Controller: &yes}}
	}
	label := map[string]string{v1.LabelSelector: "labelled"}
	for _, c := range []struct {
		what string
		meta metav1.ObjectMeta
		want string
		keys []string
	}{
		{"ours", metav1.ObjectMeta{OwnerReferences: controlled("superedge.io/v1", "DeploymentGrid", "web"), Labels: label}, "web", []string{"uid/1"}},
		{"of another kind of Grid", metav1.ObjectMeta{OwnerReferences: controlled("superedge.io/v1", "StatefulSetGrid", "web"), Labels: label}, "", []string{"uid/1"}},
		{"of somebody else", metav1.ObjectMeta{OwnerReferences: controlled("apps/v1", "DeploymentGrid", "web"), Labels: label}, "", []string{"uid/1"}},
		{"an orphan", metav1.ObjectMeta{Labels: label}, "labelled", []string{"label/labelled"}},
		{"an orphan with a long name", metav1.ObjectMeta{Labels: label, Annotations: map[string]string{v1.AnnotationGrid: "exact"}}, "exact", []string{"label/labelled"}},
		{"nobody's", metav1.ObjectMeta{}, "", nil},
	} {
		var o deployment
		if err := o.reduce(&appsv1.Deployment{ObjectMeta: c.meta}); err != nil {
			t.Fatal(err)
		}
		if got := o.owner(); got != c.want {
			t.Errorf("%s: wakes %q, want %q", c.what, got, c.want)
		}
		if diff := cmp.Diff(c.keys, ownerKeys(o.read())); diff != "" {
			t.Errorf("%s: keys (-want +got)\n%s", c.what, diff)
		}
	}
}
