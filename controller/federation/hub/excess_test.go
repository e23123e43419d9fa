package hub

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deleter counts deletions. It is a fake because a real one would need a thousand reports of 200
// kB.
type deleter struct {
	client.Client
	deleted map[string]int // by namespace
	patched []string
}

// Patch records the patch.
func (d *deleter) Patch(_ context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	text, err := p.Data(o)
	d.patched = append(d.patched, o.GetNamespace()+string(text))
	return err
}

// Delete counts.
func (d *deleter) Delete(_ context.Context, o client.Object, _ ...client.DeleteOption) error {
	d.deleted[o.GetNamespace()]++
	return nil
}

// TestExcess: reports that are too large are deleted, with pauses that double, and those of another
// cluster do not wait for that. Others are never deleted.
func TestExcess(t *testing.T) {
	report := func(namespace string, large bool) v1alpha1.GridReport {
		r := v1alpha1.GridReport{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "r"}}
		if large {
			r.Annotations = map[string]string{v1alpha1.AnnotationReportBytes: "1000000"}
		}
		return r
	}
	reports := []v1alpha1.GridReport{report("fleet-west", true), report("fleet-west", false), report("other", true), report("fleet-west", true)}
	to, e := &deleter{deleted: map[string]int{}}, excess{}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	rounds := 0
	for now := begin; now.Before(begin.Add(24 * time.Hour)); now = now.Add(30 * time.Second) {
		before := to.deleted["fleet-west"]
		again, err := e.delete(t.Context(), to, reports, now)
		if err != nil {
			t.Fatal(err)
		}
		if to.deleted["fleet-west"] > before {
			rounds++
		} else if again == 0 {
			t.Fatal("reports are left, and nothing is to be done about them")
		}
	}
	if rounds < 20 || rounds > 32 || to.deleted["fleet-west"] != 2*rounds || to.deleted["other"] != 0 {
		t.Errorf("in a day there are %d rounds, deleted are %v", rounds, to.deleted)
	}
	east := []v1alpha1.GridReport{report("fleet-east", true)}
	if _, err := e.delete(t.Context(), to, east, begin.Add(24*time.Hour)); err != nil || to.deleted["fleet-east"] != 1 {
		t.Errorf("of another cluster %d are deleted, %v", to.deleted["fleet-east"], err)
	}
	kept := report("fleet-north", true)
	kept.Finalizers = []string{"example.org/keep"}
	const patches = `[fleet-north{"metadata":{"finalizers":null}}]`
	if _, err := e.delete(t.Context(), to, []v1alpha1.GridReport{kept}, begin); err != nil || fmt.Sprint(to.patched) != patches {
		t.Errorf("for a report with a finalizer the patches are %v, %v", to.patched, err)
	}
	var many []v1alpha1.GridReport
	for i := range 2 * excessMax {
		many = append(many, report(fmt.Sprintf("fleet-%d", i), true))
	}
	to.deleted = map[string]int{}
	if _, err := e.delete(t.Context(), to, many, begin); err != nil || len(to.deleted) != excessMax {
		t.Errorf("at a time %d are deleted, %v", len(to.deleted), err)
	}
}
