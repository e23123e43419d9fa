package plan

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"
	"gridproxy/controller/retry"
)

// share is what of one namespace of the hub a cluster is to have.
type share struct {
	namespace string
	wanted    []*Grid
	rows      []v1alpha1.ClusterGrid // those of the last status
	leaving   []string               // UIDs of Grids that the cluster has, and is not to have
	stuck     *obstacle              // why nothing is changed
}

// distribute decides what is sent of each namespace: m.write, m.remove, m.rows and m.stuck. The
// namespaces depend on each other only by the number of Grids and of UIDs in withdrawn.
func (m *member) distribute() {
	shares := m.shares()
	m.bound(shares)
	m.rows = nil
	for _, s := range slices.SortedFunc(maps.Values(shares), func(a, b *share) int { return cmp.Compare(a.namespace, b.namespace) }) {
		if s.stuck == nil {
			s.stuck = m.send(s)
		}
		if s.stuck != nil {
			m.stuck[s.namespace] = s.stuck.reason != reasonTooMany && s.stuck.reason != reasonTooLargeBundle // fewer Grids repair these
			m.note(*s.stuck)
			m.rows = append(m.rows, s.rows...)
		}
	}
}

// send decides what is sent of one namespace, or returns why nothing is; its rows then stay.
func (m *member) send(s *share) *obstacle {
	complete := true
	next, again := s.rows, map[string]bool{}
	for _, g := range s.wanted {
		_, listed := m.listed[g.UID]
		if !g.Finalizer { // one that is listed has lost it
			m.expected = append(m.expected, g.UID)
			complete = false
			continue
		}
		if listed {
			continue
		}
		complete = false
		next, again[g.UID] = append(slices.Clip(next), m.rowOf(g)), true
	}
	if !complete {
		// Nothing leaves before what is to stay is listed: the bundle may have it already.
		m.withdraw(nil, again)
		m.rows = append(m.rows, next...)
		return nil
	}
	b := m.bundle(s)
	revision, exists := m.Bundles[s.namespace]
	write := len(s.wanted) > 0 && (!exists || revision != b.Revision)
	if left := m.rest(s); write && left > 0 {
		m.recheck = retry.Earlier(m.recheck, left)
		m.rows = append(m.rows, s.rows...)
		return nil
	}
	if !m.mayWithdraw(s) || !m.withdraw(s.leaving, nil) {
		return &obstacle{"TooManyWithdrawn", fmt.Sprintf("namespace %s: %d Grids wait to be removed until the cluster has removed others",
			s.namespace, len(s.leaving))}
	}
	for _, g := range s.wanted {
		m.rows = append(m.rows, m.rowOf(g))
	}
	switch {
	case len(s.wanted) == 0 && exists:
		m.remove = append(m.remove, s.namespace)
	case write:
		m.write[s.namespace] = b
	}
	return nil
}

// rest returns for how long the bundle of a namespace still rests; 0 or less if it may be
// written.
func (m *member) rest(s *share) time.Duration {
	at, found := m.Sent[s.namespace]
	since := m.Now.Sub(at)
	if !found || since < 0 { // the clock was set back
		return 0
	}
	weight := 0
	for _, g := range s.wanted {
		weight += g.Content.Weight
	}
	whole := BundleDelayMax * time.Duration(min(weight, v1alpha1.MaxBundle)) / v1alpha1.MaxBundle
	return max(whole, bundleDelay) - since
}

// shares returns what the cluster is to have, by namespace.
func (m *member) shares() map[string]*share {
	all := map[string]*share{}
	of := func(namespace string) *share {
		if all[namespace] == nil {
			all[namespace] = &share{namespace: namespace}
		}
		return all[namespace]
	}
	for name := range m.Bundles {
		of(name)
	}
	staying := map[string]bool{}
	for _, g := range m.selected() {
		staying[g.UID] = true
		if s, o := of(g.Namespace), m.unfit(g); o == nil {
			s.wanted = append(s.wanted, g)
		} else {
			s.stuck = &obstacle{o.reason, o.message + "; nothing of this namespace is changed in the cluster until then"}
		}
	}
	for _, row := range m.rows {
		s := of(row.Namespace)
		s.rows = append(s.rows, row)
		if m.known[row.UID] != nil && !staying[row.UID] { // one that is not known holds the namespace
			s.leaving = append(s.leaving, row.UID)
		}
	}
	for _, g := range m.grids {
		_, reported := m.reported[g.UID]
		_, listed := m.listed[g.UID]
		if reported && !listed && (g.Deleting || m.removing) {
			s := of(g.Namespace)
			s.leaving = append(s.leaving, g.UID)
		}
	}
	m.hold(all)
	return all
}

