package plan

import (
	"fmt"
	"slices"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/removal"
	"gridproxy/controller/retry"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
)

// member is one cluster as it is decided on.
type member struct {
	*fleet
	Cluster
	name    string
	last    *v1alpha1.FleetClusterStatus
	silence silence
	// listed are the Grids that the last status lists, and reported the reports on Grids of
	// this hub, by UID.
	listed   map[string]*v1alpha1.ClusterGrid
	reported map[string]*Report
	// answers are which selectors select the cluster, as far as it is known.
	answers map[string]bool
	// removing: everything is to be removed from the cluster.
	removing bool
	releases removal.Releases // of Grids that leave

	// What is decided.
	blocked    *obstacle // why nothing is changed in the cluster
	unknown    []string  // UIDs of the Grids that hold namespaces of it
	departures map[string]*departure
	stuck      map[string]bool // namespaces that are left as they are
	removals   []v1alpha1.GridRemoval
	withdrawn  []string
	rows       []v1alpha1.ClusterGrid
	notes      []obstacle // why single namespaces or Grids are not changed: the first of them
	unnoted    int        // further ones
	expected   []string   // UIDs of Grids that will be listed when they have a finalizer
	write      map[string]Bundle
	remove     []string
	recheck    time.Duration // after how long more can be done; 0: never
}

// obstacle is why something is not changed.
type obstacle struct{ reason, message string }

func (f *fleet) member(c Cluster) *member {
	m := &member{
		fleet: f, Cluster: c, name: c.Object.Name, last: &c.Object.Status,
		listed: map[string]*v1alpha1.ClusterGrid{}, reported: map[string]*Report{},
		removing: c.Object.DeletionTimestamp != nil && c.Object.Spec.OnDelete == v1alpha1.Remove,
		releases: removal.ReadReleases(c.Object.Annotations[v1alpha1.AnnotationRelease]), departures: map[string]*departure{}, stuck: map[string]bool{},
		write: map[string]Bundle{}, answers: f.answersFor(c.Object.Labels),
	}
	for i := range m.last.Grids {
		m.listed[m.last.Grids[i].UID] = &m.last.Grids[i]
	}
	for i := range c.Reports {
		r := &c.Reports[i]
		uid, ours := uidOf(f.Hub, r.From)
		if other, found := m.reported[uid]; ours && (!found || r.Object < other.Object) {
			m.reported[uid] = r
		}
	}
	m.silence = m.silenceOf()
	return m
}

// note notes why something is not changed. There may be as many reasons as tenants write Grids,
// so only the first are kept, and the others counted.
func (m *member) note(o obstacle) {
	if len(m.notes) == notesMax {
		m.unnoted++
		return
	}
	m.notes = append(m.notes, o)
}

// has reports whether the cluster has the Grid, or may have it.
func (m *member) has(uid string) bool {
	_, listed := m.listed[uid]
	_, reported := m.reported[uid]
	return listed || reported
}

func (m *member) decide() ClusterPlan {
	m.rows = slices.Clone(m.last.Grids)
	m.withdrawn = slices.Clone(m.last.Withdrawn)
	if m.blocked = m.obstacle(); m.blocked == nil {
		m.release()
	}
	m.unknown = m.unknownGrids()
	m.removals = slices.DeleteFunc(slices.Clone(m.last.Removals), func(r v1alpha1.GridRemoval) bool { return !counts(r, m.Now) || m.known[r.UID] == nil })
	if m.blocked == nil {
		m.findDepartures()
		m.distribute()
		m.takePlaces()
	} else { // what becomes of Grids is not looked at, so a mistake that follows has its whole grace
		for i := range m.rows {
			m.correct(&m.rows[i])
		}
	}
	m.abandon()
	m.describeRows()
	deleting, finalizer := m.Object.DeletionTimestamp != nil, slices.Contains(m.Object.Finalizers, v1alpha1.Finalizer)
	p := ClusterPlan{
		Name: m.name, Write: m.write, Remove: m.remove, Status: m.status(),
		AddFinalizer:    !deleting && !finalizer,
		RemoveFinalizer: deleting && finalizer && m.done(),
	}
	since := m.Now.Sub(m.Told)
	switch {
	case equal(p.Status, *m.last):
		p.Status = *m.last
	case since >= 0 && since < StatusPeriod && equal(gist(p.Status), gist(*m.last)):
		p.Status, m.recheck = *m.last, retry.Earlier(m.recheck, StatusPeriod-since)
	}
	return p
}

