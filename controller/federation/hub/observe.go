package hub

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/hub/plan"
	"gridproxy/topology/excerpt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// lists is everything that is read from the caches. Nothing in it is ever written to.
type lists struct {
	grids      []client.Object
	clusters   []v1alpha1.FleetCluster
	bundles    []v1alpha1.GridBundle
	reports    []v1alpha1.GridReport
	leases     []coordinationv1.Lease
	namespaces []metav1.PartialObjectMetadata
}

// memory is what was read before. It can be lost at any time.
type memory struct {
	grids   memo[plan.Grid]
	reports memo[plan.Report]
	heard   heardLast
}

// observe makes of the lists what a decision rests on, without what this process is configured
// with or has written. hub is the UID of the Namespace kube-system.
func (m *memory) observe(l lists, hub string, now time.Time) plan.Observed {
	o := plan.Observed{Hub: hub, Now: now, PodSecurity: map[string]map[string]string{}}
	m.grids.begin()
	m.reports.begin()
	for _, g := range l.grids {
		if !isDistributed(g) {
			o.Grids = append(o.Grids, plan.Known(typeName(g), g))
			continue
		}
		o.Grids = append(o.Grids, m.grids.of(g, func() plan.Grid { return plan.Read(hub, untyped(g)) }))
	}
	leases := map[string]*coordinationv1.Lease{}
	at := make(map[string]int, len(l.clusters))
	for i := range l.clusters {
		at[l.clusters[i].Name] = i
		o.Clusters = append(o.Clusters, plan.Cluster{Object: &l.clusters[i], Bundles: map[string]string{}})
	}
	// What is in the namespace of a cluster is of this cluster, whatever it says: others cannot
	// write there.
	cluster := func(namespace string) *plan.Cluster {
		name, isOfFleet := strings.CutPrefix(namespace, v1alpha1.NamespacePrefix)
		if i, exists := at[name]; isOfFleet && exists {
			return &o.Clusters[i]
		}
		return nil
	}
	for i := range l.namespaces {
		n := &l.namespaces[i]
		_, joined := n.Labels[v1alpha1.LabelCluster] // otherwise anyone may have made it, and read there
		if c := cluster(n.Name); c != nil && joined && n.DeletionTimestamp == nil {
			c.Namespace = true
		}
		if len(n.Labels) > 0 && !joined {
			o.PodSecurity[n.Name] = n.Labels
		}
	}
	for i := range l.bundles {
		if c := cluster(l.bundles[i].Namespace); c != nil && isOurs(&l.bundles[i]) {
			c.Bundles[l.bundles[i].Name] = l.bundles[i].Annotations[v1alpha1.AnnotationRevision]
		}
	}
	for i := range l.reports {
		if c := cluster(l.reports[i].Namespace); c != nil {
			c.Reports = append(c.Reports, m.reports.of(&l.reports[i], func() plan.Report { return readReport(&l.reports[i]) }))
		}
	}
	for i := range l.leases {
		if c := cluster(l.leases[i].Namespace); c != nil && l.leases[i].Name == v1alpha1.HeartbeatLease {
			leases[c.Object.Name] = &l.leases[i]
		}
	}
	m.heard = m.heard.next(leases, now)
	for i := range o.Clusters {
		if beat, found := m.heard[o.Clusters[i].Object.Name]; found {
			o.Clusters[i].Heartbeat = &beat
		}
	}
	return o
}

// isDistributed reports whether the Grid is distributed, or was.
func isDistributed(o client.Object) bool {
	return o.GetLabels()[v1alpha1.LabelFederated] == v1alpha1.Federated || slices.Contains(o.GetFinalizers(), v1alpha1.Finalizer)
}

// isOurs reports whether the hub keeps this bundle. An agent of the hub has its own copies
// beside it, without the label.
func isOurs(b *v1alpha1.GridBundle) bool { return b.Labels[v1alpha1.LabelCluster] != "" }

// untyped returns a Grid as JSON has it, with its kind, which objects of a cache do not have.
func untyped(g client.Object) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	if fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g); err == nil { // it was read from JSON
		u.Object = fields
	}
	u.SetGroupVersionKind(v1.GroupVersion().WithKind(typeName(g)))
	return u
}

func typeName(g client.Object) string {
	switch g.(type) {
	case *v1.DeploymentGrid:
		return "DeploymentGrid"
	case *v1.StatefulSetGrid:
		return "StatefulSetGrid"
	default:
		return "ServiceGrid"
	}
}

