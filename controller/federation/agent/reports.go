package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/topology/excerpt"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// saying is a report that the hub has.
type saying struct {
	text string // JSON; "": not known, so it is written again
	at   time.Time
}

// report writes what has changed to the hub. unread is why something could not be read, or nil.
// again is after how long there is more to say.
func (a *Agent) report(ctx context.Context, o delivery.Observed, d delivery.Delivery, unread error) (again time.Duration, err error) {
	again = heartbeatPeriod
	if o.Grids != nil && d.Reports != nil {
		a.forgetSaid(o.Fleet, d.Reports)
		next, unsaid := a.reports(ctx, o.Fleet, d.Reports)
		again, err = min(again, next), unsaid
	}
	next, silent := a.heartbeat(ctx, o, d.Problems, unread)
	return min(again, next), errors.Join(err, silent)
}

// reports writes reports that differ, each at most every 10 s, and deletes those of Grids that
// are neither here nor wanted here. It does nothing until it knows which the hub has. It
// returns after how long there is more to write, at most heartbeatPeriod.
func (a *Agent) reports(ctx context.Context, fleet *v1alpha1.FleetCluster, want map[string]v1alpha1.GridReportSpec) (time.Duration, error) {
	if err := a.recall(ctx, fleet); err != nil || !a.recalled {
		return heartbeatPeriod, err
	}
	again := heartbeatPeriod
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(want)) {
		text, err := json.Marshal(want[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("encoding the report %s: %w", name, err))
			continue
		}
		said := a.said[name]
		if said.text == string(text) {
			continue
		}
		if left := reportPeriod - a.Now().Sub(said.at); left > 0 && left <= reportPeriod && !said.at.IsZero() {
			again = min(again, left)
			continue
		}
		if err := a.writeReport(ctx, name, want[name]); err != nil {
			errs = append(errs, err)
			if apierrors.ReasonForError(err) == metav1.StatusReasonUnknown {
				break // the hub does not answer: the others would wait for it too
			}
			continue
		}
		a.said[name] = saying{text: string(text), at: a.Now()}
	}
	for name := range a.said {
		if _, wanted := want[name]; wanted {
			continue
		}
		r := &v1alpha1.GridReport{}
		r.Namespace, r.Name = a.home(), name
		if err := a.HubAccess.Client.Delete(ctx, r); client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting the report %s: %w", name, err))
			continue
		}
		delete(a.said, name)
	}
	return again, errors.Join(errs...)
}

// home returns the cluster's namespace on the hub.
func (a *Agent) home() string { return v1alpha1.NamespacePrefix + a.Cluster }

// forgetSaid makes recall list again which reports the hub has, when it seems to have lost
// some: it was restored from a backup, or the cluster has left and joined again.
func (a *Agent) forgetSaid(fleet *v1alpha1.FleetCluster, want map[string]v1alpha1.GridReportSpec) {
	if fleet == nil || !a.recalled {
		return
	}
	if fleet.UID != a.toldTo {
		a.recalled = false
		return
	}
	if a.Now().Sub(a.recalledAt) < recallPeriod {
		return
	}
	known := map[string]string{} // states by UID
	for _, g := range fleet.Status.Grids {
		known[g.UID] = g.State
	}
	for _, uid := range fleet.Status.Withdrawn {
		known[uid] = "Withdrawn"
	}
	for name, r := range want {
		state, found := known[strings.TrimPrefix(r.From, a.Hub+"/")]
		if _, said := a.said[name]; said && (!found || state == "Waiting") {
			a.recalled = false
			return
		}
	}
}

// recall lists into a.said the reports that the hub has, unless they are known or to is nil.
func (a *Agent) recall(ctx context.Context, to *v1alpha1.FleetCluster) error {
	if a.recalled || to == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var list v1alpha1.GridReportList
	if err := a.HubAccess.Live.List(ctx, &list, client.InNamespace(a.home())); err != nil {
		return fmt.Errorf("reading the reports that the hub has: %w", err)
	}
	before := a.said
	a.said = map[string]saying{}
	for _, r := range list.Items {
		text, err := json.Marshal(r.Spec)
		if err != nil {
			text = nil
		}
		a.said[r.Name] = saying{text: string(text), at: before[r.Name].at}
	}
	a.recalled, a.recalledAt, a.toldTo = true, a.Now(), to.UID
	return nil
}

func (a *Agent) writeReport(ctx context.Context, name string, spec v1alpha1.GridReportSpec) error {
	r := &v1alpha1.GridReport{Spec: spec}
	r.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind("GridReport"))
	r.Namespace, r.Name = a.home(), name
	r.Labels = map[string]string{v1alpha1.LabelCluster: a.Cluster}
	return wrap("writing the report "+name, a.write(ctx, a.HubAccess.Client, r))
}

// heartbeat is what an agent knows of its Lease.
type heartbeat struct {
	clusterUID string
	uidRead    time.Time

	renewed time.Time
	text    string  // the annotation that was written last
	version string  // of the Lease as this agent left it; "": not known
	lost    bool    // the hub has lost what was written, and it is not noticed yet
	tried   writing // what this agent wrote last, also if no answer came
}

