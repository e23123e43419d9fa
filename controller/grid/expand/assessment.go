package expand

import (
	"slices"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/flips"
	"gridproxy/controller/removal"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// assessment is what the observed state means for each unit. Decide and Status both use it, so that
// the status matches what is done.
type assessment struct {
	Observed
	problem *Problem // of the Grid's key; there are no units then
	units   []*unit  // sorted by value
	strays  []*Live  // controlled by the Grid, but no unit's: to be released
	pause   pause
	limit   limit
	hold    hold
	places  places
	// admission says which values may become units. A Node may bring so many new ones.
	admission flips.Admission
	// releases are the removals that the Grid's annotation allows.
	releases  removal.Releases
	replacing *replacements // nil: not known yet
}

func assess(observed Observed) assessment {
	a := assessment{
		Observed: observed, problem: problemOf(observed.Grid.KeyMistake()),
		releases: removal.ReadReleases(observed.Grid.Annotations[v1.AnnotationAllowRemoval]),
	}
	if observed.Memo != nil {
		observed.Memo.last = nil // of an observed state before
	}
	if a.problem != nil {
		return a
	}
	known := a.known()
	values := a.sort(known)
	taken := map[string]bool{}
	last, rows := observed.Status, map[string]v1.UnitStatus{}
	if observed.Reported != nil {
		last = *observed.Reported
	}
	for _, r := range ownRows(last.Units) {
		rows[r.Value] = r
	}
	memo := observed.Memo
	if memo == nil {
		memo = &Memo{}
	}
	wanted := observed.Grid
	if key := observed.keptKey(); key != "" {
		wanted.Key = key
	}
	for _, m := range allMade(wanted, values, known, memo) {
		c := m.child
		u := &unit{Child: c, made: m, memo: memo, grid: observed.Grid, nodes: len(observed.Units[c.Value]), ownership: free}
		u.offline = u.nodes > 0 && observed.ReadyNodes != nil && observed.ReadyNodes[c.Value] == 0
		if n := observed.Kept[c.Name]; n != nil && known[c.Name] == nil && c.Object != nil && !u.saysReplicas() {
			u.keepReplicas(*n)
		}
		if !taken[c.Name] { // where two units share a name, the object is the first one's
			a.place(u, known)
		}
		taken[c.Name] = true
		u.resumes = a.resumes(u)
		u.unserved = a.isUnserved(u, last, rows)
		a.units = append(a.units, u)
	}
	a.pause = a.pauseOf()
	a.setLimit()
	a.setLosses()
	kept := a
	memo.last = &kept
	return a
}

// assessed returns what assess returned to Decide, if that is remembered and still holds.
// Otherwise it assesses again.
func assessed(observed Observed) assessment {
	if m := observed.Memo; observed.Decided && m != nil && m.last != nil {
		return *m.last
	}
	return assess(observed)
}

// keepReplicas sets the replicas of the desired child to n, the number that the child before it
// had.
func (u *unit) keepReplicas(n int32) {
	u.Object = u.Object.DeepCopy()
	own(u.Object.Object, "spec")["replicas"] = int64(n)
	u.made = &made{child: u.Child}
}

// known returns the objects that exist, from the caches and from live reads, by name.
func (a *assessment) known() map[string]*Live {
	known := map[string]*Live{}
	for name, l := range a.Occupants {
		if l != nil {
			known[name] = l
		}
	}
	for i := range a.Children {
		known[a.Children[i].Name] = &a.Children[i]
	}
	return known
}

// sort returns the values of all units that are admitted, and sets a.admission and a.strays.
// Lost units are included: the Grid controls an object and its label says so, but no present
// unit wants its name. Other objects that the Grid controls are strays. An object with a wanted
// name belongs to that unit whatever its labels are, and gets its labels back.
func (a *assessment) sort(known map[string]*Live) []string {
	var values []string
	fresh := map[string][]string{} // the Nodes of values without a child
	wanted := map[string]bool{}
	if a.Grid.Kind == ServiceGrid {
		wanted[a.Grid.childName("")] = true
	} else {
		for value, nodes := range a.Units {
			if value != "" && len(nodes) > 0 {
				name := a.Grid.childName(value)
				values, wanted[name] = append(values, value), true
				if _, replaced := a.Kept[name]; known[name] == nil && a.Applied[name].UID == "" && !replaced {
					fresh[value] = nodes
				}
			}
		}
	}
	a.admission = a.Flips.Admit(a.Grid.Key, fresh, a.NewUnits, a.Now)
	values = slices.DeleteFunc(values, func(v string) bool { return !a.admission.Refused[v].IsZero() })
	for i := range a.Children {
		l := &a.Children[i]
		if a.Grid.ownershipOf(l) != ours || wanted[l.Name] {
			continue
		}
		value := ValueOf(a.Grid, *l)
		if a.Grid.Kind != ServiceGrid && value != "" && l.Labels.Get(v1.LabelSelector) == a.Grid.selector() {
			values = append(values, value)
		} else {
			a.strays = append(a.strays, l)
		}
	}
	return values
}

// place sets in u the object that has its child's name, whose it is, what was last applied to
// it, its repairs, and its misplaced Pods.
func (a *assessment) place(u *unit, known map[string]*Live) {
	u.applied, u.repairs = a.Applied[u.Name], a.Repairs[u.Name]
	u.live = known[u.Name]
	_, read := a.Occupants[u.Name]
	switch {
	case u.live != nil:
		u.ownership = a.Grid.ownershipOf(u.live)
	case !read && u.refused() == nil: // what was refused for a free name is not tried, so no read is needed
		u.ownership = unread
	}
	if u.ownership == ours && u.applied.UID != u.live.UID {
		u.applied = u.recognise()
	}
	for _, p := range a.Misplaced {
		if p.Child == u.Name && u.ownership == ours {
			u.pods = append(u.pods, p)
		}
	}
}

// setLosses decides for each unit without Nodes what becomes of its child, and sets its loss.
// Whether deletions are held, and how many there may be, depends on how many units there are.
func (a *assessment) setLosses() {
	if a.Grid.Kind == ServiceGrid {
		return
	}
	if c := meta.FindStatusCondition(a.Observed.Status.Conditions, v1.ConditionDeletionHeld); c != nil {
		a.hold.before = c.Status == metav1.ConditionTrue && c.Reason == reasonMostLost
	}
	first := a.firstLoss()
	for _, u := range a.units {
		switch {
		case u.ownership != ours, u.unserved:
		case u.nodes == 0:
			a.hold.lost, a.hold.of = a.hold.lost+1, a.hold.of+1
		case wasThere(u.live, first):
			a.hold.of++
		}
	}
	for _, u := range a.units {
		if u.nodes == 0 {
			u.loss = a.lossOf(u)
			if a.paused(u) {
				u.loss.due, u.loss.stays = time.Time{}, "nothing is deleted "+becausePaused
			}
		}
	}
	a.takePlaces()
}