// equal reports whether two statuses say the same. There may be many rows.
func equal(a, b v1alpha1.FleetClusterStatus) bool {
	same := slices.EqualFunc(a.Grids, b.Grids, func(x, y v1alpha1.ClusterGrid) bool {
		since := x.LeavingSince.Equal(y.LeavingSince)
		x.LeavingSince, y.LeavingSince = nil, nil
		return since && x == y
	})
	a.Grids, b.Grids = nil, nil
	return same && equality.Semantic.DeepEqual(a, b)
}

// gist returns a copy of a status without its numbers and messages.
func gist(of v1alpha1.FleetClusterStatus) v1alpha1.FleetClusterStatus {
	s := *of.DeepCopy()
	s.Nodes, s.Units = 0, 0
	for i := range s.Conditions {
		s.Conditions[i].Message = ""
	}
	for i := range s.Grids {
		s.Grids[i].Message = ""
	}
	return s
}

// obstacle returns why nothing may be changed in the whole cluster, or nil. Grids that are not
// known are no reason: they hold only their namespaces.
func (m *member) obstacle() *obstacle {
	switch o := m.Object; {
	case m.Hub == "":
		return &obstacle{"HubUnknown", "nothing is sent: the UID of namespace kube-system of this cluster is not known yet"}
	case o.DeletionTimestamp == nil && !slices.Contains(o.Finalizers, v1alpha1.Finalizer):
		return &obstacle{reasonWaiting, "the FleetCluster gets its finalizer first"}
	case o.DeletionTimestamp != nil && !m.removing:
		return &obstacle{"Orphaned", "the FleetCluster is deleted; its Grids stay in the cluster"}
	case !m.Namespace:
		return &obstacle{"NamespaceMissing", fmt.Sprintf("namespace %s%s does not exist, so that nothing is sent: run grid-controller join --cluster %s%s",
			v1alpha1.NamespacePrefix, m.name, m.name, m.joinFlags())}
	case m.replaced():
		return m.obstacleReplaced()
	case o.Spec.Suspend:
		return &obstacle{"Suspended", "nothing is changed in the cluster: set spec.suspend to false to go on"}
	}
	return nil
}

// replaced reports whether another cluster answers than the one that did first, or did so when it
// was last heard.
func (m *member) replaced() bool {
	if m.Heartbeat == nil || m.Heartbeat.ClusterUID == "" {
		return meta.IsStatusConditionTrue(m.last.Conditions, v1alpha1.ConditionClusterReplaced)
	}
	return m.last.ClusterUID != "" && shortened(m.Heartbeat.ClusterUID) != m.last.ClusterUID
}

func (m *member) obstacleReplaced() *obstacle {
	if m.Heartbeat == nil || m.Heartbeat.ClusterUID == "" {
		return &obstacle{v1alpha1.ConditionClusterReplaced, meta.FindStatusCondition(m.last.Conditions, v1alpha1.ConditionClusterReplaced).Message}
	}
	return &obstacle{v1alpha1.ConditionClusterReplaced, fmt.Sprintf("nothing is sent: namespace kube-system of the cluster that answers has UID %s, "+
		"and that of the one before had %s; if the cluster was made again, run: grid-controller join --cluster %s%s",
		shortened(m.Heartbeat.ClusterUID), m.last.ClusterUID, m.name, m.joinFlags())}
}

// joinFlags returns the flags that grid-controller join needs besides the name of the cluster.
func (m *member) joinFlags() string {
	if m.Object.Spec.KubeConfig != nil {
		return " --member-kubeconfig FILE"
	}
	return ""
}

// detaching reports whether the deletion of the FleetCluster waits until Flux has dropped the
// cluster.
func (m *member) detaching() bool {
	return m.Object.DeletionTimestamp != nil && slices.Contains(m.Object.Finalizers, v1alpha1.Finalizer) && !m.removing && !m.done()
}

// done reports whether a FleetCluster that is being deleted can go.
func (m *member) done() bool {
	switch {
	case !m.removing:
		return m.Detached || m.Object.Spec.Pull
	case !m.Namespace:
		return true
	default:
		return len(m.last.Grids) == 0 && len(m.Bundles) == 0 && len(m.reported) == 0
	}
}
