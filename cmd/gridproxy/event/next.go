package event

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/cmd/inspect/explain"
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

	ReasonAddressConflict = "AddressConflict" // another Service, an API server or local DNS has an address that this one names
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
	ports   []*topology.ServicePort // equal pointers are equal ports
	self    labels.Set
	watched map[string]bool // as of the Snapshot
	unsent  map[types.NamespacedName]unsent
	begun   bool
	explain func(types.NamespacedName) string // the command that prints all about a Service; nil = explainRules
}

func explainRules(svc types.NamespacedName) string { return "gridproxy explain " + svc.String() }

// unsent are the Events of a Service that wait until this node knows whether it sends them.
type unsent struct{ malformed, warnings bool }

// service is what a View says of a Service that is closed or has warnings.
type service struct {
	uid       types.UID
	unit      string
	malformed string
	warnings  string
	usable    bool
}

// Next compares a View with the previous one and returns the Events. s is the Snapshot that the
// View was made from.
//
// The first View is no transition: malformed annotations in it are only logged, and a unit without
// endpoints has lost none. The same holds for a unit that this node has just moved into.
func Next(prev State, s topology.Snapshot, v topology.View) (State, []Event) {
	t := transition{prev: prev, s: s, v: v, unsent: maps.Clone(prev.unsent)}
	for before, after := range explain.ChangedServices(prev.ports, v.Ports) {
		t.compare(before, after)
	}
	if !topology.EqualWatched(prev.watched, s.Watched) { // which node sends may be known only now
		for name := range prev.unsent {
			if ports := topology.PortsOf(v.Ports, name); slices.Equal(ports, topology.PortsOf(prev.ports, name)) {
				t.compare(ports, ports)
			}
		}
	}
	slices.SortStableFunc(t.events, func(a, b Event) int { return topology.CompareObjects(a.Service, b.Service) })
	return State{ports: v.Ports, self: s.Nodes[v.Node], watched: s.Watched, unsent: t.unsent, begun: true, explain: prev.explain}, t.events
}

// transition is a call of Next.
type transition struct {
	prev   State
	s      topology.Snapshot
	v      topology.View
	unsent map[types.NamespacedName]unsent // of the next State
	events []Event
}

// compare adds the Events about one Service to t, by its ports before and after, if any.
func (t *transition) compare(before, after []*topology.ServicePort) {
	old, seen := summaryOf(t.prev.self, before)
	now, counts := summaryOf(t.s.Nodes[t.v.Node], after)
	if len(before) > 0 {
		delete(t.unsent, before[0].Name.NamespacedName)
	}
	if !counts {
		return
	}
	port := after[0]
	name := port.Name.NamespacedName
	waiting := t.prev.unsent[name]
	if old.uid != now.uid {
		old, seen, waiting = service{}, false, unsent{}
	}
	waiting.malformed = t.report(text{old.malformed, now.malformed}, waiting.malformed, port, port.Closure.Keys, malformed)
	waiting.warnings = t.report(text{old.warnings, now.warnings}, waiting.warnings, port, nil, t.ignored)
	if waiting != (unsent{}) {
		if t.unsent == nil {
			t.unsent = map[types.NamespacedName]unsent{}
		}
		t.unsent[name] = waiting
	}
	if seen && old.usable && !now.usable && old.unit == now.unit && now.unit != "" {
		t.events = append(t.events, lostLast(t.v.Node, now.unit, port.Service))
	}
}

// report adds an Event to t if a text is to be reported. It returns whether the text still
// waits until its sender is known. keys are those of the units that have a sender each.
func (t *transition) report(x text, waiting bool, port *topology.ServicePort, keys []string,
	event func(node string, port *topology.ServicePort) Event,
) bool {
	said, logOnly, waits := x.reported(waiting, t.prev.begun, func() sender { return senderOf(t.s, t.v.Node, port, keys) })
	if said {
		e := event(t.v.Node, port)
		e.LogOnly = logOnly
		t.events = append(t.events, e)
	}
	return waits
}

// summaryOf returns what the ports of one Service say, for a comparison with another View. It
// returns false if Events cannot be about it: without ports, or open, well-formed and without
// warnings. self are this node's labels.
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

func malformed(node string, port *topology.ServicePort) Event {
	closure := port.Closure
	return Event{
		Service: port.Service,
		Reason:  ReasonMalformed,
		Message: fmt.Sprintf("node %s: %s; %s", node, closure.Malformed, topology.MalformedEffect(closure.Keys)),
	}
}

// ignored returns an Event with the first warning alone: the message of an Event is short.
func (t *transition) ignored(node string, port *topology.ServicePort) Event {
	message := fmt.Sprintf("node %s: %s", node, port.Warnings[0])
	if more := len(port.Warnings) - 1; more > 0 {
		command := explainRules
		if t.prev.explain != nil {
			command = t.prev.explain
		}
		message += fmt.Sprintf("; %s prints %d more", command(port.Name.NamespacedName), more)
	}
	return Event{Service: port.Service, Reason: ReasonIgnored, Message: message}
}

func lostLast(node, unit string, svc *corev1.Service) Event {
	return Event{
		Service: svc,
		Reason:  ReasonUnitNoEndpoint,
		Message: fmt.Sprintf("node %s: unit %s has no usable endpoint any more; connections to the Service are refused there", node, unit),
	}
}

// Reported is the text that was last reported of each Service. nil = nothing was, or there was no
// View yet.
type Reported map[types.NamespacedName]string

// byService groups values by the Service of their port.
func byService[T any](list []T, port func(T) topology.ServicePortName) map[types.NamespacedName][]T {
	groups := map[types.NamespacedName][]T{}
	for _, t := range list {
		name := port(t).NamespacedName
		groups[name] = append(groups[name], t)
	}
	return groups
}

// news returns the text about each Service of a View, and one Event for each text that is new or
// has changed. say returns "" if there is nothing to report. report makes an Event without its
// Service, which news adds.
func news(
	prev Reported, v topology.View, say func(ports []*topology.ServicePort) string, report func(ports []*topology.ServicePort, text string) Event,
) (next Reported, events []Event) {
	next = Reported{}
	for ports := range explain.ByService(v) {
		text := say(ports)
		if text == "" {
			continue
		}
		name := ports[0].Name.NamespacedName
		next[name] = text
		if prev[name] != text {
			e := report(ports, text)
			e.Service = ports[0].Service
			events = append(events, e)
		}
	}
	return next, events
}
