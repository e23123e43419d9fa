package expand

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/flips"
	"gridproxy/controller/gridspec"
	"gridproxy/controller/removal"

	"k8s.io/apimachinery/pkg/types"
)

// cluster is an API server, Nodes and a controller around one Grid, simulated: it makes an
// Observed, asks Decide, executes the plan on its objects, and asks Status, as package grid does
// with the real ones. Server-side apply is simulated as far as it matters here: labels,
// annotations, replicas, and who owns which field.
type cluster struct {
	t          tester
	grid       Grid
	units      map[string][]string // by value, names of Nodes
	ready      map[string]int      // Observed.ReadyNodes
	readySince map[string]time.Time
	nodeKeys   []string
	others     map[string]map[string][]string // the same by other keys than the Grid's
	objects    map[string]*Live               // of the child's kind, in the Grid's namespace
	now        time.Time
	grace      time.Duration
	maxUnits   int
	newUnits   int
	flips      flips.Log
	refused    []flips.Refusal // in all reconciles
	budget     removal.Budget
	watched    time.Time
	age        time.Duration // of a child when it is created, so that it is older than a loss at the same time
	misplaced  []Pod
	unready    bool                 // children have no ready Pods after an apply
	refuse     func(Apply) *Problem // what the API server will not take; nil takes everything

	status   v1.WorkloadGridStatus
	reported *v1.WorkloadGridStatus
	recheck  time.Duration

	applied map[string]Applied // the controller's memory: a restart loses it
	memo    *Memo
	repairs map[string]Repairs
	kept    map[string]*int32
	pruned  []string // in this reconcile

	version, uid int
}

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

const deployment = `{"replicas": 2, "selector": {"matchLabels": {"appGrid": "echo"}},
	"template": {"metadata": {"labels": {"appGrid": "echo"}}, "spec": {"containers": [{"name": "echo", "image": "echo:1"}]}}}`

// start is ten o'clock.
func start() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) }

// newCluster has a DeploymentGrid "web" with the key "zone", a grace of 5 minutes, no limit by the
// removal budget, and one Node in each unit.
func newCluster(t tester, values ...string) *cluster {
	c := &cluster{
		t: t, units: map[string][]string{}, objects: map[string]*Live{}, now: start(), grace: 5 * time.Minute, age: time.Minute,
		budget:  allUnits(t),
		applied: map[string]Applied{}, memo: &Memo{}, kept: map[string]*int32{}, repairs: map[string]Repairs{},
		grid: Grid{
			Spec:      gridspec.Spec{Kind: DeploymentGrid, Key: "zone", Template: []byte(deployment)},
			Namespace: "default", Name: "web", UID: "web-uid", Generation: 1, Annotations: map[string]string{},
		},
	}
	c.appear(values...)
	return c
}

// running is newCluster after its children are applied.
func running(t tester, values string) *cluster {
	t.Helper()
	c := newCluster(t, strings.Fields(values)...)
	c.expect(applies(values)...)
	return c
}

// appear puts one Node more into each unit; vanish removes all Nodes of the units.
func (c *cluster) appear(values ...string) {
	for _, v := range values {
		c.units[v] = append(c.units[v], fmt.Sprintf("node-%s-%d", v, len(c.units[v])))
	}
}

func (c *cluster) vanish(values ...string) {
	for _, v := range values {
		delete(c.units, v)
	}
}

func (c *cluster) after(d time.Duration) { c.now = start().Add(d) }

func (c *cluster) restart() {
	c.applied, c.repairs, c.watched, c.reported = map[string]Applied{}, map[string]Repairs{}, c.now, nil
}

// release allows the removal of units after their present losses.
func (c *cluster) release(values ...string) {
	var entries []string
	for _, v := range values {
		entries = append(entries, v+"@"+c.objects[c.grid.childName(v)].Annotations.Get(v1.AnnotationLostAt))
	}
	c.grid.Annotations[v1.AnnotationAllowRemoval] = strings.Join(entries, ", ")
}

