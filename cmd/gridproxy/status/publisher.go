package status

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/health"
	"gridproxy/cmd/gridproxy/localdns"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/otherproxy"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/excerpt"
	"gridproxy/topology/watch"

	"k8s.io/apimachinery/pkg/types"
)

// Config is where the values of an answer come from. A nil func has none.
type Config struct {
	Daemon Daemon
	Node   string

	// These are called by the syncing goroutine at the end of a run.
	Services      func() metrics.ServiceCounts
	Quarantined   func() []event.Quarantined
	UnopenedPorts func() []healthcheck.BindError
	OtherProxy    func() otherproxy.State

	// These are called for each answer. They must not wait for a sync.
	Checks   func() health.Checks
	Lost     func() watch.Loss
	HeldBack func() bool
	Held     func() []topology.HeldEndpoint

	APIProxies func() topology.ProbedProxies // a few
	DNS        func() []localdns.Path        // one of each family
}

// Publisher is an Observer of the syncer that keeps what the last run found, and serves it.
type Publisher struct {
	config Config
	last   atomic.Pointer[found] // what runs have found
}

// found is what runs have found.
type found struct {
	Status
	view topology.View // of the last one; its Services are named in an answer
}

// NewPublisher makes a Publisher.
func NewPublisher(c Config) *Publisher { return &Publisher{config: c} }

// Synced publishes what a run found. It is the last Observer, so that the others know of the run.
func (p *Publisher) Synced(r syncer.Result) {
	var before Status
	if last := p.last.Load(); last != nil {
		before = last.Status
	}
	now := next(before, r)
	if p.config.Services != nil {
		c := p.config.Services()
		now.Services = Services{All: c.All, Open: c.All - c.Closed, Closed: c.Closed, Refused: c.Refused, Malformed: c.Malformed}
	}
	now.Services.Quarantined = before.Services.Quarantined // a run that decided nothing found nothing
	if p.config.Quarantined != nil && r.Backends != nil {
		now.Quarantined, now.Services.Quarantined = portsAndServices(p.config.Quarantined())
	}
	now.OtherProxy = nil
	if p.config.OtherProxy != nil {
		now.OtherProxy = suspicion(p.config.OtherProxy())
	}
	now.UnopenedPorts, now.FirstUnopened = 0, nil
	if p.config.UnopenedPorts != nil {
		now.UnopenedPorts, now.FirstUnopened = describeUnopened(p.config.UnopenedPorts())
	}
	p.last.Store(&found{now, r.View})
}

// describeUnopened returns the number of all, and the first ones.
func describeUnopened(failed []healthcheck.BindError) (number int, first []UnopenedPort) {
	for _, f := range failed[:min(len(failed), servicesMax)] {
		reason := f.Err
		for errors.Unwrap(reason) != nil { // the wrapping errors say the address again
			reason = errors.Unwrap(reason)
		}
		first = append(first, UnopenedPort{Service: excerpt.Of(f.Service.String()), Address: f.Addr.String(), Port: f.Addr.Port(), Reason: text(reason)})
	}
	return len(failed), first
}

// firstServices returns the names of the first Services, at most servicesMax and number, for which
// holds reports true.
func firstServices(v topology.View, number int, holds func(ports []*topology.ServicePort) bool) (names []string) {
	number = min(number, servicesMax)
	if number == 0 {
		return nil
	}
	for ports := range explain.ByService(v) {
		if holds(ports) {
			if names = append(names, excerpt.Of(ports[0].Name.NamespacedName.String())); len(names) == number {
				break
			}
		}
	}
	return names
}

func isMalformed(ports []*topology.ServicePort) bool { return ports[0].Closure.Malformed != "" }

// next returns s with what a run itself says.
func next(s Status, r syncer.Result) Status {
	_, s.Node.Known = r.Snapshot.Nodes[r.Snapshot.Node]
	if !r.Queued.IsZero() {
		s.Knowledge.Snapshot = r.Start
	}
	s.Knowledge.Saved = r.Snapshot.Saved
	run := &Run{End: r.End, TookSeconds: r.End.Sub(r.Start).Seconds(), ReadBack: r.Changes.Verified, Repaired: r.Changes.Repaired, Error: text(r.Err)}
	s.LastSync = run
	if r.Verify && !r.Changes.Interrupted {
		s.LastVerification = run
	}
	if r.Changes.Repaired > 0 {
		s.Drift.Repaired += r.Changes.Repaired
		s.Drift.Last = r.End
	}
	s.Families = nil
	for f, o := range r.Changes.Families {
		family := Family{Name: rules.Family(f).String(), State: metrics.StateOf(o), Reason: text(o.Err)}
		if o.LeftOut != nil {
			family.Reason = text(o.LeftOut)
		}
		s.Families = append(s.Families, family)
	}
	return s
}

// text returns an error of any size, which may quote objects, as one short line; "" for nil.
func text(err error) string {
	if err == nil {
		return ""
	}
	return excerpt.Message(err.Error())
}

