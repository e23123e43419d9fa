package main

import (
	"fmt"
	"log/slog"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/rules"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
)

// nodeObserver logs when this node's object is missing, and when it appears.
type nodeObserver struct {
	log     *slog.Logger
	missing bool
}

// Synced looks for the Node.
func (o *nodeObserver) Synced(r syncer.Result) {
	_, known := r.Snapshot.Nodes[r.Snapshot.Node]
	switch {
	case !known && !o.missing:
		o.log.Warn("there is no Node of this name: closed Services refuse here until it appears, ordinary ones work; check --node-name", "node", r.Snapshot.Node)
	case known && o.missing:
		o.log.Info("this node's Node has appeared", "node", r.Snapshot.Node)
	}
	o.missing = !known
}

// loopbackObserver lets the machine route 127.0.0.0/8 once NodePorts answer there. It
// waits for a run that wrote IPv4: by then the guard of KUBE-FIREWALL is in the kernel
// (CVE-2020-8558), unless the run says that it is not.
type loopbackObserver struct {
	log   *slog.Logger
	route func() error // routeLocalnet
	done  bool
	told  bool // that IPv4 is left out
}

// Synced acts once.
func (o *loopbackObserver) Synced(r syncer.Result) {
	ipv4 := r.Changes.Families[rules.IPv4]
	if o.done || ipv4.Err != nil || r.Changes.Unguarded != nil || !r.Ruleset.NodePorts.Localhost || ipv4.LeftOut != nil && o.told {
		return
	}
	o.done, o.told = ipv4.Synced(), true
	if err := o.route(); err != nil {
		o.log.Warn(fmt.Sprintf("NodePorts do not answer on 127.0.0.1: %v", err))
	}
}

// memoryObserver gives back to the machine what a run needed and what stands empty since:
// the first one above all, which reads the whole cluster and writes all of it.
type memoryObserver struct {
	settle  func() // collects more often from now on
	free    func() // debug.FreeOSMemory: a collection, a few hundredths of a second of one core
	settled bool
	freed   time.Time
}

// freeEvery keeps the cost far below a thousandth of a core where a run cost nothing either.
const freeEvery = time.Minute

// Synced frees only behind a run that had nothing to do but to look at the kernel: what the
// runs before it needed is garbage by then. Where the kernel was read back, what that took is
// garbage too, and cost many times as much as giving it back.
func (o *memoryObserver) Synced(r syncer.Result) {
	if r.Changes.Families.Synced() != (rules.FamilySet{}) && !o.settled {
		o.settled = true
		o.settle()
	}
	if r.Err == nil && r.Queued.IsZero() && (r.Changes.Verified || r.End.Sub(o.freed) >= freeEvery) {
		o.freed = r.End
		o.free()
	}
}

// portObserver keeps the health-check node ports of each family equal to the rules in force.
type portObserver struct {
	server      *healthcheck.Server
	reporter    *event.Reporter
	quarantined func() []event.Quarantined
}

// Synced opens and closes ports. Where a family failed the old answers stay, as the old rules do.
func (o portObserver) Synced(r syncer.Result) {
	if r.Changes.Families.Synced() != (rules.FamilySet{}) {
		r.Ruleset.HealthChecks = checksWithout(r.Ruleset.HealthChecks, o.quarantined())
		o.reporter.Unbound(r.Snapshot.Services, o.server.Sync(r.Ruleset, r.Changes.Families))
	}
}
