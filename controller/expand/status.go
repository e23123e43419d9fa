package expand

import (
	"cmp"
	"fmt"
	"slices"

	v1 "gridproxy/controller/api/v1"
)

// Report is Status and States of one observed state.
func Report(observed Observed) (v1.WorkloadGridStatus, map[string]v1.State) {
	a := assessed(observed)
	if observed.Memo != nil {
		observed.Memo.last = nil // it is large
	}
	rows := a.rows()
	states := a.states(rows)
	return a.status(rows), states
}

// Status is the status of a DeploymentGrid or StatefulSetGrid without its states. It has a row for
// each unit, the most urgent first and those above the limit last, as far as there is room. The
// conditions keep their times from Observed.Status if nothing has changed.
func Status(observed Observed) v1.WorkloadGridStatus {
	s, _ := Report(observed)
	return s
}

// States is status.states: what each child reports, by its unit's value. As in SuperEdge, only
// units with Nodes are included; as many as there is room for, in the order of the rows.
func States(observed Observed) map[string]v1.State {
	_, states := Report(observed)
	return states
}

// status changes the rows: their messages are shortened.
func (a *assessment) status(rows []v1.UnitStatus) v1.WorkloadGridStatus {
	s := v1.WorkloadGridStatus{
		UnusedTemplates: fitNames(a.unusedTemplates()), PrunedTemplates: a.prunedTemplates(),
		Removals: Removals(a.Observed.Status, 0, a.Now),
	}
	s.ObservedGeneration = a.Grid.Generation
	for _, u := range a.units {
		if u.nodes > 0 {
			s.UnitNumber++
		}
	}
	t := tallyOf(rows)
	s.ReadyRate = fmt.Sprintf("%d/%d", len(t.ready), t.all())
	s.FailedUnits, s.LostUnits, s.OfflineUnits = int32(len(t.failed)), int32(len(t.lost)), int32(len(t.offline))
	s.Conditions = a.conditions(t)
	s.Units = fitRows(rows)
	s.OmittedUnits = int32(len(rows) - len(s.Units))
	return s
}

// rows are the rows of all units, with whole messages. The most urgent ones are first; equally
// urgent ones are sorted by value.
func (a *assessment) rows() []v1.UnitStatus {
	rows := make([]v1.UnitStatus, 0, len(a.units))
	for _, u := range a.units {
		rows = append(rows, a.row(u))
	}
	slices.SortStableFunc(rows, func(a, b v1.UnitStatus) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(a.Value, b.Value))
	})
	return rows
}

// urgency orders rows: those that need a user come first, and those of healthy units last, because
// they are left out first.
func urgency(u v1.UnitStatus) int {
	switch {
	case u.Phase == v1.UnitLost:
		return 0
	case u.Reason == ReasonTooManyUnits: // a condition says it
		return 6
	case u.Phase == v1.UnitFailed:
		return 1
	case u.Phase == v1.UnitOffline:
		return 2
	case u.Phase == v1.UnitProgressing:
		return 3
	case u.Message != "":
		return 4
	default:
		return 5
	}
}

// states are as many of the children's states as there is room for.
func (a *assessment) states(rows []v1.UnitStatus) map[string]v1.State {
	reported := map[string]v1.State{}
	for _, u := range a.units {
		if u.loss == nil && u.ownership == ours && len(u.live.State) > 0 {
			reported[u.Value] = v1.State{JSON: u.live.State}
		}
	}
	states, size := map[string]v1.State{}, 0
	for _, r := range rows {
		state, found := reported[r.Value]
		if !found {
			continue
		}
		if size += sizeOf(r.Value) + sizeOfJSON(state.JSON); size > maxStateSize || len(states) == maxRows {
			break
		}
		states[r.Value] = state
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