// selected returns the Grids that the cluster is to have, and notes what is wrong with some.
// Those that are unfit for it are among them if the cluster has them, and left out otherwise.
func (m *member) selected() []*Grid {
	var selected []*Grid
	if m.removing {
		return nil
	}
	// A bundle without a list of what is in it is from an earlier FleetCluster of that name.
	adopted := maps.Clone(m.Bundles)
	for _, row := range m.last.Grids {
		delete(adopted, row.Namespace)
	}
	for _, g := range m.grids {
		if d := m.departures[g.UID]; d != nil && !d.leave {
			g = d.grid
		} else if g.Deleting || !g.Content.Wanted || !m.selects(&g.Content) {
			continue
		}
		if o := m.unfit(g); o != nil {
			if g.Content.Fault == "" {
				m.fault(g, *o)
			}
			if _, maybe := adopted[g.Namespace]; !m.has(g.UID) && !maybe {
				m.note(*o)
				continue
			}
		}
		selected = append(selected, g)
	}
	return m.distinct(selected)
}

// unfit returns why a Grid cannot be sent to this cluster as it is; nil if it can be.
func (m *member) unfit(g *Grid) *obstacle {
	target := g.Content.TargetNamespace
	switch {
	case g.Content.Fault != "":
		return &obstacle{reasonFault, fmt.Sprintf("%s is not sent: %s", g.Ref, g.Content.Fault)}
	case target != g.Namespace && !m.mayTarget(target):
		return &obstacle{reasonTarget, fmt.Sprintf("%s is not sent to cluster %s: its annotation %s is %s, and spec.targetNamespaces of FleetCluster %s "+
			"does not allow that: add it there, or remove the annotation", g.Ref, m.name, v1alpha1.AnnotationTargetNamespace, target, m.name)}
	case len(m.Object.Spec.Namespaces) > 0 && !slices.Contains(m.Object.Spec.Namespaces, target):
		return &obstacle{reasonNamespace, fmt.Sprintf("%s is not sent to cluster %s: spec.namespaces of FleetCluster %s does not have namespace %s: add it there, "+
			"or select other clusters by annotation %s", g.Ref, m.name, m.name, target, v1alpha1.AnnotationClusters)}
	}
	return nil
}

// mayTarget reports whether Grids of other namespaces may be put into this one. Who may create a
// Grid in one namespace must not thereby get at another.
func (m *member) mayTarget(namespace string) bool {
	return slices.ContainsFunc(m.Object.Spec.TargetNamespaces, func(allowed string) bool { return allowed == namespace || allowed == "*" })
}

// distinct leaves out Grids whose name in the cluster another Grid has, and notes that. First
// comes what the cluster has, then what is in its own namespace. It changes selected.
func (m *member) distinct(selected []*Grid) []*Grid {
	rank := func(g *Grid) int {
		switch {
		case m.has(g.UID):
			return 0
		case g.Namespace == g.Content.TargetNamespace:
			return 1
		default:
			return 2
		}
	}
	first := map[Ref]*Grid{}
	key := func(g *Grid) Ref { return Ref{Kind: g.Kind, Namespace: g.Content.TargetNamespace, Name: g.Name} }
	for _, g := range selected {
		if other, found := first[key(g)]; m.unfit(g) == nil && (!found || rank(g) < rank(other)) {
			first[key(g)] = g
		}
	}
	return slices.DeleteFunc(selected, func(g *Grid) bool {
		winner := first[key(g)]
		if m.unfit(g) != nil || winner.UID == g.UID || m.has(g.UID) {
			return false
		}
		o := obstacle{reasonCollision, fmt.Sprintf("%s is not sent to cluster %s, where it would have the name of %s: rename one, or change annotation %s",
			g.Ref, m.name, winner.Ref, v1alpha1.AnnotationTargetNamespace)}
		m.note(o)
		m.fault(g, o)
		return true
	})
}

