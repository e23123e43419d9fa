package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lifeOfGrids distributes Grids to two clusters, changes, deselects and deletes them, deletes a
// cluster, and returns the states in between.
func lifeOfGrids(t *testing.T, fail func(number int) (bool, error)) (*hubInMemory, []string) {
	t.Helper()
	fleet := append(newFleet("east"), newFleet("west")...)
	fleet[0].SetLabels(map[string]string{"region": "east"})
	fleet[0].(*v1alpha1.FleetCluster).Spec.OnDelete = v1alpha1.Remove
	pos, ads, web := newGrid("shop", "pos"), newGrid("shop", "ads"), newGrid("bank", "web")
	w := newHubInMemory(t, append(fleet, pos, ads, web)...)
	w.fail = fail
	var states []string
	settle := func() {
		t.Helper()
		w.settle()
		states = append(states, w.state())
	}
	settle() // all Grids are everywhere
	reports := map[string]*v1alpha1.GridReport{}
	for _, cluster := range []string{"east", "west"} {
		for _, g := range []*v1.DeploymentGrid{pos, ads, web} {
			reports[cluster+g.Name] = newReport(cluster, g)
			w.create(reports[cluster+g.Name])
		}
	}
	w.change(pos, func() { pos.Spec.GridUniqKey = "zone" })
	w.change(ads, func() { ads.Annotations = map[string]string{v1alpha1.AnnotationClusters: "region=east"} })
	w.delete(web)
	settle() // ads is in east alone, web nowhere
	for _, gone := range []string{"westads", "westweb", "eastweb"} {
		w.delete(reports[gone])
	}
	w.change(web, func() { web.Finalizers = nil })
	w.change(pos, func() { pos.Labels = nil })
	settle() // pos is nowhere, and stays on the hub
	w.delete(fleet[0])
	settle()
	w.delete(reports["eastpos"])
	w.delete(reports["eastads"])
	settle() // east is gone
	return w, states
}

// TestLifeOfGrids says what there is after each step.
func TestLifeOfGrids(t *testing.T) {
	_, states := lifeOfGrids(t, nil)
	for i, want := range [][]string{
		{
			`grid bank/web ["others/finalizer" "superedge.io/federation"]`,
			`cluster east ["superedge.io/federation"] withdrawn [] bank/web:Waiting shop/ads:Waiting shop/pos:Waiting`,
			`bundle fleet-east/bank ["hub/web"]`, `bundle fleet-west/shop ["hub/ads" "hub/pos"]`,
		},
		{
			`grid bank/web ["others/finalizer"]`,
			`cluster west ["superedge.io/federation"] withdrawn ["ads" "web"] shop/pos:Behind`,
			`bundle fleet-east/shop ["hub/ads" "hub/pos"]`, `bundle fleet-west/shop ["hub/pos"]`,
		},
		{`grid shop/pos ["others/finalizer"]`, `bundle fleet-east/shop ["hub/ads"]`},
		{`cluster east ["superedge.io/federation"]`},
		{`grid shop/ads ["others/finalizer"]`, `cluster west ["superedge.io/federation"]`},
	} {
		for _, line := range want {
			if !strings.Contains(states[i], line) {
				t.Errorf("step %d: want %s in\n%s", i, line, states[i])
			}
		}
	}
	for i, unwanted := range map[int]string{1: "/bank", 2: "fleet-west", 4: "east"} {
		if strings.Contains(states[i], unwanted) {
			t.Errorf("step %d: %s in\n%s", i, unwanted, states[i])
		}
	}
}

// TestKilled: the end is the same if the process is killed before or after any one of its writes.
func TestKilled(t *testing.T) {
	undisturbed, want := lifeOfGrids(t, nil)
	for n := range undisturbed.writes {
		for _, executed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d %s %t", n, undisturbed.writes[n], executed), func(t *testing.T) {
				_, got := lifeOfGrids(t, func(number int) (bool, error) {
					if number == n+1 {
						return executed, errInjected
					}
					return true, nil
				})
				for i := range want {
					if got[i] != want[i] {
						t.Errorf("step %d: got\n%s\nwant\n%s", i, got[i], want[i])
					}
				}
			})
		}
	}
}

// TestRest: members that renew their Leases cause no write. Silence is written once.
func TestRest(t *testing.T) {
	grid := newGrid("shop", "pos")
	w := newHubInMemory(t, append(newFleet("west"), grid)...)
	lease := newLease("west", w.now, `{"clusterUID":"member","nodes":4}`)
	w.create(lease)
	w.settle()
	minutes := func(n int, each func()) int {
		t.Helper()
		before := len(w.writes)
		for range n {
			w.now = w.now.Add(time.Minute - time.Second)
			each()
			w.must(w.reconcile())
		}
		return len(w.writes) - before
	}
	renew := func() {
		w.change(lease, func() { lease.Spec.RenewTime = &metav1.MicroTime{Time: lease.Spec.RenewTime.Add(time.Minute)} })
	}
	if n := minutes(60, renew); n > 0 {
		t.Errorf("%d writes at rest: %q", n, w.writes)
	}
	if n := minutes(60, func() {}); n != 1 {
		t.Errorf("%d writes about a silent member, want 1: %q", n, w.writes)
	}
	if n := minutes(60, renew); n != 1 {
		t.Errorf("%d writes about a member that is heard again, want 1: %q", n, w.writes)
	}
}
