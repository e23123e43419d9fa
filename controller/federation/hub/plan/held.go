package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/retry"
	"gridproxy/topology/excerpt"
)

// uidOf returns the UID of a Grid in an annotation superedge.io/from, and reports whether it is
// one of this hub. A member may write anything there, and a person copies it from a message.
func uidOf(hub, from string) (string, bool) {
	uid, ours := strings.CutPrefix(from, hub+"/")
	plain := !strings.ContainsFunc(uid, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-')
	})
	return uid, ours && hub != "" && plain && uid != "" && len(uid) <= 64
}

// release withdraws the Grids that the hub does not know and that may be removed all the same.
func (m *member) release() {
	released := map[string]bool{}
	for uid := range strings.SplitSeq(m.Object.Annotations[v1alpha1.AnnotationRelease], ",") {
		released[strings.TrimSpace(uid)] = true
	}
	var uids []string
	for _, uid := range m.unknownGrids() {
		if released[uid] || m.removing {
			uids = append(uids, uid)
		}
	}
	if m.withdraw(uids, nil) {
		m.rows = slices.DeleteFunc(m.rows, func(row v1alpha1.ClusterGrid) bool { return slices.Contains(uids, row.UID) })
	}
}

// unknownGrids returns the UIDs of Grids that the cluster has from this hub, that the hub has
// not withdrawn, and that it does not know, or neither lists nor means for the cluster: the hub
// was restored from a backup, a list was short, or the FleetCluster was made again. They are
// sorted.
func (m *member) unknownGrids() []string {
	unknown := map[string]bool{}
	for uid := range m.reported {
		unknown[uid] = true
	}
	for uid := range m.listed {
		unknown[uid] = true
	}
	for _, uid := range m.withdrawn {
		delete(unknown, uid)
	}
	maps.DeleteFunc(unknown, func(uid string, _ bool) bool {
		g := m.known[uid]
		_, listed := m.listed[uid]
		return g != nil && (listed || g.Deleting || g.Content.Wanted && m.selects(&g.Content))
	})
	return slices.Sorted(maps.Keys(unknown))
}

// hold marks the shares as stuck in which there are unknown Grids. Of one that is only reported
// it is known where it is in the cluster: what goes there is held.
func (m *member) hold(shares map[string]*share) {
	if len(m.unknown) == 0 {
		return
	}
	from, into := map[string]bool{}, map[string]bool{}
	for _, uid := range m.unknown {
		if row, listed := m.listed[uid]; listed {
			from[row.Namespace] = true
		} else {
			into[m.reported[uid].Namespace] = true
		}
	}
	for _, s := range shares {
		if from[s.namespace] || s.goesInto(into) {
			s.stuck = &obstacle{v1alpha1.ConditionDistributionHeld, fmt.Sprintf("namespace %s is left as it is in cluster %s: see the condition %s",
				s.namespace, m.name, v1alpha1.ConditionDistributionHeld)}
		}
	}
}

// goesInto reports whether anything of a share is, or is to be, in one of some namespaces of the
// cluster. What is in a bundle without a list is in the namespace of its name.
func (s *share) goesInto(namespaces map[string]bool) bool {
	if len(s.wanted)+len(s.rows) == 0 {
		return namespaces[s.namespace]
	}
	return slices.ContainsFunc(s.wanted, func(g *Grid) bool { return namespaces[g.Content.TargetNamespace] }) ||
		slices.ContainsFunc(s.rows, func(row v1alpha1.ClusterGrid) bool { return namespaces[placeOf(row)] })
}

// abandon moves Grids that were deleted long ago from the list to those that are withdrawn,
// although the cluster still has them: one that is suspended must not keep a Grid on the hub
// without end. It removes them when it goes on. Those that withdrawn has no room for are unknown
// then, and held.
func (m *member) abandon() {
	if m.Hub == "" {
		return
	}
	m.rows = slices.DeleteFunc(m.rows, func(row v1alpha1.ClusterGrid) bool {
		g := m.known[row.UID]
		if g == nil || !g.Deleting || g.DeletedAt.IsZero() {
			return false
		}
		if left := abandonGrace - m.Now.Sub(g.DeletedAt); left > 0 {
			m.recheck = retry.Earlier(m.recheck, left)
			return false
		}
		if leaving := (&share{namespace: row.Namespace, leaving: []string{row.UID}}); m.mayWithdraw(leaving) {
			m.withdraw(leaving.leaving, nil)
		}
		return true
	})
}

// held returns a message that names the Grids which hold namespaces, and the command that ends it.
func (m *member) held() string {
	var names []string
	for _, uid := range m.unknown[:min(3, len(m.unknown))] {
		if row, listed := m.listed[uid]; listed {
			names = append(names, excerpt.Of(fmt.Sprintf("%s %s/%s", row.Kind, row.Namespace, row.Name)))
		} else {
			r := m.reported[uid]
			names = append(names, excerpt.Of(fmt.Sprintf("%s %s/%s", r.Kind, r.Namespace, r.Name)))
		}
	}
	more := ""
	if n := len(m.unknown) - len(names); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("nothing is changed in namespaces of the cluster with Grids of this hub that the hub does not know, or does not mean for it: "+
		"%s%s; if they may be removed there, run: kubectl annotate fleetcluster %s --overwrite %s=%s",
		strings.Join(names, ", "), more, m.name, v1alpha1.AnnotationRelease, strings.Join(m.unknown[:min(releasedMax, len(m.unknown))], ","))
}

// mayWithdraw reports whether the Grids of a share may be withdrawn: a namespace takes only its
// part of what can be. Reports say in which one a Grid is; those that no report names are
// forgotten soon.
func (m *member) mayWithdraw(s *share) bool {
	if m.removing || len(s.leaving) == 0 {
		return true
	}
	of := map[string]bool{}
	for _, uid := range s.leaving {
		of[uid] = true
	}
	for _, uid := range m.withdrawn {
		if r, found := m.reported[uid]; found && r.Namespace == s.namespace {
			of[uid] = true
		}
	}
	return len(of) <= v1alpha1.MaxNamespaceGrids
}

// withdraw remembers that Grids leave the cluster, and forgets it of those that are in it again. If
// there is no room for all of them it does nothing, and reports false.
func (m *member) withdraw(leaving []string, again map[string]bool) bool {
	there := map[string]bool{} // withdrawn is a set
	var kept []string
	for _, uid := range slices.Concat(m.withdrawn, leaving) {
		if !again[uid] && !there[uid] {
			there[uid] = true
			kept = append(kept, uid)
		}
	}
	unreported := 0
	for _, uid := range kept {
		if _, found := m.reported[uid]; !found {
			unreported++
		}
	}
	excess := max(unreported-unreportedMax, 0)
	if len(kept)-excess > withdrawnMax {
		return false
	}
	m.withdrawn = slices.DeleteFunc(kept, func(uid string) bool {
		_, found := m.reported[uid]
		if found || excess == 0 {
			return false
		}
		excess--
		return true
	})
	return true
}
