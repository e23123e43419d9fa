package event

import (
	"fmt"

	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// ConflictState is what was last reported. The zero value is for the first View.
type ConflictState struct {
	reported Reported
	unsent   map[types.NamespacedName]bool // as State's
}

// NextConflicts compares the addresses that Services ask for and do not get with the previous
// ones. It returns one Event for each Service with a change, however many of its addresses are
// in conflict. conflicts are those that rules.Compile found in v.
//
// Every node sees the same conflicts, so one node of each unit sends the Event: see Next.
// Conflicts of the first View are only logged.
func NextConflicts(prev ConflictState, s topology.Snapshot, v topology.View, conflicts []rules.AddressConflict) (ConflictState, []Event) {
	next := ConflictState{reported: Reported{}}
	if len(conflicts) == 0 {
		return next, nil
	}
	next.unsent = map[types.NamespacedName]bool{}
	lost := byService(conflicts, func(c rules.AddressConflict) topology.ServicePortName { return c.Service })
	var events []Event
	for ports := range explain.ByService(v) {
		name := ports[0].Name.NamespacedName
		x := text{prev.reported[name], describe(lost[name])}
		if x.after == "" {
			continue
		}
		next.reported[name] = x.after
		said, logOnly, waits := x.reported(prev.unsent[name], prev.reported != nil, func() sender {
			return senderOf(s, v.Node, ports[0], ports[0].Closure.Keys)
		})
		if said {
			events = append(events, Event{
				Service: ports[0].Service,
				Reason:  ReasonAddressConflict,
				Message: fmt.Sprintf("node %s: %s", v.Node, x.after),
				LogOnly: logOnly,
			})
		}
		if waits {
			next.unsent[name] = true
		}
	}
	return next, events
}

// describe returns the text of the first conflict of a Service, and the number of others. It
// returns "" if there is no conflict.
func describe(conflicts []rules.AddressConflict) string {
	if len(conflicts) == 0 {
		return ""
	}
	text := conflicts[0].String()
	if more := len(conflicts) - 1; more > 0 {
		text += fmt.Sprintf("; %d more: gridproxy explain lists them", more)
	}
	return text
}
