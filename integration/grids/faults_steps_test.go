package grids

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	stepGrids = 24 // more than the writes of one round
	stepUnits = 8
)

// TestLeaderKilledAtEachStep: two of eight units of a Grid are lost, and the template changes. The
// leader is killed after its first write about it, that of the next Grid after its second one, and
// so on, until one comes through. Whatever the leader was doing, the next one finishes it: all
// other children have the new template and their UIDs, and not more than the one child that the
// budget allows is deleted.
func TestLeaderKilledAtEachStep(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: many restarts take a while; run without -short")
	}
	s := &steps{fleet: newFleet(t, stepUnits, 1)}
	s.setUp()
	for i := range stepGrids {
		if s.round(i) {
			t.Logf("the leader was killed after each of its %d writes", i)
			if i < 6 {
				t.Errorf("that is fewer than the children")
			}
			return
		}
	}
	t.Errorf("no leader has come through in %d rounds", stepGrids)
}

type steps struct{ *fleet }

func stepFlags() []string {
	return []string{"--leader-elect=false", "--unit-removal-grace=1s"}
}

// name is a Grid, key its gridUniqKey: each Grid has a key of its own.
func (s *steps) name(i int) string { return fmt.Sprintf("step-%02d", i) }
func (s *steps) key(i int) string  { return fmt.Sprintf("site-%02d", i) }

// setUp makes all Grids, and waits until their children are older than a loss in the first round.
func (s *steps) setUp() {
	s.t.Helper()
	labels := map[string]string{}
	var all []string
	for i := range stepGrids {
		grid := strings.ReplaceAll(deploymentGrid(s.name(i), "replicas: 0"), `"gridUniqKey":"location"`, fmt.Sprintf(`"gridUniqKey":%q`, s.key(i)))
		all = append(all, grid)
	}
	for _, unit := range s.units {
		for i := range stepGrids {
			labels[s.key(i)] = unit
		}
		s.SetLabels(s.t, nodeName(unit, 0), labels)
	}
	c := s.controller(stepFlags()...)
	s.Apply(s.t, strings.Join(all, "\n---\n"))
	wait.Until(s.t, "all children are made, and 8 s old", func() error {
		children, err := s.deployments()
		if err == nil && len(children) < stepGrids*stepUnits {
			err = fmt.Errorf("there are %d", len(children))
		}
		for _, d := range children {
			// real time: the API server tells ages in seconds, and graces depend on them
			if age := time.Since(d.CreationTimestamp.Time); age < 8*time.Second {
				return fmt.Errorf("%s is %s old", d.Name, age)
			}
		}
		return err
	})
	c.Kill()
}

// round has the leader killed after so many writes about a Grid and one more, and reports whether
// it came to rest before.
func (s *steps) round(i int) (through bool) {
	t := s.t
	t.Helper()
	before := s.childrenOf(i)
	for _, unit := range s.units[:2] {
		s.RemoveLabels(t, nodeName(unit, 0), s.key(i))
	}
	must(s.t, s.patchGrid(s.name(i), `{"spec":{"template":{"revisionHistoryLimit":3}}}`))
	c := s.controller(append(stepFlags(), "--kube-api-qps=1000", "--kube-api-burst=1000")...)
	halted := c.count.HaltAfter(i+1, func(r nodes.Request) bool {
		return r.Write() && !strings.HasPrefix(r.Resource, "events") && strings.HasPrefix(r.Name, s.name(i))
	})
	wait.Until(s.t, "the leader is halted, or through", func() error {
		select {
		case <-halted:
			return nil
		default:
		}
		through = s.finished(i, before) == nil
		return wait.Check(through, "neither")
	})
	c.Kill()
	next := s.controller(stepFlags()...)
	wait.Until(s.t, "the next leader has finished round "+fmt.Sprint(i), func() error { return s.finished(i, before) })
	next.Kill()
	return through
}

// finished is nil if one lost child is deleted, or none because a leader was killed after it had
// spent the budget, and if the Grid says that the other waits.
func (s *steps) finished(i int, before map[string]types.UID) error {
	now := s.childrenOf(i)
	lost := []string{s.name(i) + "-" + s.units[0], s.name(i) + "-" + s.units[1]}
	for name, uid := range before {
		if now[name] != uid && !slices.Contains(lost, name) {
			s.t.Errorf("round %d: %s was %s and is %s", i, name, uid, now[name])
		}
	}
	if len(now) < stepUnits-1 {
		s.t.Fatalf("round %d: there are only %v", i, slices.Sorted(maps.Keys(now)))
	}
	children, err := s.deployments()
	if err != nil {
		return err
	}
	for name := range now {
		d := children[name]
		if d != nil && !slices.Contains(lost, name) && (d.Spec.RevisionHistoryLimit == nil || *d.Spec.RevisionHistoryLimit != 3) {
			return fmt.Errorf("%s has the old template", name)
		}
	}
	g, err := s.grid(s.name(i))
	if err != nil {
		return err
	}
	waiting := 2 - (stepUnits - len(now))
	return checkCondition(g.Status.Conditions, v1.ConditionDeletionHeld, metav1.ConditionTrue, "BudgetSpent", fmt.Sprintf("%d units are lost and wait", waiting))
}

// childrenOf are the UIDs of a Grid's children that are not being deleted.
func (s *steps) childrenOf(i int) map[string]types.UID {
	children := s.lives()
	maps.DeleteFunc(children, func(name string, _ types.UID) bool { return !strings.HasPrefix(name, s.name(i)+"-") })
	return children
}

func (s *steps) patchGrid(name, patch string) error {
	_, err := s.Kubectl("patch", "dg", name, "--type=merge", "-p", patch)
	return err
}
