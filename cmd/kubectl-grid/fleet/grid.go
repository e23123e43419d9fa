package fleet

import (
	"cmp"
	"fmt"
	"slices"

	"gridproxy/controller/grid/expand"
	"gridproxy/topology/excerpt"

	v1 "gridproxy/controller/api/v1"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kinds of Grids that have units.
const (
	KindDeploymentGrid  = "DeploymentGrid"
	KindStatefulSetGrid = "StatefulSetGrid"
)

// Grid is one DeploymentGrid or StatefulSetGrid of a Report.
type Grid struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Key       string `json:"key"`
	ReadyRate string `json:"readyRate"` // ready units of all units, "r/n"
	Offline   int32  `json:"offlineUnits"`
	Lost      int32  `json:"lostUnits"`
	Failed    int32  `json:"failedUnits"`
	Contested int    `json:"contestedUnits"` // of those with a row
	// Conditions are those that need attention, with their reasons.
	Conditions []string `json:"conditions,omitempty"`

	problem string // why the exit code is 1
}

// NewGrid returns the row of a Grid.
func NewGrid(kind string, object metav1.ObjectMeta, key string, s v1.WorkloadGridStatus) Grid {
	g := Grid{
		Kind: kind, Namespace: object.Namespace, Name: object.Name, Key: key,
		ReadyRate: excerpt.Of(s.ReadyRate), Offline: s.OfflineUnits, Lost: s.LostUnits, Failed: s.FailedUnits,
	}
	for _, u := range s.Units {
		if u.Reason == expand.ReasonContested {
			g.Contested++
		}
	}
	if meta.FindStatusCondition(s.Conditions, v1.ConditionReady) == nil {
		g.note("NoStatus", "grid-controller has written no status; check that it runs")
	}
	if object.Generation > s.ObservedGeneration && g.problem == "" {
		g.Conditions = append(g.Conditions, "Outdated") // the status is about an earlier spec
	}
	for _, of := range []string{v1.ConditionDegraded, v1.ConditionDeletionHeld} {
		if c := meta.FindStatusCondition(s.Conditions, of); c != nil && c.Status == metav1.ConditionTrue {
			g.note(fmt.Sprintf("%s (%s)", of, excerpt.Of(c.Reason)), excerpt.Of(c.Message))
		}
	}
	for _, of := range []string{v1.ConditionRekeyed, v1.ConditionIdle} {
		if meta.IsStatusConditionTrue(s.Conditions, of) {
			g.Conditions = append(g.Conditions, of)
		}
	}
	if g.Contested > 0 {
		g.Conditions = append(g.Conditions, fmt.Sprintf("Contested (units: %d)", g.Contested))
	}
	return g
}

// note adds a condition for which the exit code is 1. The first one is the problem.
func (g *Grid) note(condition, message string) {
	g.Conditions = append(g.Conditions, condition)
	if g.problem == "" {
		g.problem = condition + ": " + message
	}
}

func sortGrids(grids []Grid) {
	slices.SortFunc(grids, func(a, b Grid) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
}
