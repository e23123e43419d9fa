package grids

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	scaleUnits = 40
	scaleNodes = 5 // of a unit
	scaleGrids = 20

	statusOf = "patch deploymentgrids.superedge.io/status"
)

// TestGridScale counts what a real controller asks of a real API server, with 200 Nodes and 800
// children in which Pods run. Times and memory are printed, not judged. Leases do not count, and do
// not exist: one controller runs, without election.
func TestGridScale(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: 200 nodes take a while; run without -short")
	}
	begin := time.Now()
	f := newFleet(t, scaleUnits, scaleNodes)
	f.timeout = 4 * wait.Usual // a busy machine starts 800 Pods in some minutes
	t.Logf("%d Nodes after %s", scaleUnits*scaleNodes, since(begin))
	s := &scale{fleet: f, counted: f.controller("--leader-elect=false")}
	s.WaitReady(t)
	for _, p := range []part[*scale]{
		{"800 children", (*scale).grow},
		{"60 s of quiet", (*scale).quiet},
		{"a Node between two units that others hold", (*scale).move},
		{"a restart", (*scale).restart},
	} {
		f.run(p.name, func(*fleet) { p.do(s) })
	}
}

// scale is a fleet with one controller.
type scale struct {
	*fleet
	*counted
}

func (s *scale) grow() {
	t := s.t
	begin := time.Now()
	s.addGrids(scaleGrids, "replicas: 1")
	s.timeout.Until(s.t, "all children are there", func() error {
		all, err := s.deployments()
		return errors.Join(err, wait.Check(len(all) >= scaleGrids*scaleUnits, "there are %d", len(all)))
	})
	t.Logf("%d Deployments after %s", scaleGrids*scaleUnits, since(begin))
	s.settled()
	t.Logf("all are ready after %s", since(begin))
	s.rest()
	s.report("to make 800 Deployments and 20 Services, and see their Pods become ready")
	for name, n := range s.history.made() {
		if n != 1 {
			t.Errorf("%s was made %d times", name, n)
		}
	}
	s.wantWrites(map[string]int{"apply deployments.apps": scaleGrids * scaleUnits, "apply services": scaleGrids}, statusOf,
		"patch servicegrids.superedge.io/status")
}

// rest waits until the controller has written nothing for a while.
func (s *scale) rest() {
	s.t.Helper()
	written, last := -1, time.Now()
	s.timeout.Until(s.t, "the controller is at rest", func() error {
		if n := len(s.count.Writes()); n != written {
			written, last = n, time.Now()
		}
		calm := time.Since(last)
		// real time: rest is that nothing is written for a while
		return wait.Check(calm >= nap, "it has written %d times, the last time %s ago", written, calm)
	})
}

func (s *scale) report(what string) {
	s.t.Helper()
	s.t.Logf("%s:\n%s\ncontroller: %s, %s", what, nodes.Tally(s.count.Requests(nil)), memory(s.PID(), "VmRSS"), memory(s.PID(), "VmHWM"))
}

// quiet: meanwhile kubelets report, as they do all the time. It is the minute that is measured.
func (s *scale) quiet() {
	t := s.t
	s.count.Reset()
	// real time: writes at rest are counted over a window
	minute := time.After(time.Minute)
	list, err := s.Client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	must(s.t, err)
	for _, n := range list.Items {
		s.heartbeat(n.Name)
	}
	select {
	case <-minute:
	case <-s.Done():
		t.Fatalf("the controller ended:\n%s", s.Log())
	}
	if writes := s.count.Writes(); len(writes) > 0 {
		t.Errorf("%d writes in a minute of quiet, the first is %s:\n%s", len(writes), writes[0], nodes.Tally(writes))
	}
	s.report("a minute of quiet with 200 heartbeats")
}

// heartbeat writes the status of a Node as its kubelet does, with nothing new but the time and a list of images.
func (s *scale) heartbeat(node string) {
	s.t.Helper()
	patch, err := json.Marshal(map[string]any{"status": map[string]any{
		"conditions": []any{map[string]any{"type": corev1.NodeReady, "lastHeartbeatTime": metav1.Now()}},
		"images":     []any{map[string]any{"names": []string{"echo:1"}, "sizeBytes": 1}},
	}})
	must(s.t, err)
	_, err = s.Client.CoreV1().Nodes().Patch(s.t.Context(), node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	must(s.t, err)
}

// move: the Pods that stand on the Node are misplaced then, which the status says too, once it is found out.
func (s *scale) move() {
	t := s.t
	s.count.Reset()
	begin := time.Now()
	s.SetLabels(t, nodeName("unit-05", 0), map[string]string{"location": "unit-06"})
	for _, name := range s.grids {
		s.nodesOf(name, "unit-05", scaleNodes-1)
		s.nodesOf(name, "unit-06", scaleNodes+1)
	}
	t.Logf("all statuses say so after %s", since(begin))
	s.rest()
	writes := s.writes()
	s.wantWrites(nil, statusOf)
	if len(writes) > 2*scaleGrids {
		t.Errorf("%d writes, want a status of each Grid, and another for those with misplaced Pods", len(writes))
	}
	s.report("a Node that goes from one unit to another")
}

func (s *scale) nodesOf(grid, unit string, want int32) {
	s.t.Helper()
	s.timeout.Until(s.t, fmt.Sprintf("%s says that %s has %d Nodes", grid, unit, want), func() error {
		g, err := s.grid(grid)
		if err != nil {
			return err
		}
		for _, u := range g.Status.Units {
			if u.Value == unit && u.Nodes == want {
				return nil
			}
		}
		return fmt.Errorf("it does not")
	})
}

// restart: of the Deployments only that one is applied again which was changed meanwhile. The clock
// of a misplaced Pod starts again, and what is written of it does not say when that was.
func (s *scale) restart() {
	t := s.t
	before, err := s.deployments()
	must(s.t, err)
	s.Kill()
	const taken = "grid-03-unit-04"
	s.mergeInto(taken, `{"spec":{"replicas":2}}`)
	delete(before, taken)
	begin := time.Now()
	s.counted = s.controller("--leader-elect=false")
	s.WaitReady(t)
	t.Logf("ready after %s", since(begin))
	s.timeout.Until(s.t, taken+" is repaired", func() error {
		n := *s.child(taken).Spec.Replicas
		return wait.Check(n == 1, "it has %d replicas", n)
	})
	s.settled()
	s.rest()
	s.wantWrites(map[string]int{"apply deployments.apps": 1, "apply services": scaleGrids}, statusOf)
	after, err := s.deployments()
	must(s.t, err)
	for name, d := range before {
		if now := after[name]; now == nil || now.ResourceVersion != d.ResourceVersion {
			t.Errorf("%s was changed by a restart", name)
		}
	}
	s.report("a restart")
}

// wantWrites compares what the controllers of Grids wrote since the last reset; of other kinds it may be any number.
func (s *scale) wantWrites(want map[string]int, others ...string) {
	s.t.Helper()
	got := countKinds(s.writes())
	for what, n := range got {
		if n != want[what] && !slices.Contains(others, what) {
			s.t.Errorf("%d times %s, want %d", n, what, want[what])
		}
	}
	for what, n := range want {
		if got[what] == 0 && n > 0 {
			s.t.Errorf("never %s, want %d times", what, n)
		}
	}
}
