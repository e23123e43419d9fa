package assign

import (
	"maps"
	"slices"

	"gridproxy/controller/api/site/v1alpha2"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// Decide returns what to write so that Nodes, units and groups are what units and groups ask for.
// If they are, the Plan is empty.
func Decide(observed Observed) Plan {
	d := newDecision(observed)
	d.findUnits()
	for _, u := range d.units {
		u.findWishes(d.AllowPrivileged)
		u.readSelector(d.nodeByName)
	}
	d.findEdited()
	d.findKept()
	findMembers(d.nodes, d.nodeByName, d.units, d.keeps)
	d.planNodes()
	d.planUnits()
	d.planGroups()
	return d.plan
}

type decision struct {
	Observed
	plan Plan

	nodes  []*Node // sorted by name, as are the others
	units  []*unit
	groups []*group
	finds  []map[string]found // by group
	edits  map[string]edit    // by unit: what is to be written besides its labels and finalizer
	// keeps are, by Node, the labels that it keeps unless a unit asks for the key.
	keeps map[string]map[string]string

	nodeByName  map[string]*Node
	unitByName  map[string]*unit
	groupByName map[string]*group

	leaves     gone
	stale      bool             // of some Node it is not known what it carries
	unrecorded sets.Set[string] // Nodes that may lack records
	written    sets.Set[string] // Nodes that are written to
}

func newDecision(observed Observed) *decision {
	d := &decision{
		Observed: observed, edits: map[string]edit{}, keeps: map[string]map[string]string{}, leaves: newGone(),
		unrecorded: sets.New[string](), written: sets.New[string](),
		nodeByName: map[string]*Node{}, unitByName: map[string]*unit{}, groupByName: map[string]*group{},
	}
	for i := range observed.Nodes {
		n := &observed.Nodes[i]
		d.nodes, d.nodeByName[n.Name], d.stale = append(d.nodes, n), n, d.stale || n.Stale
	}
	slices.SortFunc(d.nodes, compareNodes)
	for _, object := range observed.Units {
		u := readUnit(object)
		d.units, d.unitByName[u.Name], d.edits[u.Name] = append(d.units, u), u, edit{}
	}
	slices.SortFunc(d.units, byName)
	for _, object := range observed.Groups {
		g := readGroup(object)
		d.groups, d.groupByName[g.Name] = append(d.groups, g), g
	}
	slices.SortFunc(d.groups, byName)
	return d
}

// findUnits decides which units each group holds, and which have to be made.
func (d *decision) findUnits() {
	for _, g := range d.groups {
		find := g.find(d.nodes, d.unitByName)
		if len(g.keys) > 0 {
			d.admit(g, find)
		}
		d.finds = append(d.finds, find)
		g.findUnits(d.units, find)
		for name := range find {
			if u := d.unitByName[name]; u != nil && g.units.Has(name) {
				u.adopt(g, d.edits[name])
			}
		}
	}
	d.plan.Create = create(d.groups, d.finds, d.unitByName)
	if d.Default != "" && d.unitByName[d.Default] == nil {
		d.plan.Create = append(d.plan.Create, newDefault(d.Default))
	}
}

func (d *decision) findKept() {
	rule := newInUse(d.Uses, d.unitByName, d.groupByName)
	for _, n := range d.nodes {
		if keeps := rule.keeps(n); keeps != nil {
			d.keeps[n.Name] = keeps
		}
	}
}

func (d *decision) planNodes() {
	requested, all := collectRequests(d.units, d.groupByName), kept{}
	for _, n := range d.nodes {
		keeps := d.keeps[n.Name]
		reported := maps.Clone(keeps) // not what a unit requests again, which is kept while it is frozen
		if c := requested[n.Name]; c != nil {
			maps.DeleteFunc(reported, func(key, _ string) bool { _, asked := c.labels[key]; return asked })
			maps.DeleteFunc(keeps, func(key, _ string) bool { asked, found := c.labels[key]; return found && !asked.frozen })
		}
		all.add(n.Name, reported)
		// Conflicts about a stale Node are reported too.
		step, foreign := newNodeStep(n, requested[n.Name], keeps, d.leaves)
		if n.Stale || step != nil && step.Converts {
			d.unrecorded.Insert(n.Name)
		}
		if step != nil {
			d.written.Insert(n.Name)
		}
		if step != nil && !n.Stale && !d.waits(n) {
			d.plan.Nodes = append(d.plan.Nodes, *step)
		}
		if foreign != nil {
			d.plan.Foreign = append(d.plan.Foreign, Foreign{Node: n.Name, UID: n.UID, Taints: foreign})
		}
	}
	all.report(d.unitByName, d.groupByName, d.Uses, &d.plan.Summary)
}

func (d *decision) planUnits() {
	r := removals{now: d.Now, watched: d.Watched, grace: d.Grace, budget: d.Budget, plan: &d.plan}
	for _, g := range d.groups {
		if !g.leaving() {
			r.decide(g, d.units, d.edits)
		}
	}
	for _, u := range d.units {
		clean := !d.stale && u.clean(d.leaves)
		if !u.leaving() {
			u.followGroups(d.edits[u.Name], d.settled)
			u.settled = d.settledGeneration(u)
			u.recorded = !u.converts() || !slices.ContainsFunc(u.nodes, func(n *Node) bool { return d.unrecorded.Has(n.Name) })
		}
		if p := unitPatch(u, d.edits[u.Name], clean, metav1.NewTime(d.Now), &d.plan.Summary); p != nil {
			d.plan.Units = append(d.plan.Units, *p)
		}
	}
}

// settled reports whether no Node waits for a label of this key to be removed or recorded as kept.
// Until then, the unit's label of the group shows that the group has held it.
func (d *decision) settled(key string) bool { return !d.stale && !d.leaves.labels.Has(key) }

func (d *decision) planGroups() {
	for _, g := range d.groups {
		// Units are the last to lose the label of the group. While one has it, its Nodes may still
		// get it.
		held := slices.ContainsFunc(d.units, func(u *unit) bool { return !u.leaving() && u.Labels[g.Name] == v1alpha2.GroupMark })
		clean := !d.stale && !held && !d.leaves.labels.Has(g.Name)
		if p := groupPatch(g, clean, metav1.NewTime(d.Now), &d.plan.Summary); p != nil {
			d.plan.Groups = append(d.plan.Groups, *p)
		}
	}
}
