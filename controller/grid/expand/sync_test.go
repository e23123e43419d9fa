package expand

import (
	"fmt"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"
)

// TestNearestKeys: a Grid whose key no Node has says which keys it may have meant.
func TestNearestKeys(t *testing.T) {
	c := newCluster(t)
	c.grid.Key = "locatoin"
	c.nodeKeys = []string{"kubernetes.io/arch", "location", "locations", "rotation"}
	c.expect()
	contains(t, c.message(v1.ConditionReady), "no Node has the label locatoin", "Nodes have the similar location, locations")
	check(t, "Ready", c.condition(v1.ConditionReady), "Unknown NoUnits")
	check(t, "rate", c.status.ReadyRate, "0/0")
}

// TestEmptyKey: nothing is touched, existing children stay; the condition has the reason of
// SuperEdge's event.
func TestEmptyKey(t *testing.T) {
	for key, want := range map[string]string{"": ReasonEmpty, "not a key": ReasonInvalidKey, "a/b/c": ReasonInvalidKey} {
		c := newCluster(t, "a")
		c.foreign(Live{Name: "web-x", Owner: "web-uid"})
		c.grid.Key = key
		c.expect()
		check(t, "Ready", c.condition(v1.ConditionReady), "False "+want)
		check(t, "Degraded", c.condition(v1.ConditionDegraded), "True "+want)
		contains(t, c.message(v1.ConditionReady), "gridUniqKey", "for example location")
	}
}

// TestB13Drift: a field of ours that another writer changes or removes is repaired. Other fields
// are not touched (B-13: it was dropped).
func TestB13Drift(t *testing.T) {
	c := running(t, "a")
	child := c.objects["web-a"]
	set(&child.Annotations, "kubectl.kubernetes.io/restartedAt", "now")
	set(&child.Labels, "team", "shop")
	c.touch(child)
	c.expect()
	for _, path := range [][]string{
		{"spec", "replicas"}, {"metadata", "labels", v1.LabelSelector}, {"spec", "template", "spec", "nodeSelector", "zone"},
	} {
		c.seize("web-a", path...)
		c.expect("apply web-a")
	}
	check(t, "foreign fields", child.Labels.Get("team")+child.Annotations.Get("kubectl.kubernetes.io/restartedAt"), "shopnow")
}

// TestB13GridLabels: a label of the Grid that changes or goes does so on the children too, not only
// with the next change of a template.
func TestB13GridLabels(t *testing.T) {
	c := newCluster(t, "a")
	c.grid.Labels = map[string]string{"team": "shop", v1.LabelSelector: "mine", v1.LabelKey: "mine"}
	c.expect("apply web-a")
	child := c.objects["web-a"]
	check(t, "labels", child.Labels, MakePairs(map[string]string{"team": "shop", v1.LabelSelector: "web", v1.LabelKey: "zone"}))
	c.grid.Labels = nil
	c.expect("apply web-a")
	check(t, "labels", child.Labels, MakePairs(ownLabels()))
}

// TestStaleCache: between an apply and its event the cache shows the child before it, which is no
// drift; a new wish does not wait.
func TestStaleCache(t *testing.T) {
	c := running(t, "a")
	before := *c.objects["web-a"]
	c.grid.Template = []byte(strings.Replace(deployment, `"replicas": 2`, `"replicas": 3, "paused": true`, 1))
	c.expect("apply web-a")
	stale := c.observe(nil)
	stale.Children = []Live{before}
	if steps := Decide(stale).Steps; len(steps) > 0 {
		t.Errorf("steps %+v", steps)
	}
	stale.Grid.Template = []byte(deployment)
	check(t, "steps after another change", len(Decide(stale).Steps), 1)
}

// TestNoOpApplyIsNotStale: an apply that changed nothing leaves the resourceVersion, and drift
// after it is seen even so.
func TestNoOpApplyIsNotStale(t *testing.T) {
	c := running(t, "a")
	c.applied["web-a"] = Applied{UID: c.objects["web-a"].UID, Desired: "another"}
	c.expect("apply web-a")
	check(t, "versions", c.applied["web-a"].Before, c.applied["web-a"].After)
	c.objects["web-a"].Owned = `{}`
	c.expect("apply web-a")
}

// TestRefused: what the API server refuses is tried again only when the desired child changes or
// the caller forgets the answer, and does not stop other units.
func TestRefused(t *testing.T) {
	c := newCluster(t, "a", "b")
	c.refuse = func(s Apply) *Problem {
		if s.Child.Name == "web-a" && s.Child.Template == v1.DefaultTemplate {
			return &Problem{ReasonRefused, `duplicate entries for key [name="PATH"]`}
		}
		return nil
	}
	c.expect("refused web-a", "apply web-b")
	check(t, "phase", c.row("a").Phase, v1.UnitFailed)
	check(t, "message", c.row("a").Message, `duplicate entries for key [name="PATH"]`)
	check(t, "asks for live reads", Decide(c.observe(nil)).Look, []string{})
	c.grid.Pool = map[string][]byte{"good": []byte(strings.Replace(deployment, "echo:1", "echo:2", 1))}
	c.grid.Templates = map[string]string{"a": "good"}
	c.expect("apply web-a")
	check(t, "phase", c.row("a").Phase, v1.UnitReady)

	c.grid.Templates = nil
	c.expect("refused web-a")
	c.seize("web-a", "spec", "replicas")
	c.expect() // though it drifts
	delete(c.objects, "web-a")
	c.expect("refused web-a") // another object is another question
	delete(c.applied, "web-a")
	c.expect("refused web-a")
}