// portsAndServices returns the first quarantined ports, and the number of quarantined Services.
func portsAndServices(found []event.Quarantined) (first []QuarantinedPort, services int) {
	names := map[types.NamespacedName]struct{}{}
	for _, q := range found {
		names[q.Service.NamespacedName] = struct{}{}
	}
	for _, q := range found[:min(len(found), quarantinedMax)] {
		first = append(first, QuarantinedPort{
			Service: excerpt.Of(q.Service.NamespacedName.String()), Port: excerpt.Of(q.Service.Port), Family: q.Family.String(), Reason: excerpt.Of(q.Reason),
		})
	}
	return first, len(names)
}

// firstHeld returns the number of all held endpoints, and the first ones.
func firstHeld(all []topology.HeldEndpoint) (number int, first []HeldEndpoint) {
	for _, e := range all[:min(len(all), heldMax)] {
		first = append(first, HeldEndpoint{Service: e.Service.String(), Address: e.Addr.String(), Node: excerpt.Of(e.Node), Until: e.Until})
	}
	return len(all), first
}

func apiProxies(probed topology.ProbedProxies) (all []APIProxy) {
	for _, addr := range slices.SortedFunc(maps.Keys(probed), netip.AddrPort.Compare) {
		all = append(all, APIProxy{Address: addr.String(), Answers: probed[addr]})
	}
	return all
}

func dnsPaths(paths []localdns.Path) (all []DNSPath) {
	for _, p := range paths {
		all = append(all, DNSPath{Address: p.Addr.String(), Local: p.Local, Unasked: p.Unasked, Reason: p.Why, Since: p.Since, ReturnWaitSeconds: math.Ceil(p.Wait.Seconds())})
	}
	return all
}

func suspicion(s otherproxy.State) *OtherProxy {
	if !s.Suspected {
		return nil
	}
	return &OtherProxy{Since: s.Evidence.Since, Message: excerpt.Message(s.Evidence.Message())}
}

func (p *Publisher) now() Status {
	var s Status
	if last := p.last.Load(); last != nil {
		s = last.Status
		s.FirstRefused = firstServices(last.view, s.Services.Refused, explain.IsRefused)
		s.FirstMalformed = firstServices(last.view, s.Services.Malformed, isMalformed)
	}
	c := p.config.Checks()
	s.CurrentTime, s.Daemon = c.At, p.config.Daemon
	s.Node.Name, s.Node.Eligible = p.config.Node, c.Eligible
	s.Sync = Sync{Live: c.Live, Ready: c.Ready, Pending: c.Pending, LastStep: c.Progress, Hangs: c.Hangs, LimitSeconds: c.Timeout.Seconds()}
	if p.config.Lost != nil {
		lost := p.config.Lost()
		s.Knowledge.LostSince, s.Knowledge.LostReason = lost.Since, excerpt.Message(lost.Reason)
	}
	s.Knowledge.HeldBack = p.config.HeldBack != nil && p.config.HeldBack()
	if p.config.Held != nil {
		s.Knowledge.HeldEndpoints, s.Knowledge.Held = firstHeld(p.config.Held())
	}
	if p.config.APIProxies != nil {
		s.Knowledge.APIProxies = apiProxies(p.config.APIProxies())
	}
	if p.config.DNS != nil {
		s.DNS = dnsPaths(p.config.DNS())
	}
	s.Families = families(s.Families, c)
	return judged(s)
}

// families returns the families of the last run, or before it those of this machine, with their
// health.
func families(last []Family, c health.Checks) []Family {
	all := slices.Clone(last)
	for _, f := range rules.Families() {
		if _, served := c.Families[f]; served && last == nil {
			all = append(all, Family{Name: f.String(), State: StateStarting})
		}
	}
	for f, of := range c.Families {
		for i := range all {
			if all[i].Name == f.String() {
				all[i].Healthy, all[i].Synced = of.Healthy, of.LastUpdated
			}
		}
	}
	for i := range all {
		all[i].Healthy = all[i].Healthy || all[i].State == metrics.StateLeftOut
	}
	return all
}

// Path is where the answer is.
const Path = "/status"

// Server returns an HTTP server that serves the answer at Path.
func (p *Publisher) Server() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path, p.answer)
	return &http.Server{
		Handler: mux, MaxHeaderBytes: headerMax, ConnState: new(newestConnections).changed,
		ReadTimeout: requestTimeout, ReadHeaderTimeout: requestTimeout, WriteTimeout: requestTimeout, IdleTimeout: requestTimeout,
	}
}

// newestConnections closes the oldest connection when there are too many, so that no number of idle
// ones keeps a question waiting.
type newestConnections struct {
	mu   sync.Mutex
	open []net.Conn // the oldest first
}

func (n *newestConnections) changed(conn net.Conn, state http.ConnState) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch state {
	case http.StateNew:
		n.open = append(n.open, conn)
	case http.StateClosed:
		n.open = slices.DeleteFunc(n.open, func(other net.Conn) bool { return other == conn })
	}
	if len(n.open) > connectionsMax {
		_ = n.open[0].Close() // its goroutine reports an error to no one
		n.open = slices.Delete(n.open, 0, 1)
	}
}

func (p *Publisher) answer(w http.ResponseWriter, _ *http.Request) {
	body, err := json.Marshal(p.now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body) // the client has closed the connection
}
