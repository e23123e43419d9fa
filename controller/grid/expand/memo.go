package expand

import (
	"bytes"
	"maps"
	"slices"
)

// Memo remembers for one Grid what is expensive to find out and follows from what has not changed:
// the children that it wants, their fingerprints, and those of what is owned of the existing ones.
// The zero value is empty. The caller keeps it from one Observed of the Grid to the next; decisions
// are the same without it. It is not safe for concurrent use.
type Memo struct {
	grid  Grid                  // for which the children were made
	made  map[string]*made      // by value
	owned map[string]ownedPrint // by the child's name
	last  *assessment           // until Report has used it
}

// made is a child as a Grid wants it. The existing child has two traits that matter.
type made struct {
	child             Child
	selects, unmarked bool
	print             string // Fingerprint of child, once it was asked for
}

// ownedPrint is the OwnedFingerprint of fieldsV1, and whether that is what an apply of a child
// makes ours; no child: that was not asked for.
type ownedPrint struct {
	fieldsV1 string
	print    string
	of       *made
	exact    bool
}

// spare is how many entries may be left of what has gone, beside as many as there are.
const spare = 64

// about prepares the Memo for a Grid with so many children. It forgets what was made for another
// Grid, and everything if most of it is about children that have gone.
func (m *Memo) about(g Grid, children int) {
	if !sameWish(m.grid, g) || len(m.made) > 2*children+spare {
		m.grid, m.made = g, map[string]*made{}
	}
	if m.owned == nil || len(m.owned) > 2*children+spare {
		m.owned = map[string]ownedPrint{}
	}
}

// sameWish reports whether two Grids want the same children.
func sameWish(a, b Grid) bool {
	return a.Kind == b.Kind && a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID && a.Key == b.Key && a.Default == b.Default &&
		maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && maps.Equal(a.Templates, b.Templates) &&
		bytes.Equal(a.Template, b.Template) && maps.EqualFunc(a.Pool, b.Pool, slices.Equal)
}

// workload returns the child that the function workload makes. It reuses the child made before,
// unless selectsUnit or unmarked of the existing child has changed.
func (m *Memo) workload(g Grid, all *templates, value string, live *Live) *made {
	selects, unmarked := g.selectsUnit(live), live.unmarked()
	if known := m.made[value]; known != nil && known.selects == selects && known.unmarked == unmarked {
		return known
	}
	now := &made{child: workload(g, all, value, live), selects: selects, unmarked: unmarked}
	m.made[value] = now
	return now
}

func (m *Memo) owns(l *Live) ownedPrint {
	known, found := m.owned[l.Name]
	if !found || known.fieldsV1 != l.Owned {
		known = ownedPrint{fieldsV1: l.Owned, print: OwnedFingerprint(l.Owned)}
		m.owned[l.Name] = known
	}
	return known
}

// ownedBy returns the fingerprint of what we own of a child, and whether an apply of the desired
// child makes exactly these fields ours.
func (m *Memo) ownedBy(l *Live, desired *made) (print string, exact bool) {
	known := m.owns(l)
	if known.of != desired {
		known.of, known.exact = desired, ownsExactly(l.Owned, desired.child, desired.print, l.TemplateHash)
		m.owned[l.Name] = known
	}
	return known.print, known.exact
}