// heartbeat renews the Lease when a minute is over, or when there is something new to say. That
// of a cluster that cannot be read only says why. It returns after how long to call it again.
func (a *Agent) heartbeat(ctx context.Context, o delivery.Observed, problems []v1alpha1.Problem, unread error) (time.Duration, error) {
	heard := o.Grids != nil
	due := a.Now().Sub(a.beat.renewed) >= heartbeatPeriod
	var uncounted error // the Lease does not wait for it
	beat := v1alpha1.Heartbeat{ClusterUID: o.ClusterUID, Version: a.Version, Problems: problems}
	if !heard {
		if !due || unread == nil {
			return heartbeatPeriod, nil
		}
		beat.Nodes, beat.Problems = a.nodes, append(problems, a.unreachable(unread))
	} else {
		beat.Nodes, uncounted = a.countNodes(ctx, due)
	}
	text, err := json.Marshal(beat)
	if err != nil {
		return 0, fmt.Errorf("encoding the heartbeat: %w", err)
	}
	if string(text) == a.beat.text && !(due && heard) {
		return max(time.Second, heartbeatPeriod-a.Now().Sub(a.beat.renewed)), uncounted
	}
	if left := reportPeriod - a.Now().Sub(a.beat.renewed); !due && left > 0 {
		return left, uncounted
	}
	if err := a.renew(ctx, string(text), o.ClusterUID, heard); err != nil {
		return 0, errors.Join(err, uncounted)
	}
	a.beat.text, a.beat.renewed = string(text), a.Now()
	return heartbeatPeriod, uncounted
}

// unreachable returns the problem that the cluster cannot be read, with a remedy.
func (a *Agent) unreachable(why error) v1alpha1.Problem {
	remedy := "see whether its API server answers"
	if a.KubeConfig != nil {
		remedy = "if its kubeconfig is wrong or has expired, give another: grid-controller join --cluster " + a.Cluster + " --member-kubeconfig FILE"
	}
	text := "the cluster cannot be read; " + remedy + ": " + excerpt.Message(why.Error())
	return v1alpha1.Problem{Reason: delivery.ReasonUnreachable, Message: excerpt.Fit(text, v1alpha1.MaxMessage)}
}

func (a *Agent) renew(ctx context.Context, text, holder string, heard bool) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = a.home(), v1alpha1.HeartbeatLease
	meta := map[string]any{
		"labels": map[string]string{v1alpha1.LabelCluster: a.Cluster}, "annotations": map[string]string{v1alpha1.AnnotationHeartbeat: text},
	}
	at := time.Time{}
	spec := map[string]any{"holderIdentity": holder, "leaseDurationSeconds": int(heartbeatPeriod.Seconds())}
	if heard {
		at = a.Now().Truncate(time.Microsecond)
		spec["renewTime"] = metav1.NewMicroTime(at)
	}
	before := a.beat.tried
	a.beat.tried = writing{text: text, at: at}
	lost, err := a.writeLease(ctx, lease, before, meta, spec)
	if err != nil {
		return fmt.Errorf("renewing the Lease of the cluster on the hub: %w", err)
	}
	a.beat.version = lease.ResourceVersion
	a.beat.lost = a.beat.lost || lost
	if a.beat.lost && a.HubRestored != nil && a.HubRestored() {
		a.beat.lost = false
	}
	return nil
}

// writing is what of a Lease tells one that was written from another.
type writing struct {
	text string
	at   time.Time // zero: the time was left as it was
}

// in reports whether the Lease has this text, and this time unless it is zero.
func (w writing) in(lease *coordinationv1.Lease) bool {
	renewed := lease.Spec.RenewTime
	return lease.Annotations[v1alpha1.AnnotationHeartbeat] == w.text && (w.at.IsZero() || renewed != nil && renewed.Equal(&metav1.MicroTime{Time: w.at}))
}

// writeLease writes the Lease, or creates it, and reads the answer into lease. lost reports,
// also with an error, that the hub no longer had what this agent wrote before.
func (a *Agent) writeLease(ctx context.Context, lease *coordinationv1.Lease, before writing, meta, spec map[string]any) (lost bool, err error) {
	patch := func(body map[string]any) error {
		text, err := json.Marshal(body)
		if err != nil {
			return fmt.Errorf("encoding the Lease: %w", err)
		}
		return a.HubAccess.Client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, text), client.FieldOwner(Manager))
	}
	body := map[string]any{"metadata": meta, "spec": spec}
	if a.beat.version != "" {
		meta["resourceVersion"] = a.beat.version
		err = patch(body)
		delete(meta, "resourceVersion")
		if apierrors.IsConflict(err) { // a patch without content reads it: there is no right to get it
			err = patch(map[string]any{})
			lost = err == nil && !before.in(lease)
		} else if err == nil {
			return false, nil
		}
		if lost = lost || apierrors.IsNotFound(err); err != nil && !lost {
			return false, err
		}
	}
	if err = patch(body); apierrors.IsNotFound(err) {
		text, err := json.Marshal(body)
		if err == nil {
			err = json.Unmarshal(text, lease)
		}
		if err != nil {
			return lost, fmt.Errorf("encoding the Lease: %w", err)
		}
		return lost, a.HubAccess.Client.Create(ctx, lease, client.FieldOwner(Manager))
	}
	return lost, err
}

// countNodes returns how many Nodes there are; if due is false, or on an error, the last count.
func (a *Agent) countNodes(ctx context.Context, due bool) (int32, error) {
	if !due {
		return a.nodes, nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := a.Target.Live.List(ctx, list, client.Limit(1)); err != nil {
		return a.nodes, fmt.Errorf("counting the Nodes of the cluster: %w", err)
	}
	a.nodes = int32(len(list.Items))
	if more := list.RemainingItemCount; more != nil {
		a.nodes += int32(*more)
	}
	return a.nodes, nil
}
