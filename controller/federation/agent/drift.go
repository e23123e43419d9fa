package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/agent/delivery"
	"gridproxy/controller/federation/hub/plan"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// requested is the annotation by which Flux looks at a Kustomization at once.
const requested = "reconcile.fluxcd.io/requestedAt"

// drift finds Grids that a user has edited or deleted in the cluster. Flux itself looks for that
// only at each interval, and writes when it looks.
type drift struct {
	seen  map[delivery.Key]comparison
	asked map[string]request // the last one about each set
}

// request is what differed, and when the agent asked Flux to look at it. It asks again when
// something else differs.
type request struct {
	differs string
	at      time.Time
}

// comparison is the result for one version of a Grid.
type comparison struct {
	wish     wish
	revision string
	differs  bool
}

// wish is what of a Grid a user can edit, in a form that can be compared.
type wish struct {
	uid        types.UID
	generation int64
	labelled   string // labels and annotations
}

func wishOf(live client.Object) wish {
	return wish{uid: live.GetUID(), generation: live.GetGeneration(), labelled: fmt.Sprint(live.GetLabels(), live.GetAnnotations())}
}

// in returns which Grids of a set are not as they were applied, or not known to Flux, which left
// them out; "" if every Grid is as it was applied. grids are those of the cluster.
func (d *drift) in(set []delivery.Object, grids map[delivery.Key]client.Object, known map[delivery.Key]bool) string {
	var differing strings.Builder
	for _, o := range set {
		if o.Kind == "Namespace" {
			continue
		}
		live, exists := grids[o.Key]
		switch {
		case !exists:
			fmt.Fprintf(&differing, "%v is gone\n", o.Key)
		case d.differs(o, live):
			fmt.Fprintf(&differing, "%v is %v\n", o.Key, d.seen[o.Key].wish)
		case !known[o.Key]:
			fmt.Fprintf(&differing, "%v is not known: %v\n", o.Key, wishOf(live))
		}
	}
	return differing.String()
}

func (d *drift) differs(o delivery.Object, live client.Object) bool {
	now := wishOf(live)
	if known, found := d.seen[o.Key]; found && known.wish == now && known.revision == o.Revision {
		return known.differs
	}
	differs := !applied(live, o.JSON)
	d.seen[o.Key] = comparison{wish: now, revision: o.Revision, differs: differs}
	return differs
}

// applied reports whether all fields that were sent have their values, or cannot be read.
func applied(live client.Object, sent []byte) bool {
	text, err := json.Marshal(live)
	if err != nil {
		return true // it was read from JSON
	}
	var now, want map[string]any
	if decode(text, &now) != nil || decode(sent, &want) != nil {
		return true
	}
	delete(want, "kind") // objects of a cache have neither
	delete(want, "apiVersion")
	return covers(now, want)
}

func decode(text []byte, into *map[string]any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// repair asks Flux to look at the sets that have drifted, once for each difference, and at most
// every repairPeriod. It leaves out those that Flux is still at.
func (a *Agent) repair(ctx context.Context, d delivery.Delivery, grids map[delivery.Key]client.Object) error {
	maps.DeleteFunc(a.drift.asked, func(set string, _ request) bool { return d.Apply[set] == nil })
	maps.DeleteFunc(a.drift.seen, func(k delivery.Key, _ comparison) bool { return grids[k] == nil })
	for set, objects := range d.Apply {
		k, err := a.find(ctx, kustomizationKind(), set)
		if err != nil {
			return err
		}
		if k == nil || !a.settled(ctx, set, k) || d.Suspend {
			continue // Flux is at it
		}
		differs, last := a.drift.in(objects, grids, inventory(k)), a.drift.asked[set]
		if differs == "" {
			delete(a.drift.asked, set)
			continue
		}
		if differs == last.differs || a.Now().Sub(last.at) < repairPeriod && !last.at.IsZero() {
			continue
		}
		if err := a.request(ctx, k); err != nil {
			return fmt.Errorf("asking Flux to repair the Grids of the hub's namespace %s: %w", set, err)
		}
		a.drift.asked[set] = request{differs: differs, at: a.Now()}
	}
	return nil
}

// settled reports whether Flux has applied the archive that is served, and has done what was
// requested.
func (a *Agent) settled(ctx context.Context, set string, k *unstructured.Unstructured) bool {
	artifact, err := a.find(ctx, artifactKind(), set)
	if err != nil || artifact == nil {
		return false
	}
	revision := text(artifact, "status", "artifact", "revision")
	if revision == "" || text(k, "status", "lastAppliedRevision") != revision {
		return false
	}
	at := k.GetAnnotations()[requested]
	return at == "" || text(k, "status", "lastHandledReconcileAt") == at
}

// asSent returns a Grid of the cluster, as JSON, as a hub sends one, so without what users have
// told Flux there; nil if it cannot be written.
func asSent(kind string, g client.Object) []byte {
	text, err := json.Marshal(g)
	var fields map[string]any
	if err != nil || decode(text, &fields) != nil {
		return nil // it was read from JSON
	}
	annotations := plan.Kept(g.GetAnnotations())
	for _, key := range []string{v1alpha1.AnnotationFrom, v1alpha1.AnnotationRevision} {
		if value, found := g.GetAnnotations()[key]; found {
			annotations[key] = value
		}
	}
	sent, _ := json.Marshal(map[string]any{ // texts, and fields that were read from JSON
		"apiVersion": v1.GroupVersion().String(), "kind": kind, "spec": fields["spec"],
		"metadata": map[string]any{
			"name": g.GetName(), "namespace": g.GetNamespace(), "labels": plan.Kept(g.GetLabels()), "annotations": annotations,
		},
	})
	return sent
}
