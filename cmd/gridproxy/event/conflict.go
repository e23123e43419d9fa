package event

import (
	"fmt"

	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/rules"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// Conflicts is what was told last of each Service that names addresses in vain. The zero value
// is before the first View.
type Conflicts map[types.NamespacedName]string

// NextConflicts compares the addresses that Services name in vain with those before, and returns
// what to tell: one Event for a Service, however many of its addresses it concerns. conflicts
// are those that rules.Compile found in v.
//
// Every node sees the same, so one node of each unit makes the Event: see Next. Conflicts of the
// first View are only logged.
func NextConflicts(prev Conflicts, nodes map[string]labels.Set, v topology.View, conflicts []rules.AddressConflict) (Conflicts, []Event) {
	next := Conflicts{}
	if len(conflicts) == 0 {
		return next, nil
	}
	byService := map[types.NamespacedName][]rules.AddressConflict{}
	for _, c := range conflicts {
		name := c.Service.NamespacedName
		byService[name] = append(byService[name], c)
	}
	var events []Event
	for ports := range explain.Services(v) {
		name := ports[0].Name.NamespacedName
		own := byService[name]
		if len(own) == 0 {
			continue
		}
		next[name] = describe(own)
		if prev[name] == next[name] {
			continue
		}
		keys := ports[0].Closure.Keys
		events = append(events, Event{
			Service: ports[0].Service,
			Reason:  ReasonAddressConflict,
			Message: fmt.Sprintf("node %s: %s", v.Node, next[name]),
			LogOnly: prev == nil || !speaks(v.Node, explain.Unit(keys, nodes[v.Node]), keys, nodes),
		})
	}
	return next, events
}

// describe is the first conflict of a Service in words, and how many more there are.
func describe(conflicts []rules.AddressConflict) string {
	text := conflicts[0].String()
	if more := len(conflicts) - 1; more > 0 {
		text += fmt.Sprintf("; %d more: gridproxy explain lists them", more)
	}
	return text
}
