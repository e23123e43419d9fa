package site

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	"gridproxy/controller/flips"
	"gridproxy/controller/removal"
	"gridproxy/controller/retry"
	"gridproxy/controller/site/assign"
	"gridproxy/controller/written"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconciler makes everything what assign says, each time from everything that is observed.
type reconciler struct {
	client client.Client // reads from the caches
	live   client.Reader // reads from the API server
	now    func() time.Time
	grace  time.Duration
	budget removal.Budget
	// maxUnits is how many units a group may find, newUnits how many one Node may bring; 0: no limit.
	maxUnits, newUnits int
	flips              map[types.UID]flips.Log // by group
	// watched is when everything was observed first.
	watched time.Time
	// defaultUnit is the name of the unit that is still to be made, "" once it has been seen.
	defaultUnit string
	written     written.Versions
	nodes       *nodeMemory
	foreign     map[types.UID]time.Time // when a Node's claims were reported
	uses        *uses
	privileged  bool // setNode may set what is privileged
	events      events.EventRecorder
	metrics     *Metrics
}

// reportForeign sends an Event, once an hour, on each Node whose annotation calls taints ours that
// no unit has set.
func (r *reconciler) reportForeign(nodes []assign.Foreign, now time.Time) {
	maps.DeleteFunc(r.foreign, func(_ types.UID, last time.Time) bool { return now.Sub(last).Abs() >= time.Hour })
	for _, n := range nodes {
		if _, reported := r.foreign[n.UID]; reported {
			continue
		}
		r.foreign[n.UID] = now
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Node, UID: n.UID}}
		r.events.Eventf(node, nil, corev1.EventTypeWarning, "ForeignRecord", "Reconcile", "%s", excerpt.Message(fmt.Sprintf(
			"the annotation %s names taints that no NodeUnit has set: %s; they stay; to remove one that is not wanted: kubectl taint node %s %s-",
			v1alpha2.AnnotationTaints, strings.Join(n.Taints, ", "), n.Node, n.Taints[0])))
	}
}

// Reconcile looks at all Nodes, units and groups and writes what differs.
func (r *reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	observed, stale, err := r.observe(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	var wait bool
	if observed.Uses, wait, err = r.uses.read(ctx, observed.Now); err != nil {
		// Nothing counts as unused then. NodeUnits and NodeGroups go on working.
		log.FromContext(ctx).Error(err, "labels whose NodeUnit or NodeGroup is gone stay on Nodes until this works")
	} else if wait {
		return reconcile.Result{RequeueAfter: cacheDelay}, nil
	}
	plan := assign.Decide(observed)
	r.flips = plan.Flips
	r.metrics.summary.Store(&plan.Summary)
	r.reportForeign(plan.Foreign, observed.Now)
	for _, s := range plan.Refused {
		g := &v1alpha2.NodeGroup{}
		g.Name, g.UID = s.Group, s.UID
		r.events.Eventf(g, nil, corev1.EventTypeWarning, "TooManyNewUnits", "Reconcile", "%s", excerpt.Message(s.Note))
	}
	e := execution{reconciler: r, stale: stale}
	e.again.Store(len(stale) > 0) // the event that shows what was written may look like no change
	if err := e.run(ctx, plan); err != nil {
		return reconcile.Result{}, err
	}
	if e.again.Load() {
		return reconcile.Result{RequeueAfter: cacheDelay}, nil
	}
	if observed.Uses == nil {
		plan.Recheck = retry.Earlier(plan.Recheck, usesPeriod)
	}
	return reconcile.Result{RequeueAfter: plan.Recheck}, nil
}

// observe reads the observed state from the caches. stale are the objects in it that are older than
// what was written to them.
func (r *reconciler) observe(ctx context.Context) (observed assign.Observed, stale map[types.UID]bool, err error) {
	var nodes corev1.NodeList
	var units v1alpha2.NodeUnitList
	var groups v1alpha2.NodeGroupList
	observed = assign.Observed{
		Now: r.now(), Grace: r.grace, Budget: r.budget, AllowPrivileged: r.privileged,
		MaxUnits: r.maxUnits, NewUnits: r.newUnits, Flips: r.flips,
	}
	if r.watched.IsZero() { // the caches have synced, and this replica leads
		r.watched = observed.Now
	}
	observed.Watched = r.watched
	stale, seen := map[types.UID]bool{}, map[types.UID]bool{}
	look := func(o client.Object) bool {
		seen[o.GetUID()] = true
		if _, isStale := r.written.Stale(o); isStale {
			stale[o.GetUID()] = true
		}
		return stale[o.GetUID()]
	}
	// Nothing that is read here is ever written to.
	for _, list := range []client.ObjectList{&units, &groups} {
		if err := r.client.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return observed, nil, fmt.Errorf("reading from the caches: %w", err)
		}
	}
	for i := range units.Items {
		look(&units.Items[i])
		observed.Units = append(observed.Units, &units.Items[i])
		if units.Items[i].Name == r.defaultUnit {
			r.defaultUnit = ""
		}
	}
	observed.Default = r.defaultUnit
	for i := range groups.Items {
		look(&groups.Items[i])
		observed.Groups = append(observed.Groups, &groups.Items[i])
	}
	r.nodes.expect(observed.Units)
	if err := r.client.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return observed, nil, fmt.Errorf("reading Nodes from the cache: %w", err)
	}
	observed.Nodes = r.nodes.readAll(nodes.Items)
	for i := range nodes.Items {
		observed.Nodes[i].Stale = look(&nodes.Items[i])
	}
	r.written.Keep(seen)
	return observed, stale, nil
}

// nodeMemory keeps what was read from each version of a Node, because to read the owners of its
// fields costs more than to decide, and which changes of Nodes matter. It can be lost at any time.
type nodeMemory struct {
	read map[types.UID]assign.Node
	// annotations are the keys that the last decision read; nil: all.
	annotations atomic.Pointer[sets.Set[string]]
}

func newNodeMemory() *nodeMemory { return &nodeMemory{read: map[types.UID]assign.Node{}} }

// expect remembers which annotations of Nodes the next decision, about units, reads. It is
// called before Nodes are listed, so that a change of a Node that does not matter to the units
// before is in that list.
func (m *nodeMemory) expect(units []*v1alpha2.NodeUnit) {
	keys := assign.ReadAnnotations(units)
	m.annotations.Store(&keys)
}

// matters reports whether a Node has changed in what decisions rest on.
func (m *nodeMemory) matters(e event.TypedUpdateEvent[*corev1.Node]) bool {
	keys := m.annotations.Load()
	return keys == nil || assign.Matters(e.ObjectOld, e.ObjectNew, *keys)
}

// readAll returns Nodes as decisions need them. Nodes that are not among them are forgotten.
func (m *nodeMemory) readAll(nodes []corev1.Node) []assign.Node {
	all, read := make([]assign.Node, len(nodes)), make(map[types.UID]assign.Node, len(nodes))
	for i := range nodes {
		n, found := m.read[nodes[i].UID]
		if !found || n.ResourceVersion != nodes[i].ResourceVersion {
			n = assign.ReadNode(&nodes[i])
		}
		all[i], read[n.UID] = n, n
	}
	m.read = read
	return all
}
