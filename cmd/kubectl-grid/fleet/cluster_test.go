package fleet

import (
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestClusters: a cluster was heard when its own Lease was renewed, or when it became silent.
func TestClusters(t *testing.T) {
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	cluster := func(name, state string, silent time.Duration) *v1alpha1.FleetCluster {
		c := &v1alpha1.FleetCluster{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Status.State, c.Status.Units, c.Status.Nodes, c.Status.GridSummary = state, 30, 290, "4/4 current"
		if silent > 0 {
			c.Status.SilentSince = &metav1.Time{Time: now.Add(-silent)}
		}
		return c
	}
	lease := func(namespace, name string, age time.Duration) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(now.Add(-age))
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	all := NewHub([]*v1alpha1.FleetCluster{
		cluster("west", "Stale", 31*time.Minute), cluster("east", "Current", 0), cluster("new", "", 0), cluster("ahead", "Current", 0), cluster("other", "\x1b[31m", 0),
	}, []*coordinationv1.Lease{
		lease("fleet-west", "member", time.Hour), lease("fleet-east", "member", 8*time.Second), lease("fleet-ahead", "member", -time.Hour),
		lease("fleet-other", "leader", time.Second), lease("other", "member", time.Second), {ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-new", Name: "member"}},
	}, now)
	var text strings.Builder
	if err := all.WriteTable(&text); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"CLUSTER  STATE     UNITS  NODES  HEARD    GRIDS",
		"ahead    Current   30     290    0s ago   4/4 current",
		"east     Current   30     290    8s ago   4/4 current",
		"new      Waiting   30     290    never    4/4 current",
		`other    \x1b[31m  30     290    never    4/4 current`,
		"west     Stale     30     290    31m ago  4/4 current",
		"",
	}, "\n")
	if d := cmp.Diff(want, text.String()); d != "" {
		t.Errorf("table (-want +got)\n%s", d)
	}
}
