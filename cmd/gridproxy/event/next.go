package event

import (
	"fmt"
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

// State is the last View, as far as Events depend on it. The zero value is for the first View.
type State struct {
	ports []*topology.ServicePort // equal pointers are equal ports
	self  labels.Set
	begun bool
}

// service is what a View says of a Service that is closed or has warnings.
type service struct {
	uid       types.UID
	unit      string
	malformed string
	warnings  string
	usable    bool
}

// Next compares a View with the previous one and returns the Events. nodes are the labels of every
// Node, this one's too.
//
// The first View is no transition: malformed annotations in it are only logged, and a unit without
// endpoints has lost none. The same holds for a unit that this node has just moved into.
func Next(prev State, nodes map[string]labels.Set, v topology.View) (State, []Event) {
	self := nodes[v.Node]
	var events []Event
	for old, ports := range explain.ChangedServices(prev.ports, v.Ports) {
		before, seen := summaryOf(prev.self, old)
		now, counts := summaryOf(self, ports)
		if !counts {
			continue
		}
		closure := ports[0].Closure
		if before.uid != now.uid {
			before, seen = service{}, false
		}
		if now.malformed != "" && now.malformed != before.malformed {
			spoken := prev.begun && speaks(v.Node, now.unit, closure.Keys, nodes)
			events = append(events, malformed(v.Node, ports[0], !spoken))
		}
		if now.warnings != "" && now.warnings != before.warnings {
			spoken := prev.begun && speaks(v.Node, "", nil, nodes)
			events = append(events, ignored(v.Node, ports[0], !spoken))
		}
		if seen && before.usable && !now.usable && before.unit == now.unit && now.unit != "" {
			events = append(events, lostLast(v.Node, now.unit, ports[0].Service))
		}
	}
	return State{ports: v.Ports, self: self, begun: true}, events
}

// summaryOf is what is said of one Service, by its ports; false = nothing. Its unit is what this
// node has of the keys.
func summaryOf(self labels.Set, ports []*topology.ServicePort) (service, bool) {
	if len(ports) == 0 || !ports[0].Closure.Closed() && ports[0].Closure.Malformed == "" && len(ports[0].Warnings) == 0 {
		return service{}, false
	}
	s := service{
		uid:       ports[0].Service.UID,
		malformed: ports[0].Closure.Malformed,
		warnings:  strings.Join(ports[0].Warnings, "; "),
		unit:      explain.Unit(ports[0].Closure.Keys, self),
	}
	for _, p := range ports {
		s.usable = s.usable || len(p.Cluster) > 0 || len(p.Local) > 0
	}
	return s, true
}

// speaks reports whether this node sends the Events of its unit that all of the unit's nodes see
// alike. It does if it is the first by name. If no keys were ever read, all Nodes are one unit.
func speaks(node, unit string, keys []string, nodes map[string]labels.Set) bool {
	if unit == "" && len(keys) > 0 {
		return false
	}
	for name, other := range nodes {
		if name < node && explain.Unit(keys, other) == unit {
			return false
		}
	}
	return true
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