func allUnits(t tester) removal.Budget {
	b, err := removal.ParseBudget("100%")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// foreign adds an object of another owner, or a child as another writer left it.
func (c *cluster) foreign(l Live) *Live {
	c.uid++
	l.UID = types.UID(cmp.Or(string(l.UID), fmt.Sprintf("foreign-%d", c.uid)))
	c.objects[l.Name] = &l
	c.touch(&l)
	return &l
}

// set and unset change what a name has in pairs.
func set(p *Pairs, name, value string) {
	m := p.Map()
	m[name] = value
	*p = MakePairs(m)
}

func unset(p *Pairs, name string) {
	m := p.Map()
	delete(m, name)
	*p = MakePairs(m)
}

func (c *cluster) touch(l *Live) {
	c.version++
	l.ResourceVersion = strconv.Itoa(c.version)
}

// observe is what the controller knows: children from its caches, and by live reads the objects
// with the names in look.
func (c *cluster) observe(look []string) Observed {
	grid := c.grid // a test may write to its maps; another version of a Grid has others
	grid.Annotations, grid.Labels = maps.Clone(grid.Annotations), maps.Clone(grid.Labels)
	grid.Templates, grid.Pool = maps.Clone(grid.Templates), maps.Clone(grid.Pool)
	observed := Observed{
		Grid: grid, Status: c.status, Reported: c.reported, Units: c.units, ReadyNodes: c.ready, ReadySince: c.readySince,
		Applied: c.applied, Repairs: c.repairs, Kept: c.kept, Occupants: map[string]*Live{},
		Misplaced: c.misplaced, Pruned: c.pruned, Memo: c.memo, Now: c.now, Grace: c.grace, Watched: c.watched, Budget: c.budget, MaxUnits: c.maxUnits,
		Flips: c.flips, NewUnits: c.newUnits,
	}
	for _, name := range slices.Sorted(maps.Keys(c.objects)) {
		if l := c.objects[name]; l.Owner == c.grid.UID || l.Owner == "" && l.Labels.Get(v1.LabelSelector) == c.grid.selector() {
			child := *l
			if c.grid.Kind == ServiceGrid {
				child.Replicas = nil
			}
			observed.Children = append(observed.Children, child)
		}
	}
	if len(c.units) == 0 {
		observed.NodeKeys = c.nodeKeys
	}
	observed.Others = map[string]map[string][]string{}
	for _, key := range OtherKeys(observed) {
		observed.Others[key] = c.others[key]
	}
	c.misplaced = observed.WithGraces(c.misplaced)
	observed.Misplaced = c.misplaced
	for _, name := range look {
		observed.Occupants[name] = nil
		if l := c.objects[name]; l != nil {
			observed.Occupants[name] = l
		}
	}
	return observed
}

// reconcile decides, executes and writes the status, and returns what was done, a line for each
// step.
func (c *cluster) reconcile() []string {
	c.t.Helper()
	first := Decide(c.observe(nil))
	c.flips, c.refused = first.Flips, append(c.refused, first.Refused...)
	plan, before := Decide(c.observe(first.Look)), c.grid
	if len(plan.Look) > 0 {
		c.t.Fatalf("asks again for what was read: %v", plan.Look)
	}
	done := []string{}
	for _, s := range plan.Steps {
		if spend, is := s.(Spend); is {
			c.status.Removals = Removals(c.status, spend.Count, c.now)
			continue
		}
		done = append(done, c.execute(s))
	}
	c.recheck = plan.Recheck
	left := c.observe(first.Look)
	left.Grid = before // the controller does not read it again
	c.status, c.pruned = Status(left), nil
	c.reported = new(c.status)
	return done
}

// expect reconciles, compares the steps, and checks that nothing is left to do.
func (c *cluster) expect(want ...string) {
	c.t.Helper()
	if got := c.reconcile(); !slices.Equal(got, want) {
		c.t.Fatalf("at %s:\n got %q\nwant %q", c.now.Format(time.TimeOnly), got, want)
	}
	if again := c.reconcile(); len(again) > 0 {
		c.t.Fatalf("at %s: a second reconcile has steps: %q", c.now.Format(time.TimeOnly), again)
	}
}

func (c *cluster) execute(s Step) string {
	c.t.Helper()
	switch s := s.(type) {
	case Apply:
		return c.apply(s)
	case MarkLost:
		set(&c.stands(s.Name, s.UID, "").Annotations, v1.AnnotationLostAt, s.At.Format(time.RFC3339))
		c.touch(c.objects[s.Name])
		return "lost " + s.Name
	case MarkFound:
		unset(&c.stands(s.Name, s.UID, "").Annotations, v1.AnnotationLostAt)
		c.touch(c.objects[s.Name])
		return "found " + s.Name
	case Delete:
		c.stands(s.Name, s.UID, s.ResourceVersion)
		delete(c.objects, s.Name)
		delete(c.applied, s.Name)
		return "delete " + s.Name
	case Replace:
		c.stands(s.Name, s.UID, s.ResourceVersion)
		delete(c.objects, s.Name)
		delete(c.applied, s.Name)
		c.kept[s.Name] = s.Replicas
		if s.Orphan {
			return "replace " + s.Name + " orphan"
		}
		return "replace " + s.Name
	case Release:
		c.stands(s.Name, s.UID, s.ResourceVersion).Owner = ""
		c.touch(c.objects[s.Name])
		return "release " + s.Name
	case Prune:
		pool := maps.Clone(c.grid.Pool)
		maps.DeleteFunc(pool, func(name string, _ []byte) bool { return slices.Contains(s.Names, name) })
		c.grid.Pool, c.pruned = pool, s.Names
		return "prune " + strings.Join(s.Names, ",")
	case Evict:
		c.misplaced = slices.DeleteFunc(slices.Clone(c.misplaced), func(p Pod) bool { return p.UID == s.Pod.UID })
		return "evict " + s.Pod.Name
	default:
		c.t.Fatalf("unknown step %T", s)
		return ""
	}
}

// stands checks the preconditions of a step.
func (c *cluster) stands(name string, uid types.UID, version string) *Live {
	c.t.Helper()
	l := c.objects[name]
	if l == nil || l.UID != uid || version != "" && l.ResourceVersion != version {
		c.t.Fatalf("a step on %s with uid %s and version %s, where there is %+v", name, uid, version, l)
	}
	return l
}

func (c *cluster) apply(s Apply) string {
	c.t.Helper()
	l, name, done := c.objects[s.Child.Name], s.Child.Name, "apply "+s.Child.Name
	if s.Child.Problem != nil || s.Fingerprint != Fingerprint(s.Child) {
		c.t.Fatalf("apply of %+v", s)
	}
	if c.refuse != nil {
		if problem := c.refuse(s); problem != nil {
			c.applied[name] = Applied{UID: s.UID, Desired: s.Fingerprint, Refused: problem}
			return "refused " + name
		}
	}
	before := ""
	if s.UID == "" {
		if l != nil {
			c.t.Fatalf("apply to %s, which is not free", name)
		}
		c.uid++
		l = &Live{Name: name, UID: types.UID(fmt.Sprintf("uid-%d", c.uid)), Created: c.now.Add(-c.age)}
		c.objects[name] = l
	} else {
		before = c.stands(name, s.UID, "").ResourceVersion
		if foreign := l.Owner != "" && l.Owner != c.grid.UID; foreign || s.Adopt != (l.Owner == "") {
			c.t.Fatalf("apply to %s, whose owner is %q, with Adopt %v", name, l.Owner, s.Adopt)
		}
	}
	if s.Adopt {
		done = "adopt " + name
	}
	if s.HandOver != nil {
		done += fmt.Sprintf(" keeping replicas %d", *s.HandOver)
	}
	if len(s.TakeOver) != len(l.Predecessors) {
		c.t.Fatalf("%s is taken over from %v and not from %v", name, s.TakeOver, l.Predecessors)
	}
	if len(l.Predecessors) > 0 {
		l.Predecessors = nil
		c.touch(l)
		before = l.ResourceVersion // the take-over is a write of its own
	}
	changed := merge(l, s)
	if c.unready {
		l.ReadyReplicas, l.Available = 0, 0
	}
	if changed {
		c.touch(l)
	}
	delete(c.kept, name)
	if s.Repair {
		c.repairs[name] = c.repairs[name].After(c.now, "")
	}
	c.applied[name] = Applied{
		UID: l.UID, Desired: s.Fingerprint, Owned: OwnedFingerprint(l.Owned), Before: before, After: l.ResourceVersion,
	}
	return done
}

// merge is server-side apply, and reports whether anything changed.
func merge(l *Live, s Apply) bool {
	was, _ := json.Marshal(l)
	o := WithFingerprint(s.Child, s.Fingerprint)
	l.Owner = o.GetOwnerReferences()[0].UID
	before := owned(l.Owned)
	for _, pair := range []struct {
		path string
		p    *Pairs
		want map[string]string
	}{{"f:labels", &l.Labels, o.GetLabels()}, {"f:annotations", &l.Annotations, o.GetAnnotations()}} {
		m := pair.p.Map()
		for name := range before["f:metadata"][pair.path] {
			delete(m, strings.TrimPrefix(name, "f:"))
		}
		maps.Copy(m, pair.want)
		delete(m, v1.LabelFingerprint)
		*pair.p = MakePairs(m)
	}
	l.Fingerprint = o.GetLabels()[v1.LabelFingerprint]
	spec := o.Object["spec"].(map[string]any)
	if n, ok := spec["replicas"].(int64); ok {
		replicas := int32(n)
		l.Replicas = &replicas
	} else if l.Replicas == nil || before["f:spec"]["f:replicas"] != nil && s.HandOver == nil {
		l.Replicas = new(int32(1))
	}
	l.Selects = MakePairs(textAt(spec, "selector", "matchLabels"))
	l.NodeSelector = MakePairs(textAt(spec, "template", "spec", "nodeSelector"))
	l.Volumes = spec["volumeClaimTemplates"] != nil
	fields := fieldsOf(o.Object)
	for _, field := range []string{"f:apiVersion", "f:kind"} { // what identifies an object has no owner
		delete(fields, field)
	}
	for _, field := range []string{"f:name", "f:namespace"} {
		delete(fields["f:metadata"].(map[string]any), field)
	}
	l.Owned = text(fields)
	l.StatusReplicas, l.ReadyReplicas, l.UpdatedReplicas, l.Available = *l.Replicas, *l.Replicas, *l.Replicas, *l.Replicas
	l.State = fmt.Appendf(nil, `{"replicas":%d,"readyReplicas":%d}`, *l.Replicas, *l.Replicas)
	now, _ := json.Marshal(l)
	return string(was) != string(now)
}

func textAt(o map[string]any, path ...string) map[string]string {
	found := gridspec.ObjectAt(o, path...)
	m := map[string]string{}
	for k, v := range found {
		m[k] = v.(string)
	}
	return m
}

// fieldsOf is fieldsV1 of what is applied; lists are one field.
func fieldsOf(o map[string]any) map[string]any {
	fields := map[string]any{}
	for name, value := range o {
		fields["f:"+name] = map[string]any{}
		if o, ok := value.(map[string]any); ok {
			fields["f:"+name] = fieldsOf(o)
		}
	}
	return fields
}

func owned(raw string) (fields map[string]map[string]map[string]any) {
	_ = json.Unmarshal([]byte(raw), &fields)
	return fields
}

func text(fields map[string]any) string {
	text, _ := json.Marshal(fields)
	return string(text)
}

// seize is another writer that changes or removes a field of a child that we own: we do not own it
// any more.
func (c *cluster) seize(name string, path ...string) {
	c.t.Helper()
	l := c.objects[name]
	var fields map[string]any
	if err := json.Unmarshal([]byte(l.Owned), &fields); err != nil {
		c.t.Fatal(err)
	}
	o, last := fields, "f:"+path[len(path)-1]
	for _, p := range path[:len(path)-1] {
		o = o["f:"+p].(map[string]any)
	}
	if o[last] == nil {
		c.t.Fatalf("%s does not own %v", name, path)
	}
	delete(o, last)
	l.Owned = text(fields)
	c.touch(l)
}

// names are the existing objects.
func (c *cluster) names() []string { return slices.Sorted(maps.Keys(c.objects)) }

// row is a unit's row in the status that was written last.
func (c *cluster) row(value string) v1.UnitStatus {
	c.t.Helper()
	for _, r := range c.status.Units {
		if r.Value == value {
			return r
		}
	}
	c.t.Fatalf("no row for unit %s in %+v", value, c.status.Units)
	return v1.UnitStatus{}
}

// condition returns a condition as "True Reason" or "False Reason", message its message.
func (c *cluster) condition(of string) string {
	said, _, _ := strings.Cut(conditionText(c.status.Conditions, of), ": ")
	return said
}

func (c *cluster) message(of string) string {
	_, message, _ := strings.Cut(conditionText(c.status.Conditions, of), ": ")
	return message
}

// check compares two texts and says what they are.
func check(t testing.TB, what string, got, want any) {
	t.Helper()
	if got, want := fmt.Sprint(got), fmt.Sprint(want); got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

// contains looks for words in a message.
func contains(t testing.TB, message string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(message, w) {
			t.Errorf("message %q does not say %q", message, w)
		}
	}
}
