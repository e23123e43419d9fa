package event

import (
	"log/slog"
	"slices"
	"sync"

	"gridproxy/rules"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Recorder writes Events to the API server, such as record.EventRecorder of client-go. It must not
// block.
type Recorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// The rate at which one node records Events about Services. If a unit fails, all of its Services
// lose their last endpoint at once, and every node of the unit reports it.
const (
	eventsPerSecond = 0.2
	eventBurst      = 10
)

// Reporter logs Events and writes them to the API server. It is an Observer of the syncer. Names
// may be called from another goroutine than its other methods.
type Reporter struct {
	log      *slog.Logger
	recorder Recorder // nil = Events are only logged
	sending  sync.Mutex
	limit    *rate.Limiter
	withheld int
	state    State
	names    NamesState
	unbound  map[types.NamespacedName]bool // Services whose health-check port is reported as taken

	unscheduled Reported
	conflicts   ConflictState
	quarantined Reported
	noAffinity  Reported
}

// NewReporter makes a Reporter. If recorder is nil, as with manifests, it only logs.
func NewReporter(log *slog.Logger, recorder Recorder) *Reporter {
	return &Reporter{log: log, recorder: recorder, limit: rate.NewLimiter(eventsPerSecond, eventBurst), unbound: map[types.NamespacedName]bool{}}
}

// Synced reports what changed. A failed run counts too: Events are about the cluster, not about the
// kernel.
func (r *Reporter) Synced(run syncer.Result) {
	var events []Event
	r.state, events = Next(r.state, run.Snapshot, run.View)
	if run.View.Node != "" { // something was decided
		var more []Event
		r.conflicts, more = NextConflicts(r.conflicts, run.Snapshot, run.View, run.Ruleset.AddressConflicts)
		events = append(events, more...)
	}
	r.report(events...)
}

// Names reports what changed in the names of headless Services.
func (r *Reporter) Names(s topology.Snapshot, v topology.DNSView) {
	var events []Event
	r.names, events = NextNames(r.names, s, v)
	r.report(events...)
}

// Unbound reports health-check node ports that cannot be opened, once for each Service until its
// port opens.
func (r *Reporter) Unbound(services []*corev1.Service, failures []healthcheck.BindError) {
	unbound := map[types.NamespacedName]bool{}
	for _, f := range failures {
		if !unbound[f.Service] && !r.unbound[f.Service] {
			r.report(Event{Service: find(services, f.Service), Reason: ReasonHealthCheck, Message: f.Error()})
		}
		unbound[f.Service] = true
	}
	r.unbound = unbound
}

// Lacking reports Services that ask for a scheduler which the kernel does not have, once for each
// Service and scheduler.
func (r *Reporter) Lacking(v topology.View, lacks []string, instead string) {
	var events []Event
	r.unscheduled, events = NextUnscheduled(r.unscheduled, v, lacks, instead)
	r.report(events...)
}

// Quarantined reports Services that the kernel refuses; see NextQuarantined.
func (r *Reporter) Quarantined(v topology.View, now []Quarantined) {
	var events []Event
	r.quarantined, events = NextQuarantined(r.quarantined, v, now)
	r.report(events...)
}

// WithoutAffinity reports Services that are served without session affinity.
func (r *Reporter) WithoutAffinity(v topology.View, families []rules.Family) {
	var events []Event
	r.noAffinity, events = NextWithoutAffinity(r.noAffinity, v, families)
	r.report(events...)
}

// find returns a Service of a Snapshot, which sorts them, or nil if it is not there.
func find(services []*corev1.Service, name types.NamespacedName) *corev1.Service {
	i, found := slices.BinarySearchFunc(services, name, func(svc *corev1.Service, name types.NamespacedName) int {
		return topology.CompareServices(types.NamespacedName{Namespace: svc.Namespace, Name: svc.Name}, name)
	})
	if !found {
		return nil
	}
	return services[i]
}

func (r *Reporter) report(events ...Event) {
	for _, e := range events {
		r.reportOne(e)
	}
}

func (r *Reporter) reportOne(e Event) {
	e.Message = excerpt.Message(e.Message) // it quotes names and values of objects
	name := ""
	if e.Service != nil {
		name = e.Service.Namespace + "/" + e.Service.Name
	}
	r.log.Warn(e.Message, "service", name, "reason", e.Reason)
	if e.LogOnly || r.recorder == nil || e.Service == nil {
		return
	}
	r.sending.Lock()
	defer r.sending.Unlock()
	if !r.limit.Allow() {
		r.withheld++
		return
	}
	if r.withheld > 0 {
		r.log.Warn("Events were not sent because of the rate limit of one node; all of them are in this log", "withheld", r.withheld)
		r.withheld = 0
	}
	r.recorder.Event(e.Service, corev1.EventTypeWarning, e.Reason, e.Message)
}
