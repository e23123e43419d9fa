package event

import (
	"fmt"
	"slices"

	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/types"
)

// Unscheduled is the Services that asked in vain for a scheduler, with its name. The zero
// value is none.
type Unscheduled map[types.NamespacedName]string

// NextUnscheduled compares which Services of a View ask for a scheduler that this node's
// kernel lacks with those before, and returns what to tell. instead is the scheduler that
// they get.
//
// Every node of a cluster may lack it: those that run an endpoint of the Service make an
// Event of it, the others only write it down.
func NextUnscheduled(prev Unscheduled, v topology.View, lacks []string, instead string) (Unscheduled, []Event) {
	if len(lacks) == 0 {
		return nil, nil
	}
	next := Unscheduled{}
	var events []Event
	for ports := range explain.Services(v) {
		svc := ports[0].Service
		name := svc.Annotations[rules.AnnotationScheduler]
		if !slices.Contains(lacks, name) {
			continue
		}
		next[ports[0].Name.NamespacedName] = name
		if prev[ports[0].Name.NamespacedName] == name {
			continue
		}
		events = append(events, Event{
			Service: svc,
			Reason:  ReasonScheduler,
			Message: fmt.Sprintf("node %s: annotation %s asks for scheduler %s, which the kernel there does not have; %s is used instead; "+
				"load the scheduler's module there, or name another one", v.Node, rules.AnnotationScheduler, excerpt.Quoted(name), instead),
			LogOnly: !slices.ContainsFunc(ports, func(sp *topology.ServicePort) bool { return len(sp.Local) > 0 }),
		})
	}
	return next, events
}