// bound marks shares that are too large as stuck, or leaves out their new Grids while others
// leave. Those with the fewest Grids come first.
func (m *member) bound(shares map[string]*share) {
	count := len(m.rows)
	for _, s := range slices.SortedFunc(maps.Values(shares), func(a, b *share) int {
		return cmp.Or(len(a.wanted)-len(b.wanted), cmp.Compare(a.namespace, b.namespace))
	}) {
		if s.stuck != nil {
			continue
		}
		// While Grids are being listed others have not left yet.
		known := slices.DeleteFunc(slices.Clone(s.wanted), func(g *Grid) bool { _, listed := m.listed[g.UID]; return !listed })
		more := len(s.wanted) - len(known)
		o := m.tooLarge(s)
		switch {
		case more > 0 && len(s.rows)+more > v1alpha1.MaxNamespaceGrids:
			o = &obstacle{reasonTooMany, fmt.Sprintf("namespace %s is left as it is in cluster %s, which would have more than %d Grids of it: delete Grids, "+
				"select fewer by annotation %s, or keep some in another namespace", s.namespace, m.name, v1alpha1.MaxNamespaceGrids, v1alpha1.AnnotationClusters)}
		case more > 0 && count+more > v1alpha1.MaxGrids:
			o = &obstacle{reasonTooMany, fmt.Sprintf("namespace %s is left as it is in cluster %s, which would have more than %d Grids: delete Grids, "+
				"or select fewer by annotation %s", s.namespace, m.name, v1alpha1.MaxGrids, v1alpha1.AnnotationClusters)}
		}
		switch {
		case o == nil:
			count += more
		case o.reason == reasonTooMany && len(s.leaving) > 0:
			s.wanted = known // those that leave make room
		default:
			for _, g := range s.wanted {
				m.fault(g, *o)
			}
			s.stuck = o
		}
	}
}

// tooLarge returns why the Grids of a namespace do not fit into a bundle; nil if they do.
func (m *member) tooLarge(s *share) *obstacle {
	weight, size := 0, 0
	for _, g := range s.wanted {
		weight, size = weight+g.Content.Weight, size+len(g.Content.Object)+headerMax
	}
	for range m.namespaces(s) {
		weight, size = weight+headerMax, size+2*headerMax
	}
	if weight <= v1alpha1.MaxBundle && size <= archive.MaxUnpacked {
		return nil
	}
	return &obstacle{reasonTooLargeBundle, fmt.Sprintf("namespace %s is left as it is in cluster %s: its Grids take about %d bytes packed (%d unpacked), "+
		"above the bound of %d (%d): make Grids smaller, or keep some in another namespace",
		s.namespace, m.name, weight, size, v1alpha1.MaxBundle, archive.MaxUnpacked)}
}

// fault reports what is wrong with one Grid; the first cluster by name counts.
func (m *member) fault(g *Grid, o obstacle) {
	if _, found := m.faults[g.UID]; !found {
		m.faults[g.UID] = v1alpha1.Problem{Reason: o.reason, Message: o.message}
	}
}

func (m *member) rowOf(g *Grid) v1alpha1.ClusterGrid {
	row := v1alpha1.ClusterGrid{Kind: g.Kind, Namespace: g.Namespace, Name: g.Name, UID: g.UID, Revision: g.Content.Revision}
	if g.Content.TargetNamespace != g.Namespace {
		row.TargetNamespace = g.Content.TargetNamespace
	}
	if d := m.departures[g.UID]; d != nil && !d.leave {
		row.LeavingSince, row.Leaving = d.since, d.text
	}
	return row
}

func (m *member) bundle(s *share) Bundle {
	b := Bundle{Grids: int32(len(s.wanted))}
	sum := sha256.New()
	for _, name := range m.namespaces(s) {
		labels := m.PodSecurity[s.namespace]
		fmt.Fprintf(sum, "Namespace %s\n", name)
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			fmt.Fprintf(sum, "%s=%s\n", key, labels[key])
		}
		b.Objects = append(b.Objects, archive.Namespace(name, labels))
	}
	for _, g := range s.wanted {
		fmt.Fprintf(sum, "%s %s\n", g.UID, g.Content.Revision)
		b.Objects = append(b.Objects, g.Content.Object)
	}
	b.Revision = hex.EncodeToString(sum.Sum(nil)[:8])
	return b
}

// namespaces returns the namespaces to create in the cluster for a share, sorted; nil if the
// FleetCluster asks for none.
func (m *member) namespaces(s *share) []string {
	if !m.Object.Spec.CreateNamespace {
		return nil
	}
	names := map[string]bool{}
	for _, g := range s.wanted {
		if name := g.Content.TargetNamespace; name != "default" && !strings.HasPrefix(name, "kube-") {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
