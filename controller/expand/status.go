package expand

import (
	"cmp"
	"fmt"
	"slices"

	v1 "gridproxy/controller/api/v1"
)

// maxRows bounds a status, which etcd keeps in one piece.
const maxRows = 1000

// Status is the status of a DeploymentGrid or StatefulSetGrid without its states. It has a row per
// unit: lost ones first, then failed ones, each by value. The conditions keep their times from
// Observed.Status if nothing has changed.
func Status(observed Observed) v1.WorkloadGridStatus {
	a := assess(observed)
	s := v1.WorkloadGridStatus{
		UnusedTemplates: a.unusedTemplates(), PrunedTemplates: a.prunedTemplates(),
		Removals: Removals(observed.Status, 0, observed.Now),
	}
	s.ObservedGeneration = observed.Grid.Generation
	for _, u := range a.units {
		s.Units = append(s.Units, a.row(u))
		if u.nodes > 0 {
			s.UnitNumber++
		}
	}
	t := tallyOf(s.Units)
	s.ReadyRate = fmt.Sprintf("%d/%d", len(t.ready), t.all())
	s.Conditions = a.conditions(t)
	slices.SortStableFunc(s.Units, func(a, b v1.UnitStatus) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(a.Value, b.Value))
	})
	s.Units = s.Units[:min(len(s.Units), maxRows)]
	return s
}

func urgency(u v1.UnitStatus) int {
	switch u.Phase {
	case v1.UnitLost:
		return 0
	case v1.UnitFailed:
		return 1
	default:
		return 2
	}
}

// States is status.states: what each child reports, by its unit's value. As in SuperEdge, only
// units with Nodes are included, and as many as there are rows.
func States(observed Observed) map[string]v1.State {
	states := map[string]v1.State{}
	for _, u := range assess(observed).units {
		if u.loss == nil && u.ownership == ours && len(u.live.State) > 0 && len(states) < maxRows {
			states[u.Value] = v1.State{JSON: u.live.State}
		}
	}
	if len(states) == 0 {
		return nil
	}
	return states
}

// ServiceStatus is the status of a ServiceGrid. Of Observed.Status only the conditions count.
func ServiceStatus(observed Observed) v1.ServiceGridStatus {
	a := assess(observed)
	s := v1.ServiceGridStatus{}
	s.ObservedGeneration = observed.Grid.Generation
	if len(a.units) == 0 { // the key is wrong
		s.Conditions = a.conditions(tally{})
		return s
	}
	u := a.units[0]
	s.Conditions = a.serviceConditions(a.row(u))
	if u.ownership == ours {
		s.Service, s.ClusterIP = u.Name, u.live.ClusterIP
		if state := string(u.live.State); state != "" && state != "{}" && state != "null" {
			s.LoadBalancer = &v1.State{JSON: u.live.State}
		}
	}
	return s
}
