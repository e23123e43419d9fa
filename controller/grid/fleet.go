package grid

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/grid/expand"
	"gridproxy/topology/excerpt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// indexUID is an index of Grids: their UIDs. Of GridReports and FleetClusters it is the UIDs of the
// Grids that they are about. Other packages have other indexes of the same caches.
const indexUID = "grid-uid"

// addFleetIndexes adds indexUID to the caches, which tells in which clusters a Grid is, and
// which Grid a report is about.
func addFleetIndexes(ctx context.Context, indexer client.FieldIndexer) error {
	indexed := map[client.Object]client.IndexerFunc{
		&v1alpha1.GridReport{}: func(o client.Object) []string { return []string{string(reportedGrid(o.(*v1alpha1.GridReport)))} },
		&v1alpha1.FleetCluster{}: func(o client.Object) (uids []string) {
			for _, g := range o.(*v1alpha1.FleetCluster).Status.Grids {
				uids = append(uids, g.UID)
			}
			return uids
		},
	}
	for _, k := range kinds() {
		indexed[k.newGrid()] = func(o client.Object) []string { return []string{string(o.GetUID())} }
	}
	for o, uids := range indexed {
		if err := indexer.IndexField(ctx, o, indexUID, uids); err != nil {
			return fmt.Errorf("indexing the cache of %Ts: %w", o, err)
		}
	}
	return nil
}

// reportedGrid returns the UID of the Grid that a report says it is about, "" if it names none.
func reportedGrid(r *v1alpha1.GridReport) types.UID {
	_, uid, _ := strings.Cut(r.Spec.From, "/")
	return types.UID(uid)
}

// federationOff reports whether a Grid asks to be distributed although this controller does not
// distribute Grids.
func (r *reconciler) federationOff(o client.Object) bool {
	return !r.distributes && o.GetLabels()[v1alpha1.LabelFederated] == v1alpha1.Federated
}

// fleet returns what is known of the clusters that a Grid is distributed to: nil if the Grid or
// this controller does not distribute, empty if no cluster has it. Do not write to the result.
func (r *reconciler) fleet(ctx context.Context, o client.Object) ([]expand.Member, error) {
	if !r.distributes {
		return nil, nil
	}
	clusters := &v1alpha1.FleetClusterList{}
	if err := r.client.List(ctx, clusters, client.MatchingFields{indexUID: string(o.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the FleetClusters that have %s %s/%s: %w", r.kind.name, o.GetNamespace(), o.GetName(), err)
	}
	if len(clusters.Items) == 0 && o.GetLabels()[v1alpha1.LabelFederated] != v1alpha1.Federated {
		return nil, nil
	}
	reports, err := r.reports(ctx, o)
	if err != nil {
		return nil, err
	}
	fleet := make([]expand.Member, 0, len(clusters.Items))
	for i := range clusters.Items {
		c := &clusters.Items[i]
		m := expand.Member{Name: c.Name, Report: reports[v1alpha1.NamespacePrefix+c.Name]}
		for _, g := range c.Status.Grids {
			if g.UID == string(o.GetUID()) {
				m.State, m.Message, m.Leaving = g.State, g.Message, g.Leaving
				if since := g.LeavingSince; since != nil {
					m.LeavingSince = since.Time
				}
			}
		}
		if since := c.Status.SilentSince; since != nil {
			m.SilentSince = since.Time
		}
		fleet = append(fleet, m)
	}
	return fleet, nil
}

// reports returns what is reported about a Grid, by the namespace of the report: whoever may
// write there speaks for one cluster. Reports that are too large, or of another format or kind,
// are left out; of several in one namespace, the first by name counts.
func (r *reconciler) reports(ctx context.Context, o client.Object) (map[string]*expand.MemberReport, error) {
	list := &v1alpha1.GridReportList{}
	if err := r.client.List(ctx, list, client.MatchingFields{indexUID: string(o.GetUID())}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the GridReports about %s %s/%s: %w", r.kind.name, o.GetNamespace(), o.GetName(), err)
	}
	reports, names := map[string]*expand.MemberReport{}, map[string]string{}
	for i := range list.Items {
		g := &list.Items[i]
		_, large := g.Annotations[v1alpha1.AnnotationReportBytes]
		if large || g.Spec.Format != v1alpha1.ReportFormat || g.Spec.Kind != string(r.kind.name) {
			continue
		}
		if name, several := names[g.Namespace]; several && cmp.Compare(name, g.Name) < 0 {
			continue // of two, always the same
		}
		names[g.Namespace] = g.Name
		reports[g.Namespace] = &expand.MemberReport{Status: g.Spec.Status, Ready: g.Spec.ReadyUnits, States: g.Spec.States}
	}
	return reports, nil
}

// onReport returns a handler that wakes, after a pause, the Grid that a report is or was about.
func (r *reconciler) onReport() changeHandler[*v1alpha1.GridReport] {
	return onChange(&v1alpha1.GridReport{}, func(ctx context.Context, q queue, old, new *v1alpha1.GridReport) {
		if old.ResourceVersion == new.ResourceVersion {
			return
		}
		for _, report := range []*v1alpha1.GridReport{old, new} {
			index := client.MatchingFields{indexUID: string(reportedGrid(report))}
			for _, grid := range findGrids(ctx, r.client, r.kind, index, "UID", "missed a report of a cluster") {
				q.AddAfter(reconcile.Request{NamespacedName: grid}, reportDelay)
			}
		}
	})
}

// onCluster returns a handler that wakes the Grids that a cluster has or is to have, where
// something changes that a status says about them.
func (r *reconciler) onCluster() changeHandler[*v1alpha1.FleetCluster] {
	return onChange(&v1alpha1.FleetCluster{}, func(_ context.Context, q queue, old, new *v1alpha1.FleetCluster) {
		for _, grid := range changedGrids(old, new) {
			if grid.Kind == string(r.kind.name) {
				q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Namespace: grid.Namespace, Name: grid.Name}})
			}
		}
	})
}