// TestBlocked: which children are kept from being applied by a refusal alone.
func TestBlocked(t *testing.T) {
	c := newCluster(t, "a", "b", "c", "d")
	c.refuse = func(Apply) *Problem { return &Problem{ReasonRefused, "quota"} }
	c.expect("refused web-a", "refused web-b", "refused web-c", "refused web-d")
	c.vanish("c")
	c.grid.Annotations[v1.AnnotationPaused] = "b"
	c.grid.Templates = map[string]string{"d": "none"}
	check(t, "blocked", Decide(c.observe(nil)).Blocked, map[string]bool{"web-a": true, "web-b": false, "web-d": false})
}

// TestB15ImmutableField: a change that the child's API forbids is reported on the unit; with the
// opt-in the child is replaced, a StatefulSet without its Pods.
func TestB15ImmutableField(t *testing.T) {
	for kind, want := range map[Kind]string{DeploymentGrid: "replace web-a", StatefulSetGrid: "replace web-a orphan"} {
		c := newCluster(t, "a", "b", "c")
		c.grid.Kind = kind
		c.expect(applies("a b c")...)
		c.grid.Pool = map[string][]byte{"other": []byte(strings.ReplaceAll(deployment, "appGrid", "app"))}
		c.grid.Templates = map[string]string{"a": "other"}
		c.refuse = func(s Apply) *Problem {
			if s.Child.Name == "web-a" && s.UID != "" {
				return &Problem{ReasonImmutableField, "spec.selector: field is immutable"}
			}
			return nil
		}
		c.expect("refused web-a")
		check(t, "reason", c.row("a").Reason, ReasonImmutableField)
		before := c.objects["web-a"].UID

		c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
		c.vanish("b", "c")
		c.expect("lost web-b", "lost web-c") // held: no child of the Grid is deleted
		contains(t, c.row("a").Message, "it is not replaced while deletions are held")
		c.appear("b", "c")
		got := c.reconcile()
		check(t, "steps", got, []string{"found web-b", "found web-c", want})
		c.expect("apply web-a")
		if c.objects["web-a"].UID == before {
			t.Errorf("%s: the same object", kind)
		}
	}
}

// TestReplacementKeepsReplicas: if the template leaves the replicas to others, a replaced child
// starts with the previous number. With 1, the Pods that an orphan delete has left would be
// deleted. They are handed over as usual (B-12, B-15).
func TestReplacementKeepsReplicas(t *testing.T) {
	free := strings.Replace(deployment, `"replicas": 2,`, "", 1)
	changed := strings.ReplaceAll(free, "appGrid", "app")
	for _, test := range []struct {
		template string
		want     int32
		then     []string
	}{
		{changed, 7, []string{"apply web-a keeping replicas 7"}},
		{strings.Replace(changed, "{", `{"replicas": 3, `, 1), 3, []string{}},
	} {
		c := newCluster(t, "a")
		c.grid.Kind, c.grid.Template = StatefulSetGrid, []byte(free)
		c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
		c.expect("apply web-a")
		c.objects["web-a"].Replicas = new(int32(7))
		c.touch(c.objects["web-a"])
		c.refuse = func(s Apply) *Problem {
			if s.UID == "" || s.HandOver != nil {
				return nil
			}
			return &Problem{ReasonImmutableField, "spec.selector: field is immutable"}
		}
		c.grid.Template = []byte(test.template)
		for i, want := range [][]string{{"refused web-a"}, {"replace web-a orphan"}, {"apply web-a"}, test.then, {}} {
			check(t, fmt.Sprintf("steps of reconcile %d", i), c.reconcile(), want)
		}
		check(t, "replicas", *c.objects["web-a"].Replicas, test.want)
		check(t, "phase", c.row("a").Phase, v1.UnitReady)
	}
}

// TestB12Replicas: a template without replicas leaves them to others. When replicas leaves a
// template the live number is handed over once.
func TestB12Replicas(t *testing.T) {
	c := running(t, "a")
	scale := func(n int32) {
		c.objects["web-a"].Replicas = &n
		c.touch(c.objects["web-a"])
	}
	c.grid.Template = []byte(strings.Replace(deployment, `"replicas": 2,`, "", 1))
	c.expect("apply web-a keeping replicas 2")
	check(t, "replicas", *c.objects["web-a"].Replicas, 2)
	scale(7)
	c.expect()
	c.restart()
	c.expect()
	check(t, "replicas", *c.objects["web-a"].Replicas, 7)
	c.grid.Template = []byte(deployment)
	c.expect("apply web-a")
	check(t, "replicas", *c.objects["web-a"].Replicas, 2)
}

// TestRefusedOrphan: an orphan is never replaced, because it is not the Grid's yet.
func TestRefusedOrphan(t *testing.T) {
	c := newCluster(t, "a")
	c.grid.Annotations[v1.AnnotationOnImmutableChange] = "Recreate"
	c.foreign(Live{Name: "web-a", Labels: MakePairs(ownLabels())})
	c.refuse = func(Apply) *Problem { return &Problem{ReasonImmutableField, "spec.selector: field is immutable"} }
	c.expect("refused web-a")
	check(t, "reason", c.row("a").Reason, ReasonImmutableField)
}

// TestChildMadeAnewByOthers: what was applied to one object says nothing about another one of its
// name.
func TestChildMadeAnewByOthers(t *testing.T) {
	c := running(t, "a")
	c.objects["web-a"].UID, c.objects["web-a"].Owned = "restored-from-a-backup", ""
	c.expect("apply web-a")
}
