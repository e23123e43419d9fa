package event

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// The reasons of the Events, in CamelCase as the API wants them.
const (
	ReasonMalformed      = "MalformedTopology"               // the annotations cannot be read
	ReasonUnitNoEndpoint = "UnitLostLastEndpoint"            // the unit has no usable endpoint any more
	ReasonHealthCheck    = "FailedToStartServiceHealthcheck" // kube-proxy's name
	ReasonIgnored        = "IgnoredFields"                   // fields of the Service or its slices are ignored
	ReasonQuarantined    = "Quarantined"                     // the kernel refuses the Service's rules
	ReasonNoAffinity     = "SessionAffinityIgnored"          // the kernel cannot keep a client at its endpoint
	ReasonScheduler      = "SchedulerNotFound"               // the kernel has no IPVS scheduler of the annotation's name

	ReasonAddressConflict = "AddressConflict" // another Service, or an API server, has an address that this one names
)

// Event is one report about a Service.
type Event struct {
	Service *corev1.Service
	Reason  string
	Message string
	LogOnly bool // this node only logs it: another node sends the Event, or none does
}

// State is what the last View said of each Service that is closed or has warnings. The zero value
// is for the first View.
type State struct {
	services map[types.NamespacedName]service
	ports    []*topology.ServicePort // of that View: equal pointers are equal ports
	self     labels.Set
	begun    bool
}

type service struct {
	uid       types.UID
	unit      string
	malformed string
	warnings  string
	usable    bool

	// Events that no node has sent yet, because it is not known which one does.
	malformedUnsent, warningsUnsent bool
}

// Next compares a View with the previous one and returns the Events. s is the Snapshot that the
// View was made from.
//
// The first View is no transition: malformed annotations in it are only logged, and a unit without
// endpoints has lost none. The same holds for a unit that this node has just moved into.
func Next(prev State, s topology.Snapshot, v topology.View) (State, []Event) {
	self := s.Nodes[v.Node]
	if prev.begun && slices.Equal(prev.ports, v.Ports) && maps.Equal(prev.self, self) {
		return prev, nil // nothing changed, as in most runs
	}
	next := State{services: map[types.NamespacedName]service{}, ports: v.Ports, self: self, begun: true}
	var events []Event
	for ports := range explain.ByService(v) {
		closure := ports[0].Closure
		if !closure.Closed() && closure.Malformed == "" && len(ports[0].Warnings) == 0 {
			continue
		}
		name := ports[0].Name.NamespacedName
		now := summaryOf(self, ports)
		before, seen := prev.services[name]
		if before.uid != now.uid {
			before, seen = service{}, false
		}
		var report, send bool
		report, send, now.malformedUnsent = transition(now.malformed, before.malformed, before.malformedUnsent, prev.begun,
			func() speaker { return speakerOf(s, v.Node, name, closure.Keys) })
		if report {
			events = append(events, malformed(v.Node, ports[0], !send))
		}
		report, send, now.warningsUnsent = transition(now.warnings, before.warnings, before.warningsUnsent, prev.begun,
			func() speaker { return speakerOf(s, v.Node, name, nil) })
		if report {
			events = append(events, ignored(v.Node, ports[0], !send))
		}
		next.services[name] = now
		if seen && before.usable && !now.usable && before.unit == now.unit && now.unit != "" {
			events = append(events, lostLast(v.Node, now.unit, ports[0].Service))
		}
	}
	return next, events
}

// transition decides whether a text is reported, and whether this node sends it as an Event. It is
// reported once, and a second time if only then it is known that this node sends it.
func transition(now, before string, unsent, begun bool, ask func() speaker) (report, send, stillUnsent bool) {
	fresh := now != before
	if now == "" || !fresh && !unsent {
		return false, false, false
	}
	if !begun {
		return true, false, false
	}
	who := ask()
	return fresh || who == thisNode, who == thisNode, who == notYetKnown
}

// summaryOf is the state of one Service, by its ports. Its unit is what this node has of the keys.
func summaryOf(self labels.Set, ports []*topology.ServicePort) service {
	s := service{
		uid:       ports[0].Service.UID,
		malformed: ports[0].Closure.Malformed,
		warnings:  strings.Join(ports[0].Warnings, "; "),
		unit:      explain.Unit(ports[0].Closure.Keys, self),
	}
	for _, p := range ports {
		s.usable = s.usable || len(p.Cluster) > 0 || len(p.Local) > 0
	}
	return s
}

func malformed(node string, port *topology.ServicePort, logOnly bool) Event {
	closure := port.Closure
	return Event{
		Service: port.Service,
		Reason:  ReasonMalformed,
		Message: fmt.Sprintf("node %s: %s; %s", node, closure.Malformed, topology.MalformedEffect(closure.Keys)),
		LogOnly: logOnly,
	}
}

// ignored has the first warning alone: the message of an Event is short.
func ignored(node string, port *topology.ServicePort, logOnly bool) Event {
	message := fmt.Sprintf("node %s: %s", node, port.Warnings[0])
	if more := len(port.Warnings) - 1; more > 0 {
		message += fmt.Sprintf("; gridproxy explain %s prints %d more", port.Name.NamespacedName, more)
	}
	return Event{Service: port.Service, Reason: ReasonIgnored, Message: message, LogOnly: logOnly}
}

func lostLast(node, unit string, svc *corev1.Service) Event {
	return Event{
		Service: svc,
		Reason:  ReasonUnitNoEndpoint,
		Message: fmt.Sprintf("node %s: unit %s has no usable endpoint any more; connections to the Service are refused there", node, unit),
	}
}
