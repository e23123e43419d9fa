package event

import (
	"log/slog"

	"gridproxy/rules/healthcheck"
	"gridproxy/rules/iptables"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Recorder writes Events to the API server; record.EventRecorder of client-go is one. It
// must not block.
type Recorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// The rate at which one node records Events about Services: a unit that goes dark takes
// all of its Services along, and every node of it says so.
const (
	eventsPerSecond = 0.2
	eventBurst      = 10
)

// Teller logs and records what Next finds. It is an Observer of the syncer.
type Teller struct {
	log      *slog.Logger
	recorder Recorder // nil = only log
	limit    *rate.Limiter
	state    State
	withheld int
	unbound  map[types.NamespacedName]bool // Services whose health-check port was told to be taken

	unscheduled Told
	conflicts   Told
	quarantined Told
	noAffinity  Told
}

// NewTeller makes a Teller. Without a recorder, as with manifests, it only logs.
func NewTeller(log *slog.Logger, recorder Recorder) *Teller {
	return &Teller{log: log, recorder: recorder, limit: rate.NewLimiter(eventsPerSecond, eventBurst), unbound: map[types.NamespacedName]bool{}}
}

// Synced tells what changed. A failed run counts too: it is the cluster that is judged, not
// the kernel.
func (t *Teller) Synced(r syncer.Result) {
	var events []Event
	t.state, events = Next(t.state, r.Snapshot.Nodes, r.View)
	if r.View.Node != "" { // something was decided
		var more []Event
		t.conflicts, more = NextConflicts(t.conflicts, r.Snapshot.Nodes, r.View, r.Ruleset.AddressConflicts)
		events = append(events, more...)
	}
	for _, e := range events {
		t.tell(e)
	}
}

// Unbound tells of health-check node ports that could not be opened, each Service once
// until it opens.
func (t *Teller) Unbound(services []*corev1.Service, failures []healthcheck.BindError) {
	unbound := map[types.NamespacedName]bool{}
	for _, f := range failures {
		if !unbound[f.Service] && !t.unbound[f.Service] {
			t.tell(Event{Service: find(services, f.Service), Reason: ReasonHealthCheck, Message: f.Error()})
		}
		unbound[f.Service] = true
	}
	t.unbound = unbound
}

// Lacking tells of Services that ask for a scheduler which the kernel does not have, each
// once until it asks for another one.
func (t *Teller) Lacking(v topology.View, lacks []string, instead string) {
	var events []Event
	t.unscheduled, events = NextUnscheduled(t.unscheduled, v, lacks, instead)
	for _, e := range events {
		t.tell(e)
	}
}

// Quarantined tells of Services that the kernel refuses; see NextQuarantined.
func (t *Teller) Quarantined(v topology.View, now []iptables.Quarantined) {
	var events []Event
	t.quarantined, events = NextQuarantined(t.quarantined, v, now)
	for _, e := range events {
		t.tell(e)
	}
}

// WithoutAffinity tells of Services that are served without session affinity.
func (t *Teller) WithoutAffinity(v topology.View, families []netfilter.Family) {
	var events []Event
	t.noAffinity, events = NextWithoutAffinity(t.noAffinity, v, families)
	for _, e := range events {
		t.tell(e)
	}
}

func find(services []*corev1.Service, name types.NamespacedName) *corev1.Service {
	for _, svc := range services {
		if svc.Namespace == name.Namespace && svc.Name == name.Name {
			return svc
		}
	}
	return nil
}

func (t *Teller) tell(e Event) {
	e.Message = excerpt.Message(e.Message) // it quotes names and values of objects
	name := ""
	if e.Service != nil {
		name = e.Service.Namespace + "/" + e.Service.Name
	}
	t.log.Warn(e.Message, "service", name, "reason", e.Reason)
	if e.LogOnly || t.recorder == nil || e.Service == nil {
		return
	}
	if !t.limit.Allow() {
		t.withheld++
		return
	}
	if t.withheld > 0 {
		t.log.Warn("Events were withheld to keep to the rate of one node; all of them are in this log", "withheld", t.withheld)
		t.withheld = 0
	}
	t.recorder.Event(e.Service, corev1.EventTypeWarning, e.Reason, e.Message)
}
