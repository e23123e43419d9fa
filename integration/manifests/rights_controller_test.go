package main

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"

	"k8s.io/client-go/dynamic"
)

// lanes is how many control planes there are. In each, one controller after the other runs: two in
// one would do each other's work.
const lanes = 2

// TestControllerRights runs a controller with all rights of deploy/grid-controller.yaml through everything that it does,
// and then one after the other without one right, each until it is refused something or is done.
func TestControllerRights(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	all := read(t, "grid-controller.yaml")
	binary := program.ForTest(t, program.GridController)
	var lane [lanes]*plane
	for i := range lane {
		lane[i] = newPlane(t, binary)
	}

	whole := lane[0].run(t, "all", all)
	if whole.err != nil {
		t.Fatalf("with all rights: %v", whole.err)
	}
	unneeded := idle(t, all, whole.count)
	t.Logf("with all rights everything is done and nothing refused: %s", time.Since(begin).Round(100*time.Millisecond))
	next := make(chan int)
	go func() {
		defer close(next)
		for i := range all {
			next <- i
		}
	}()
	var running sync.WaitGroup
	for _, p := range lane {
		running.Go(func() {
			for i := range next {
				if !unneeded[all[i].String()] { // else nothing would be refused
					t.Run("without "+all[i].String(), func(t *testing.T) { p.fails(t, fmt.Sprint(i), all, i) })
				}
			}
		})
	}
	running.Wait()
	t.Logf("%d controllers, each without another right: %s", len(all), time.Since(begin).Round(time.Second))
}

// plane is a control plane with four Nodes.
type plane struct {
	*nodes.Cluster
	objects dynamic.Interface
	binary  string
}

func newPlane(t *testing.T, binary string) *plane {
	t.Helper()
	c := nodes.ForTest(t, nodes.Options{
		Manifests: []string{"../../deploy/crds"},
		APIServer: []string{"--enable-admission-plugins=OwnerReferencesPermissionEnforcement"},
	})
	for _, n := range []string{"n1", "n2", "n3", "n4"} {
		c.AddNode(t, n, nil)
	}
	return &plane{Cluster: c, objects: apiserver.DynamicForTest(t, c.Admin()), binary: binary}
}

// fails: without the right something is refused, and nothing but what the right is about.
func (p *plane) fails(t *testing.T, name string, all []Right, n int) {
	r := p.run(t, name, without(all, n))
	if !errors.Is(r.err, errRefused) {
		t.Errorf("it is not needed, or nobody sees that it is missing: %v; the controller says:\n%s", r.err, r.log)
	}
	for _, q := range refused(r.count) {
		// What owns a child is looked at when the child is written.
		if q.Object() != all[n].Object() && !strings.HasSuffix(all[n].Resource, "/finalizers") {
			t.Errorf("refused too: %s", q)
		}
	}
	t.Logf("refused: %v; it says: %s", refused(r.count), r.said)
}