func readReport(r *v1alpha1.GridReport) plan.Report {
	out := plan.Report{
		Object: r.Name, From: r.Spec.From, Revision: r.Spec.Revision, Kind: r.Spec.Kind, Namespace: r.Spec.Namespace, Name: r.Spec.Name,
		Observed: r.Spec.Observed, Problem: r.Spec.Problem,
	}
	if r.Spec.Format != v1alpha1.ReportFormat {
		out.Unread = fmt.Sprintf("its format is %d, and this grid-controller reads %d: update the grid-controller of the hub, and only then the others",
			r.Spec.Format, v1alpha1.ReportFormat)
		return out
	}
	size, large := r.Annotations[v1alpha1.AnnotationReportBytes] // the cache has no more of it
	if n := r.Spec.Size(); n > v1alpha1.MaxReport {
		size, large = strconv.Itoa(n), true
	}
	if large {
		out.Unread = fmt.Sprintf("it has %s bytes, more than %d, which no grid-controller writes: find out what else uses the account of the cluster",
			size, v1alpha1.MaxReport)
		return out
	}
	for _, u := range r.Spec.Status.Units {
		out.Units = append(out.Units, u.Value)
	}
	return out
}

// bundleBytes returns the size in bytes of the archive of a bundle in the cache.
func bundleBytes(b *v1alpha1.GridBundle) int {
	size, err := strconv.Atoi(b.Annotations[annotationSize])
	if err != nil {
		return len(b.Spec.Archive)
	}
	return size
}

// memo keeps what was read from each version of an object. It forgets the objects that a round has
// not asked about, so it is as large as what exists.
type memo[T any] struct {
	last, now map[string]remembered[T] // by UID
}

type remembered[T any] struct {
	version string
	value   T
}

func (m *memo[T]) begin() { m.last, m.now = m.now, map[string]remembered[T]{} }

// of returns what read returns for this version of an object. It calls read only if that is not
// known.
func (m *memo[T]) of(o client.Object, read func() T) T {
	uid := string(o.GetUID())
	r, found := m.last[uid]
	if !found || r.version != o.GetResourceVersion() {
		r = remembered[T]{o.GetResourceVersion(), read()}
	}
	m.now[uid] = r
	return r.value
}

// renewalFormat is how the API server writes a renewTime.
const renewalFormat = "2006-01-02T15:04:05.000000Z07:00"

// heardLast remembers by our own clock when the last renewal of each cluster was seen first. It is
// as large as there are clusters.
type heardLast map[string]plan.Heartbeat

// next returns the memory after another look at the Leases, by the names of their clusters. A
// Lease whose heartbeat cannot be read counts as missing. One that was never renewed says why:
// such a cluster has not been heard.
func (h heardLast) next(leases map[string]*coordinationv1.Lease, now time.Time) heardLast {
	after := make(heardLast, len(leases))
	for cluster, l := range leases {
		said, ok := readHeartbeat(l)
		if !ok {
			continue
		}
		beat := plan.Heartbeat{Heartbeat: said, Heard: now}
		if at := l.Spec.RenewTime; at != nil {
			beat.Renewal = at.UTC().Format(renewalFormat)
		}
		if before, known := h[cluster]; known && before.Renewal == beat.Renewal {
			beat.Heard = before.Heard
		}
		after[cluster] = beat
	}
	return after
}

// readHeartbeat reads what a member says of itself, within bounds. It returns false if that
// cannot be read, or if the Lease has neither a renewTime nor a problem.
func readHeartbeat(l *coordinationv1.Lease) (v1alpha1.Heartbeat, bool) {
	var h v1alpha1.Heartbeat
	text := l.Annotations[v1alpha1.AnnotationHeartbeat]
	if len(text) > heartbeatMax || json.Unmarshal([]byte(text), &h) != nil {
		return h, false
	}
	h.ClusterUID, h.Version = excerpt.Fit(h.ClusterUID, wordMax), excerpt.Fit(h.Version, wordMax)
	h.Problems = h.Problems[:min(len(h.Problems), problemsMax)]
	for i, p := range h.Problems {
		h.Problems[i] = v1alpha1.Problem{Reason: excerpt.Fit(p.Reason, wordMax), Message: excerpt.Fit(p.Message, v1alpha1.MaxMessage)}
	}
	return h, l.Spec.RenewTime != nil || len(h.Problems) > 0
}
