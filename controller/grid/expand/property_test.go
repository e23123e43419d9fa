package expand

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// life draws what happens to a Grid, one thing after the other, and reconciles after each. What
// must hold at all times is checked at each step.
type life struct {
	*cluster
	values []string
	byKey  map[string]map[string][]string // what Nodes carry; units is the Grid's key of it
	t      *rapid.T

	allowed []dated // by the budget
	deleted []dated // without a release
}

type dated struct {
	at time.Time
	n  int
}

func (l *life) value() string { return rapid.SampledFrom(l.values).Draw(l.t, "value") }

func (l *life) child() *Live {
	names := l.names()
	if len(names) == 0 {
		l.t.Skip("no objects")
	}
	return l.objects[rapid.SampledFrom(names).Draw(l.t, "object")]
}

func (l *life) nodeAppears(*rapid.T)  { l.appear(l.value()) }
func (l *life) unitVanishes(*rapid.T) { l.vanish(l.value()) }
func (l *life) timePasses(*rapid.T) {
	l.now = l.now.Add(time.Duration(rapid.IntRange(1, 2000).Draw(l.t, "seconds")) * time.Second)
}

// restarts has the controller stand still for a time first.
func (l *life) restarts(t *rapid.T) {
	if rapid.Bool().Draw(l.t, "away") {
		l.unitVanishes(t)
		l.reconcile()
		l.timePasses(t)
	}
	l.restart()
}

func (l *life) templateChanges(*rapid.T) {
	l.grid.Template = withReplicas(rapid.IntRange(0, 5).Draw(l.t, "replicas"))
	l.grid.Templates = map[string]string{}
	if rapid.Bool().Draw(l.t, "missing") {
		l.grid.Templates[l.value()] = "gone"
	}
}

func (l *life) keyChanges(*rapid.T) {
	l.byKey[l.grid.Key] = l.units
	l.grid.Key = rapid.SampledFrom([]string{"zone", "site", ""}).Draw(l.t, "key")
	if l.byKey[l.grid.Key] == nil {
		l.byKey[l.grid.Key] = map[string][]string{}
	}
	l.units, l.others = l.byKey[l.grid.Key], l.byKey
}

func (l *life) annotated(*rapid.T) {
	annotation := rapid.SampledFrom([]string{
		v1.AnnotationRemovalGrace, v1.AnnotationRemovalBudget, v1.AnnotationAllowRemoval, v1.AnnotationOnImmutableChange, v1.AnnotationMisplacedPods,
		v1.AnnotationUnitSelector, v1.AnnotationPaused,
	}).Draw(l.t, "annotation")
	l.grid.Annotations[annotation] = rapid.SampledFrom([]string{"0s", "1m", "never", "?", "a,b", "3", "60%", "Recreate", "Keep", "true"}).Draw(l.t, "text")
}

// releases allows the removal of one or two units, some of them after a loss that is over.
func (l *life) releases(*rapid.T) {
	var entries []string
	for range rapid.IntRange(1, 2).Draw(l.t, "releases") {
		o := l.child()
		at := o.Annotations.Get(v1.AnnotationLostAt)
		if rapid.Bool().Draw(l.t, "outdated") {
			at = start().Format(time.RFC3339)
		}
		entries = append(entries, ValueOf(l.grid, *o)+"@"+at)
	}
	l.grid.Annotations[v1.AnnotationAllowRemoval] = strings.Join(entries, ",")
}

// isReleased reports whether an annotation names exactly the loss of a child.
func (l *life) isReleased(o *Live, value string) bool {
	at := o.Annotations.Get(v1.AnnotationLostAt)
	return at != "" && slices.Contains(strings.Split(l.grid.Annotations[v1.AnnotationAllowRemoval], ","), value+"@"+at)
}

// checkBudget: within an hour no more children are deleted without a release than the budget
// allowed at any time in that hour.
func (l *life) checkBudget(t *rapid.T) {
	budget := l.budget
	if text, found := l.grid.Annotations[v1.AnnotationRemovalBudget]; found {
		budget, _ = removal.ParseBudget(text)
	}
	l.allowed = append(l.allowed, dated{l.now, budget.Of(len(l.objects))})
	most, deleted := 0, 0
	for _, a := range l.allowed {
		if l.now.Sub(a.at) < time.Hour {
			most = max(most, a.n)
		}
	}
	for _, d := range l.deleted {
		if l.now.Sub(d.at) < time.Hour {
			deleted += d.n
		}
	}
	if deleted > most {
		t.Errorf("%d children are deleted within an hour, and at most %d may be", deleted, most)
	}
}

