package grids

import (
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	"k8s.io/apimachinery/pkg/types"
)

const (
	faultUnits = 20
	faultGrids = 8
)

// slow makes a rollout last some seconds, so that a fault finds it half done.
var slow = []string{"--kube-api-qps=20", "--kube-api-burst=10"}

// quick makes a controller follow another that was killed before long. It may wait for the API
// server longer than a busy machine makes it wait.
var quick = []string{
	"--leader-elect-lease-duration=16s", "--leader-elect-renew-deadline=14s", "--leader-elect-retry-period=1s",
}

// TestGridFaults: whatever happens while children are being changed and made, all come out as the Grids say, none is
// lost, and none is made twice.
func TestGridFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: several rollouts take a while; run without -short")
	}
	f := &faults{fleet: newFleet(t, faultUnits, 1), deleted: map[string]int{}}
	f.run("everything is made", func(fleet *fleet) {
		c := f.controller("--leader-elect=false")
		f.addGrids(faultGrids, "replicas: 0")
		f.settled()
		f.expectUnique(c)
	})
	for _, p := range []part[*faults]{
		{"the API server is killed", (*faults).outage},
		{"the leader is killed", (*faults).leader},
		{"others write the same objects", (*faults).storm},
		{"objects are deleted", (*faults).deletions},
	} {
		f.run(p.name, func(*fleet) { p.do(f) })
	}
}

// faults is a fleet in which rollouts are disturbed.
type faults struct {
	*fleet
	round   int
	deleted map[string]int // how often the test had a child of that name deleted
}

func (f *faults) image() string { return fmt.Sprintf("rollout:%d", f.round) }

// rollout changes what all Grids want, and adds the first Node of a unit. It returns when the
// controllers are in the middle of that. On a machine without time for this test they may have done
// most of it by then: it begins again.
func (f *faults) rollout() {
	f.t.Helper()
	const attempts = 5
	for range attempts {
		f.changeGrids()
		total, changed := len(f.grids)*len(f.units), 0
		wait.Until(f.t, "the rollout has begun", func() error {
			all, err := f.deployments()
			changed = 0
			for _, d := range all {
				if d.Spec.Template.Spec.Containers[0].Image == f.image() {
					changed++
				}
			}
			return errors.Join(err, wait.Check(changed != 0, "nothing has changed"))
		})
		f.t.Logf("%d of %d children are changed when the fault comes", changed, total)
		if changed <= total*3/4 {
			return
		}
	}
	f.t.Fatalf("in %d rollouts most children are changed already: the fault comes too late to show anything", attempts)
}

func (f *faults) changeGrids() {
	f.t.Helper()
	f.round++
	unit := fmt.Sprintf("unit-%d", faultUnits+f.round)
	f.units = append(f.units, unit)
	for _, name := range f.grids {
		f.patchGrids(name,
			fmt.Sprintf(`[{"op":"replace","path":"/spec/template/template/spec/containers/0/image","value":%q}]`, f.image()),
			fmt.Sprintf(`[{"op":"replace","path":"/spec/template/ports/0/targetPort","value":%d}]`, 9000+f.round))
	}
	f.AddNode(f.t, nodeName(unit, 0), map[string]string{"location": unit})
}

// stand are the UIDs of the children, by name.
func (f *faults) stand() map[string]types.UID {
	f.t.Helper()
	all, err := f.deployments()
	must(f.t, err)
	uids := map[string]types.UID{}
	for name, d := range all {
		uids[name] = d.UID
	}
	return uids
}

// converge waits until all is well, and compares what stands with what stood before.
func (f *faults) converge(before map[string]types.UID, controllers ...*counted) {
	f.t.Helper()
	begin := time.Now()
	f.settled()
	f.t.Logf("all is well %s after the fault was over", since(begin))
	after := f.stand()
	for name, uid := range before {
		if after[name] != uid {
			f.t.Errorf("%s was %s before and is %s", name, uid, after[name])
		}
	}
	f.expectUnique(controllers...)
}

// expectUnique: no child was made more often than it was deleted by the test, and none was deleted by a controller.
func (f *faults) expectUnique(controllers ...*counted) {
	f.t.Helper()
	for name, n := range f.history.made() {
		if n > 1+f.deleted[name] {
			f.t.Errorf("%s was made %d times, and deleted by the test %d times", name, n, f.deleted[name])
		}
	}
	made := map[string]int{}
	for _, c := range controllers {
		for _, r := range c.writes() {
			switch {
			case r.Verb == "apply" && r.Code == 201:
				made[r.Resource+" "+r.Name]++
			case strings.HasPrefix(r.Verb, "delete"):
				f.t.Errorf("a controller deletes: %s", r)
			}
		}
	}
	for what, n := range maps.All(made) {
		name := strings.TrimPrefix(strings.TrimPrefix(what, "deployments.apps "), "services ")
		if n > 1+f.deleted[name] {
			f.t.Errorf("%s was answered with 201 %d times", what, n)
		}
	}
}

// outage: the API server is killed in mid-rollout, and comes back after a while.
func (f *faults) outage() {
	c := f.controller(append(slow, "--leader-elect=false")...)
	c.WaitReady(f.t)
	before := f.stand()
	f.rollout()
	f.StopAPIServer()
	refused := func(r nodes.Request) bool { return r.Write() && r.Code == 0 }
	wait.Until(f.t, "the controller finds no API server to write to", func() error {
		return wait.Check(len(c.count.Requests(refused)) != 0, "no write has failed")
	})
	f.StartAPIServer(f.t)
	f.converge(before, c)
	select {
	case <-c.Done():
		f.t.Errorf("the controller did not survive:\n%s", c.Log())
	default:
	}
}

// leader: of two controllers only one writes, and the other goes on when that is killed (B-26: SuperEdge's leader election
// cannot be used). Both run with the rights that are shipped.
func (f *faults) leader() {
	t := f.t
	flags := append(append([]string{}, slow...), quick...)
	leader, other := f.controller(flags...), f.controller(flags...)
	leader.WaitReady(t)
	other.WaitReady(t)
	before := f.stand()
	f.rollout()
	if len(leader.writes()) == 0 {
		leader, other = other, leader
	}
	leader.Kill()
	killed := time.Now()
	if n := len(other.writes()); n > 0 {
		t.Errorf("two controllers write at the same time: the second %d times", n)
	}
	wait.Until(f.t, "the other takes over", func() error { return wait.Check(len(other.writes()) != 0, "it writes nothing") })
	t.Logf("the other writes %s after the leader was killed", since(killed))
	f.converge(before, leader, other)
}
