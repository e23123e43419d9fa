package delivery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
)

func (a *admission) clusterProblems() []v1alpha1.Problem {
	var all []v1alpha1.Problem
	if a.EngineMissing != "" {
		all = append(all, *problem(ReasonEngineMissing, "%s", a.EngineMissing))
	}
	if a.replaced() {
		all = append(all, *problem(ReasonClusterReplaced, "the hub knows the cluster with the UID %s by this name, and this one is %s: "+
			"if it takes the other one's place, run grid-controller join on the hub again", a.Fleet.Status.ClusterUID, a.ClusterUID))
	}
	if a.foreign != nil {
		all = append(all, *a.foreign)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Bundles)) {
		if why := a.Bundles[name].Unread; why != "" && len(all) < problemsMax {
			all = append(all, *problem(ReasonBundleUnread, "the bundle %s cannot be read: %s; what is applied stays", name, why))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Copies)) {
		switch why := a.Copies[name].Unread; {
		case len(all) >= problemsMax:
		case why != "":
			all = append(all, *problem(ReasonCopyUnread, "what is applied of the hub's namespace %s cannot be read: %s; it stays as it is. To have it made again: "+
				"kubectl delete gridbundle %s.applied, in the namespace of Kustomization grids-%s", name, why, name, name))
		case a.ofOtherHub(name):
			all = append(all, *problem(ReasonOtherHub, "the Grids of namespace %s were sent by another hub, and stay as they are. "+
				"If that hub is gone, delete Kustomization grids-%s, which leaves its Grids, then gridbundle %s.applied, "+
				"and at last those Grids with kubectl delete --cascade=orphan, which leaves their Pods", name, name, name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.Applied)) {
		if a.Applied[name].Idle && len(all) < problemsMax {
			all = append(all, *problem(ReasonEngineIdle, "Flux does not react to Kustomization grids-%s: see whether kustomize-controller runs, "+
				"with --feature-gates=ExternalArtifact=true", name))
			break // all have the same reason
		}
	}
	return all
}

const problemsMax = 10

// reports returns a report, by its name, about every Grid that the hub wants here, and about
// those here that have the hub's annotation: all that it asks about, and straysMax others. It
// adds these to a.wanted. There are at most v1alpha1.MaxGrids.
func (a *admission) reports(apply map[string][]Object) map[string]v1alpha1.GridReportSpec {
	failures := map[string]string{}
	for name, set := range apply {
		for _, o := range set {
			if o.Kind == "Namespace" {
				continue
			}
			if _, found := a.wanted[o.From]; !found {
				a.wanted[o.From] = o
			}
			failures[o.From] = a.Applied[name].Failure
		}
	}
	sent := slices.Sorted(maps.Keys(a.wanted))
	// Beside them there is what the hub asks about, and a few others that have its annotation: it may
	// have lost them. Whoever may make a Grid here can write the annotation, so these come last.
	strays := 0
	isOther := func(key Key) bool {
		_, found := a.wanted[a.Grids[key].From]
		return !found && strings.HasPrefix(a.Grids[key].From, a.Hub+"/")
	}
	for _, key := range interleave(a.Grids, isOther) {
		from := a.Grids[key].From
		if !isOther(key) { // two can have one annotation
			continue
		}
		if !a.asked(from) {
			strays++
		}
		if a.asked(from) || strays <= straysMax {
			a.wanted[from] = Object{Key: key, From: from}
			sent = append(sent, from)
		}
	}
	reports := map[string]v1alpha1.GridReportSpec{}
	for _, from := range sent {
		if len(reports) < v1alpha1.MaxGrids && strings.HasPrefix(from, a.Hub+"/") {
			o := a.wanted[from]
			reports[ReportName(o.Key, from)] = a.report(o, failures[from])
		}
	}
	return reports
}

// straysMax is how many Grids are reported that the hub neither sends nor asks about.
const straysMax = 20

// asked reports whether the hub has listed or withdrawn a Grid with this annotation.
func (a *admission) asked(from string) bool {
	uid, ours := strings.CutPrefix(from, a.Hub+"/")
	if !ours || a.Fleet == nil {
		return false
	}
	return slices.Contains(a.Fleet.Status.Withdrawn, uid) ||
		slices.ContainsFunc(a.Fleet.Status.Grids, func(g v1alpha1.ClusterGrid) bool { return g.UID == uid })
}

// interleave returns the keys of the Grids that count: of each namespace one, and then of each
// another one. So a tenant who makes many does not crowd out those of others.
func interleave(grids map[Key]Live, counts func(Key) bool) []Key {
	keys := slices.DeleteFunc(slices.SortedFunc(maps.Keys(grids), compareKeys), func(key Key) bool { return !counts(key) })
	turn, count := make(map[Key]int, len(keys)), map[string]int{}
	for _, key := range keys {
		turn[key] = count[key.Namespace]
		count[key.Namespace]++
	}
	slices.SortStableFunc(keys, func(x, y Key) int { return turn[x] - turn[y] })
	return keys
}

// compareKeys compares as cmp.Compare does. Namespaces come before Grids, as Flux applies them.
func compareKeys(x, y Key) int {
	last := func(k Key) int {
		if k.Kind == "Namespace" {
			return 0
		}
		return 1
	}
	return cmp.Or(last(x)-last(y), strings.Compare(x.Kind, y.Kind), strings.Compare(x.Namespace, y.Namespace), strings.Compare(x.Name, y.Name))
}

func (a *admission) report(o Object, failure string) v1alpha1.GridReportSpec {
	r := v1alpha1.GridReportSpec{Format: v1alpha1.ReportFormat, From: o.From, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
	if p, found := a.problems[o.From]; found {
		r.Problem = &p
	}
	live, found := a.Grids[o.Key]
	if !found || live.From != o.From {
		if r.Problem == nil && failure != "" {
			r.Problem = applyFailed(failure)
		}
		return r
	}
	r.Revision, r.Observed, r.Status, r.States = live.Revision, live.Observed, live.Status, live.States
	if r.Problem == nil && failure != "" && live.Revision != o.Revision {
		r.Problem = applyFailed(failure)
	}
	_, _ = fmt.Sscanf(live.Status.ReadyRate, "%d/", &r.ReadyUnits)
	return fit(r)
}

// applyFailed returns a problem with Flux's message. The remedy is at the beginning, which is
// never cut.
func applyFailed(failure string) *v1alpha1.Problem {
	return problem(ReasonApplyFailed, "Flux fails; if it does not know a field, run there: kubectl apply --server-side -k deploy/crds; it says: %s", failure)
}

// fit returns a report without what the hub does not use, and without what is above
// v1alpha1.MaxReport: states go first, then the last rows, which are those of healthy units.
func fit(r v1alpha1.GridReportSpec) v1alpha1.GridReportSpec {
	r.Status.UnusedTemplates, r.Status.PrunedTemplates, r.Status.Removals = nil, nil, nil
	r.Status.Clusters, r.Status.ClusterRate = nil, ""
	for sizeOfStates(r.States) > v1alpha1.MaxReportStates {
		r.States = withoutHalf(r.States)
	}
	for r.Size() > v1alpha1.MaxReport {
		switch n := len(r.Status.Units); {
		case len(r.States) > 0:
			r.States = withoutHalf(r.States)
		case n > 0:
			r.Status.OmittedUnits += int32(n - n/2)
			r.Status.Units = r.Status.Units[:n/2]
		default:
			r.Status.Conditions = nil
			return r
		}
	}
	return r
}

func sizeOfStates(states map[string]v1.State) int {
	size := 0
	for value, state := range states {
		size += len(value) + len(state.JSON)
	}
	return size
}

func withoutHalf(states map[string]v1.State) map[string]v1.State {
	keys := slices.Sorted(maps.Keys(states))
	half := make(map[string]v1.State, len(keys)/2)
	for _, k := range keys[:len(keys)/2] {
		half[k] = states[k]
	}
	return half
}

// ReportName returns the name of the report about a Grid: kind, namespace and name, or a hash
// where that is too long. A hash of from, which has the UID, keeps two Grids that want one name
// apart.
func ReportName(key Key, from string) string {
	sum := sha256.Sum256([]byte(from))
	name := strings.ToLower(key.Kind) + "." + key.Namespace + "." + key.Name
	if len(name) > 200 {
		long := sha256.Sum256([]byte(name))
		name = strings.ToLower(key.Kind) + "." + hex.EncodeToString(long[:16])
	}
	return name + "." + hex.EncodeToString(sum[:4])
}