func (l *life) somebodyTakesAField(*rapid.T) {
	if o := l.child(); len(o.Owned) > 0 {
		o.Owned = `{"f:spec":{}}`
		l.touch(o)
	}
}

func (l *life) somebodyTakesALabel(*rapid.T) {
	o := l.child()
	unset(&o.Labels, v1.LabelSelector)
	o.Owned = `{}`
	l.touch(o)
}

// superEdgeComesBack replaces a child as a whole, with its own label and without our annotations.
func (l *life) superEdgeComesBack(*rapid.T) {
	o := l.child()
	unset(&o.Annotations, v1.AnnotationValue)
	o.TemplateHash = "1234"
	o.Predecessors = []Predecessor{{Manager: superEdge, Owned: `{"f:spec":{"f:replicas":{}}}`}}
	l.touch(o)
}

func (l *life) somebodyTakesAChild(*rapid.T) {
	o := l.child()
	o.Owner = rapid.SampledFrom([]types.UID{"", "somebody"}).Draw(l.t, "owner")
	l.touch(o)
}

func (l *life) somebodyMakesAnObject(*rapid.T) {
	name := "web-" + l.value()
	if l.objects[name] == nil {
		labels := rapid.SampledFrom([]map[string]string{nil, {v1.LabelSelector: "web"}}).Draw(l.t, "labels")
		l.foreign(Live{Name: name, Labels: MakePairs(labels), Owner: rapid.SampledFrom([]types.UID{"", "somebody"}).Draw(l.t, "owner")})
	}
}

func (l *life) somebodyDeletes(*rapid.T) { delete(l.objects, l.child().Name) }

func (l *life) podsMove(*rapid.T) {
	l.misplaced = append(l.misplaced, Pod{
		UID: types.UID(fmt.Sprint("pod-", len(l.misplaced))), Name: "pod", Child: l.child().Name, Since: l.now,
	})
}

// check decides once and looks at the plan, then reconciles until nothing is left to do, which
// takes three rounds at most: a deletion or a replacement makes room, an adoption brings
// annotations.
func (l *life) check(t *rapid.T) {
	look := Decide(l.observe(nil)).Look
	observed := l.observe(look)
	plan := Decide(observed)
	if again := Decide(observed); !reflect.DeepEqual(plan, again) {
		t.Fatalf("two decisions on one observed state:\n%+v\n%+v", plan, again)
	}
	forgotten := observed
	forgotten.Memo = nil
	if again := Decide(forgotten); !reflect.DeepEqual(plan, again) || !reflect.DeepEqual(Status(observed), Status(forgotten)) {
		t.Fatalf("the decision with a Memo:\n%+v\nand without:\n%+v", plan, again)
	}
	decided := observed
	decided.Decided = true
	if Decide(observed); !reflect.DeepEqual(Status(decided), Status(observed)) {
		t.Fatalf("the status after the decision differs from %+v", Status(observed))
	}
	for _, s := range plan.Steps {
		l.checkStep(t, s)
	}
	l.checkBudget(t)
	for round := 0; len(l.reconcile()) > 0; round++ {
		if round == 3 {
			t.Fatal("steps without end")
		}
	}
	l.checkStatus(t)
}

