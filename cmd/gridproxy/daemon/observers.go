package daemon

import (
	"fmt"
	"log/slog"
	"runtime/metrics"
	"sync/atomic"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/rules"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
)

// nodeObserver logs when the Node object of this node is missing, and when it appears.
type nodeObserver struct {
	log     *slog.Logger
	missing bool
}

// Synced logs that the Node is missing, or that it has appeared, once for each change.
func (o *nodeObserver) Synced(r syncer.Result) {
	_, known := r.Snapshot.Nodes[r.Snapshot.Node]
	switch {
	case !known && !o.missing:
		o.log.Warn("there is no Node of this name: closed Services refuse connections here until it appears, ordinary Services work; check --node-name", "node", r.Snapshot.Node)
	case known && o.missing:
		o.log.Info("this node's Node has appeared", "node", r.Snapshot.Node)
	}
	o.missing = !known
}

// loopbackObserver lets the machine route 127.0.0.0/8, so that NodePorts answer there. It waits for
// a run that wrote IPv4: then the guard in KUBE-FIREWALL is in the kernel (CVE-2020-8558), unless
// the run reports that it is not.
type loopbackObserver struct {
	log   *slog.Logger
	route func() error // routeLocalnet
	done  bool
	tried bool // once, so that a left-out IPv4 is logged once
}

// Synced calls route once, after the first run that wrote IPv4 with its guard, if NodePorts
// answer on loopback addresses. It logs an error. If IPv4 is left out, it does so once before.
func (o *loopbackObserver) Synced(r syncer.Result) {
	ipv4 := r.Changes.Families[rules.IPv4]
	if o.done || ipv4.Err != nil || r.Changes.Unguarded != nil || !r.Ruleset.NodePorts.Localhost || ipv4.LeftOut != nil && o.tried {
		return
	}
	o.done, o.tried = ipv4.Synced(), true
	if err := o.route(); err != nil {
		o.log.Warn(fmt.Sprintf("NodePorts do not answer on 127.0.0.1: %v", err))
	}
}

// memoryObserver returns unused memory to the machine after a run. The first run uses the most,
// because it reads the whole cluster and writes all rules.
type memoryObserver struct {
	settle  func()        // makes the garbage collector run more often from now on
	free    func()        // debug.FreeOSMemory: a collection, a few hundredths of a second of one core
	heap    func() uint64 // bytes of the heap that are in use or could be returned; costs microseconds
	settled bool
	freed   time.Time
	freeing atomic.Bool
	left    atomic.Uint64 // what heap said after free
}

// freeEvery keeps the cost far below a thousandth of a core on an idle node.
const freeEvery = time.Minute

// freeAbove is by how much the heap must have grown. A collection looks at all that is held, which
// grows with the cluster, so at rest there is none.
const freeAbove = 2 << 20

// Synced calls settle after the first run that wrote a family. It frees memory only after a run
// without changes, when what previous runs used is garbage, and always if that run read the
// kernel back, which costs many times as much. It does not wait for the end: a change may come.
func (o *memoryObserver) Synced(r syncer.Result) {
	if r.Changes.Families.Synced() != (rules.FamilySet{}) && !o.settled {
		o.settled = true
		o.settle()
	}
	due := r.Changes.Verified || r.End.Sub(o.freed) >= freeEvery && o.heap() > o.left.Load()+freeAbove
	if r.Err == nil && r.Queued.IsZero() && due && o.freeing.CompareAndSwap(false, true) {
		o.freed = r.End
		go func() {
			defer o.freeing.Store(false)
			o.free()
			o.left.Store(o.heap())
		}()
	}
}

// heapInUse returns how many bytes of this process's heap are in use or could be returned, for
// memoryObserver.heap.
func heapInUse() uint64 {
	classes := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/free:bytes"}}
	metrics.Read(classes)
	return classes[0].Value.Uint64() + classes[1].Value.Uint64()
}

// portObserver opens and closes health-check node ports, so that they match the rules in force.
type portObserver struct {
	server      *healthcheck.Server
	reporter    *event.Reporter
	quarantined func() []event.Quarantined
}

// Synced opens and closes the ports, sets their answers, and reports ports that cannot be
// opened. It keeps the old answers of a family that failed: its old rules stay in force too.
func (o portObserver) Synced(r syncer.Result) {
	if r.Changes.Families.Synced() != (rules.FamilySet{}) {
		r.Ruleset.HealthChecks = checksWithout(r.Ruleset.HealthChecks, o.quarantined())
		o.reporter.Unbound(r.Snapshot.Services, o.server.Sync(r.Ruleset, r.Changes.Families))
	}
}