// changedGrids returns the Grids about which two versions of a cluster's status differ, and all
// Grids if the cluster has become silent or reports again. A Grid may be in it twice.
func changedGrids(old, new *v1alpha1.FleetCluster) (changed []v1alpha1.ClusterGrid) {
	if !old.Status.SilentSince.Equal(new.Status.SilentSince) {
		return slices.Concat(old.Status.Grids, new.Status.Grids)
	}
	versions := map[v1alpha1.ClusterGrid]int{}
	for _, g := range slices.Concat(old.Status.Grids, new.Status.Grids) {
		g.LeavingSince = nil // a pointer; the text changes with it
		versions[g]++
	}
	for g, n := range versions {
		if n == 1 { // it is in one of the two
			changed = append(changed, g)
		}
	}
	return changed
}

// trimReport removes from a report what is read neither for a status here nor for what is
// published. A report that is too large keeps only what it is about, and its size in an
// annotation. Equal texts of one report are held once.
func trimReport(r *v1alpha1.GridReport) {
	bytes, trimmed := r.Annotations[v1alpha1.AnnotationReportBytes]
	if n := max(r.Spec.Size(), r.ObjectMeta.Size()); n > v1alpha1.MaxReport {
		bytes, trimmed = strconv.Itoa(n), true
	}
	r.ManagedFields, r.Annotations = nil, nil
	if trimmed { // not one of ours; see hub.readReport
		r.ObjectMeta = metav1.ObjectMeta{
			Namespace: r.Namespace, Name: r.Name, UID: r.UID, ResourceVersion: r.ResourceVersion,
			Annotations: map[string]string{v1alpha1.AnnotationReportBytes: excerpt.Fit(bytes, reportTextMax)},
		}
		r.Spec.Status, r.Spec.States = v1.WorkloadGridStatus{}, nil
	}
	texts := map[string]string{}
	short := func(text string) string {
		if len(text) > reportTextMax {
			text = excerpt.Fit(text, reportTextMax)
		}
		if known, found := texts[text]; found {
			return known
		}
		texts[text] = text
		return text
	}
	if p := r.Spec.Problem; p != nil {
		p.Reason, p.Message = short(p.Reason), short(p.Message)
	}
	s := &r.Spec.Status
	s.Clusters, s.UnusedTemplates, s.PrunedTemplates, s.Removals = nil, nil, nil, nil
	s.Conditions = append([]metav1.Condition(nil), s.Conditions[:min(len(s.Conditions), reportConditionsMax)]...)
	for i := range s.Conditions {
		c := &s.Conditions[i]
		c.Type, c.Reason, c.Message = short(c.Type), short(c.Reason), short(c.Message)
	}
	s.Units = append([]v1.UnitStatus(nil), s.Units[:min(len(s.Units), reportRowsMax)]...)
	for i := range s.Units {
		u := &s.Units[i]
		u.Cluster, u.Value, u.Child, u.Template = "", short(u.Value), short(u.Child), short(u.Template)
		u.Phase, u.Reason, u.Message = v1.UnitPhase(short(string(u.Phase))), short(u.Reason), short(u.Message)
	}
	size := 0
	for value, state := range r.Spec.States {
		size += len(value) + len(state.JSON)
	}
	if size > v1alpha1.MaxReportStates { // not one of ours
		r.Spec.States = nil
	}
}