func (l *life) checkStep(t *rapid.T, s Step) {
	name := childOf(s)
	switch s := s.(type) {
	case Delete:
		value := s.Value
		if len(l.units[value]) > 0 {
			t.Errorf("deletes %s, whose unit has Nodes", name)
		}
		released := l.isReleased(l.objects[name], value)
		if released != s.Released {
			t.Errorf("deletes %s, and its release is %v", name, released)
		}
		if !released {
			l.deleted = append(l.deleted, dated{l.now, 1})
		}
		if watched := l.now.Sub(l.watched); watched < 2*time.Minute && watched < l.shortestGrace() {
			t.Errorf("deletes %s after it has watched for %s", name, watched)
		}
		for key, v := range l.objects[name].NodeSelector.All() {
			if v == value && len(l.byKey[key][v]) > 0 && !released {
				t.Errorf("deletes %s, although Nodes have what it selects, %s=%s", name, key, v)
			}
		}
		if l.objects[name].Annotations.Get(v1.AnnotationLostAt) == "" && l.grid.Annotations[v1.AnnotationRemovalGrace] != "0s" {
			t.Errorf("deletes %s at once", name)
		}
		lost, of := 0, 0
		for _, o := range l.objects {
			if v := ValueOf(l.grid, *o); o.Owner == "web-uid" && v != "" && (o.Labels.Get(v1.LabelSelector) == "web" || len(l.units[v]) > 0) {
				of++
				if len(l.units[v]) == 0 {
					lost++
				}
			}
		}
		if lost >= 2 && 2*lost > of && !released {
			t.Errorf("deletes %s with %d of %d units lost", name, lost, of)
		}
	case Apply:
		if len(l.units[s.Child.Value]) == 0 {
			t.Errorf("applies %s, whose unit has no Node", name)
		}
		if o := l.objects[name]; o != nil && s.Adopt != (o.Owner == "") {
			t.Errorf("applies %s, whose owner is %q, with Adopt %v", name, o.Owner, s.Adopt)
		}
	}
	if o := l.objects[name]; o != nil && o.Owner != "web-uid" && (o.Owner != "" || o.Labels.Get(v1.LabelSelector) != "web") {
		t.Errorf("%T of %s, which is somebody else's", s, name)
	}
	if l.grid.Key == "" {
		t.Errorf("%T of %s without a key", s, name)
	}
}

// shortestGrace is the grace of a child by the Grid, or by the flag.
func (l *life) shortestGrace() time.Duration {
	if grace, err := time.ParseDuration(l.grid.Annotations[v1.AnnotationRemovalGrace]); err == nil {
		return min(grace, l.grace)
	}
	return l.grace
}

// checkStatus: every unit with Nodes has a row, and a row that is ready has a child to show.
func (l *life) checkStatus(t *rapid.T) {
	rows := map[string]v1.UnitStatus{}
	for _, r := range l.status.Units {
		rows[r.Value] = r
		if r.Phase == v1.UnitReady && l.objects[r.Child] == nil {
			t.Errorf("unit %s is ready without %s", r.Value, r.Child)
		}
		if (r.Phase == v1.UnitLost) != (r.Nodes == 0) {
			t.Errorf("unit %s with %d Nodes is %s", r.Value, r.Nodes, r.Phase)
		}
		if (r.Phase == v1.UnitFailed || r.Phase == v1.UnitLost) && (r.Reason == "" || r.Message == "") {
			t.Errorf("unit %s is %s and does not say why", r.Value, r.Phase)
		}
	}
	for value := range l.units {
		if _, found := rows[value]; !found && l.grid.Key != "" {
			t.Errorf("no row for unit %s", value)
		}
	}
}

func TestLife(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		t.Repeat(newLife(t).actions())
	})
}

func newLife(t *rapid.T) *life {
	l := &life{cluster: newCluster(t), values: []string{"a", "b", "c", "d", "Zone_1"}, byKey: map[string]map[string][]string{}, t: t}
	l.budget = removal.Default()
	l.appear(rapid.SliceOf(rapid.SampledFrom(l.values)).Draw(t, "units")...)
	return l
}

func (l *life) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"": l.check, "nodeAppears": l.nodeAppears, "unitVanishes": l.unitVanishes, "timePasses": l.timePasses,
		"restarts": l.restarts, "releases": l.releases, "templateChanges": l.templateChanges, "keyChanges": l.keyChanges, "annotated": l.annotated,
		"somebodyTakesAField": l.somebodyTakesAField, "somebodyTakesALabel": l.somebodyTakesALabel,
		"superEdgeComesBack":  l.superEdgeComesBack,
		"somebodyTakesAChild": l.somebodyTakesAChild, "somebodyMakesAnObject": l.somebodyMakesAnObject,
		"somebodyDeletes": l.somebodyDeletes, "podsMove": l.podsMove,
	}
}
