package expand

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/excerpt"
)

// Report returns Status and States of one observed state.
func Report(observed Observed) (v1.WorkloadGridStatus, map[string]v1.State) {
	a := assessed(observed)
	if observed.Memo != nil {
		observed.Memo.last = nil // it is large
	}
	d := distributionOf(observed)
	rows := a.rows(d)
	states := a.states(rows, d)
	return a.status(rows, d), states
}

// Status returns the status of a DeploymentGrid or StatefulSetGrid without its states. It has a
// row for each unit, the most urgent first and those above the limit last, as far as there is
// room. The conditions keep their times from Observed.Status if nothing has changed.
func Status(observed Observed) v1.WorkloadGridStatus {
	s, _ := Report(observed)
	return s
}

// States returns status.states: what each child reports, by its unit's value. As in SuperEdge,
// only units with Nodes are included; as many as there is room for, in the order of the rows.
func States(observed Observed) map[string]v1.State {
	_, states := Report(observed)
	return states
}

// status returns the status without states. It shortens the messages in rows.
func (a *assessment) status(rows []v1.UnitStatus, d distribution) v1.WorkloadGridStatus {
	s := v1.WorkloadGridStatus{
		UnusedTemplates: fitNames(a.unusedTemplates()), PrunedTemplates: a.prunedTemplates(),
		Removals: Removals(a.Observed.Status, 0, a.Now),
	}
	s.ObservedGeneration = a.Grid.Generation
	present := d.unitNumber()
	for _, u := range a.units {
		if u.nodes > 0 {
			present++
		}
	}
	s.UnitNumber = whole(present)
	t := tallyOf(rows)
	own := t
	if d.distributed {
		own, t = tallyOf(ownRows(rows)), t.plus(d.extra())
	}
	s.ReadyRate = fmt.Sprintf("%d/%d", t.ready.n, t.all())
	s.FailedUnits, s.LostUnits, s.OfflineUnits = whole(t.failed.n), whole(t.lost.n), whole(t.offline.n)
	s.Conditions = a.conditions(own, t, d)
	s.Units = fitRows(rows, rowsSizeMax-d.status(&s.GridStatus))
	s.OmittedUnits = whole(t.all() - len(s.Units))
	return s
}

func ownRows(rows []v1.UnitStatus) []v1.UnitStatus {
	return slices.DeleteFunc(slices.Clone(rows), func(r v1.UnitStatus) bool { return r.Cluster != "" })
}

// rows returns the rows of all units, with whole messages, and those of members. The most urgent
// ones are first; equally urgent ones are sorted by cluster and value.
func (a *assessment) rows(d distribution) []v1.UnitStatus {
	rows := append(make([]v1.UnitStatus, 0, len(a.units)), d.rows()...)
	for _, u := range a.units {
		rows = append(rows, a.row(u))
	}
	slices.SortStableFunc(rows, func(a, b v1.UnitStatus) int {
		return cmp.Or(cmp.Compare(urgency(a), urgency(b)), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Value, b.Value))
	})
	return rows
}

// urgency returns the rank of a row: rows that need a user come first, and those of healthy
// units last, because they are left out first.
func urgency(u v1.UnitStatus) int {
	switch {
	case u.Phase == v1.UnitLost:
		return 0
	case u.Reason == ReasonTooManyUnits: // a condition says it
		return 7
	case u.Phase == v1.UnitFailed:
		return 1
	case u.Phase == v1.UnitOffline:
		return 2
	case u.Phase == v1.UnitProgressing:
		return 3
	case u.Phase == v1.UnitStale: // a condition says it, and all of a cluster are
		return 4
	case u.Message != "":
		return 5
	default:
		return 6
	}
}

// states returns as many of the children's states as there is room for, by the units' values;
// nil without any. A member's unit has its cluster before the value if that is not unique.
func (a *assessment) states(rows []v1.UnitStatus, d distribution) map[string]v1.State {
	reported := d.states()
	for _, u := range a.units {
		if u.loss == nil && u.ownership == ours && len(u.live.State) > 0 {
			reported[u.Value] = v1.State{JSON: u.live.State}
		}
	}
	count := map[string]int{}
	for _, r := range rows {
		count[r.Value]++
	}
	states, size := map[string]v1.State{}, 0
	for _, r := range rows {
		state, found := reported[UnitName(r)]
		if !found {
			continue
		}
		key := r.Value
		if count[r.Value] > 1 {
			key = UnitName(r)
		}
		if size += sizeOf(key) + sizeOfJSON(state.JSON); size > stateSizeMax || len(states) == rowsMax {
			break
		}
		states[key] = state
	}
	if len(states) == 0 {
		return nil
	}
	return states
}

// ServiceStatus returns the status of a ServiceGrid. It reads only the conditions of
// Observed.Status.
func ServiceStatus(observed Observed) v1.ServiceGridStatus {
	a, d := assess(observed), distributionOf(observed)
	s := v1.ServiceGridStatus{}
	s.ObservedGeneration = observed.Grid.Generation
	d.status(&s.GridStatus)
	if len(a.units) == 0 { // the key is wrong
		s.Conditions = a.conditions(tally{}, tally{}, d)
		return s
	}
	u := a.units[0]
	s.Conditions = a.serviceConditions(a.row(u), d)
	if u.ownership == ours {
		s.Service, s.ClusterIP = u.Name, u.live.ClusterIP
		if state := string(u.live.State); state != "" && state != "{}" && state != "null" {
			s.LoadBalancer = &v1.State{JSON: u.live.State}
		}
	}
	return s
}

// fitRows shortens the messages of rows and returns the first rows: as many as there is room for,
// in bytes.
func fitRows(rows []v1.UnitStatus, room int) []v1.UnitStatus {
	size := 0
	for i := range rows {
		rows[i].Message = excerpt.Fit(rows[i].Message, rowMessageMax)
		if size += sizeOf(rows[i]); i == rowsMax || size > room {
			return rows[:i]
		}
	}
	return rows
}

// fitNames returns the first names, as many as there is room for.
func fitNames(names []string) []string {
	size := 0
	for i, name := range names {
		if size += sizeOf(name); size > namesSizeMax {
			return names[:i]
		}
	}
	return names
}

// sizeOf returns how many bytes of JSON an element of a list or a map takes, with the comma.
func sizeOf(element any) int {
	text, err := json.Marshal(element)
	if err != nil {
		return rowsSizeMax // cannot be: only texts and numbers are measured
	}
	return len(text) + 1
}

// sizeOfJSON returns how many bytes a text of JSON takes, with the comma, once <, > and & are
// escaped as the encoder does.
func sizeOfJSON(text []byte) int {
	size := len(text) + 1
	for _, c := range text {
		if c == '<' || c == '>' || c == '&' {
			size += len(`\u003c`) - 1
		}
	}
	return size
}
