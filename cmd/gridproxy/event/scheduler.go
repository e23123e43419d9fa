package event

import (
	"fmt"
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"
)

// NextUnscheduled returns an Event for each Service of a View that asks for one of the
// schedulers in lacks, which this node's kernel does not have, unless prev has it. instead is
// the scheduler that they get.
//
// Every node of a cluster may lack the scheduler. Nodes that run an endpoint of the Service
// send an Event, the others only log it.
func NextUnscheduled(prev Reported, v topology.View, lacks []string, instead string) (Reported, []Event) {
	if len(lacks) == 0 {
		return nil, nil
	}
	return news(prev, v, func(ports []*topology.ServicePort) string {
		if name := ports[0].Service.Annotations[topology.AnnotationScheduler]; slices.Contains(lacks, name) {
			return name
		}
		return ""
	}, func(ports []*topology.ServicePort, name string) Event {
		return Event{
			Reason: ReasonScheduler,
			Message: fmt.Sprintf("node %s: annotation %s asks for scheduler %s, which the kernel there does not have; %s is used instead; "+
				"load the scheduler's module there, or name another one", v.Node, topology.AnnotationScheduler, excerpt.Quoted(name), instead),
			LogOnly: !slices.ContainsFunc(ports, func(sp *topology.ServicePort) bool { return len(sp.Local) > 0 }),
		}
	})
}
