package event

import (
	"fmt"

	"gridproxy/rules"
	"gridproxy/topology"
)

// NextConflicts compares the addresses that Services ask for and do not get with the previous ones.
// It returns one Event for each Service, however many of its addresses are in conflict. conflicts
// are those that rules.Compile found in v.
//
// Every node sees the same conflicts, so one node of each unit sends the Event: see Next. Conflicts
// of the first View are only logged.
func NextConflicts(prev Reported, s topology.Snapshot, v topology.View, conflicts []rules.AddressConflict) (Reported, []Event) {
	if len(conflicts) == 0 {
		return Reported{}, nil
	}
	lost := byService(conflicts, func(c rules.AddressConflict) topology.ServicePortName { return c.Service })
	next, changed := news(prev, v, func(ports []*topology.ServicePort) string {
		return describe(lost[ports[0].Name.NamespacedName])
	})
	var events []Event
	for _, ports := range changed {
		events = append(events, Event{
			Service: ports[0].Service,
			Reason:  ReasonAddressConflict,
			Message: fmt.Sprintf("node %s: %s", v.Node, next[ports[0].Name.NamespacedName]),
			LogOnly: prev == nil || senderOf(s, v.Node, ports[0], ports[0].Closure.Keys) != thisNode,
		})
	}
	return next, events
}

// describe is the text of the first conflict of a Service, and the number of others; "" = none.
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
