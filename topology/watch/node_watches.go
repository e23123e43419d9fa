package watch

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

type nodeCollection = collection[metav1.PartialObjectMetadata, *metav1.PartialObjectMetadata]

// nodeWatches runs the watches for Nodes that a unitPlan asks for. Its methods must not be called
// at the same time, except run.
type nodeWatches struct {
	open     func(unit) (*nodeCollection, error)
	changed  pulse
	away     *outage
	written  func() bool // of ClusterConfig
	nodeless bool        // ClusterConfig names no Node
	log      *slog.Logger

	named   namedKeys
	plan    unitPlan
	running map[unit]*runningWatch
	alarm   *time.Timer // for the plan's deadline
	alarmAt time.Time

	joined joined // by the last call of known
	sizes  allSizes
	// These count the running watches: for the Nodes of one unit each, and for all Nodes.
	units, all atomic.Int64

	mu      sync.Mutex
	launch  func(runs ...func(context.Context)) context.CancelFunc // nil = before start and after the end
	streams sync.WaitGroup
}

type runningWatch struct {
	*nodeCollection
	stop    context.CancelFunc
	several bool // the last list with any Node had more than one
}

// allSizes are the sizes of units as counted in the watch for all Nodes, at a version of it.
type allSizes struct {
	version int
	of      map[unit]int
}

// joined is the result of join and what it was made of.
type joined struct {
	sources []joinedSource
	labels  labels.Set // of this Node
	exists  bool
	nodes   map[string]labels.Set
	watched map[string]bool
}

type joinedSource struct {
	unit    unit
	version int
}

func newNodeWatches(changed pulse, away *outage, open func(unit) (*nodeCollection, error), log *slog.Logger) *nodeWatches {
	return &nodeWatches{
		open: open, changed: changed, away: away, log: log, running: map[unit]*runningWatch{},
		written: func() bool { return false },
	}
}

// start lets watches run until ctx ends. Call it once, before follow, and then run.
func (n *nodeWatches) start(ctx context.Context) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.launch = func(runs ...func(context.Context)) context.CancelFunc {
		ctx, stop := context.WithCancel(ctx)
		for _, run := range runs {
			n.streams.Go(func() { run(ctx) })
		}
		return stop
	}
}

// run returns when ctx and all watches have ended.
func (n *nodeWatches) run(ctx context.Context) {
	<-ctx.Done()
	n.mu.Lock()
	n.launch = nil // no stream begins from now on
	n.mu.Unlock()
	n.streams.Wait()
}

// follow starts and ends watches. It reports whether a Snapshot can be formed.
// lost says that this Node is missing in a list although no event has deleted it.
func (n *nodeWatches) follow(now time.Time, services []*corev1.Service, self *corev1.Node, lost bool) bool {
	n.named.follow(services)
	f := facts{now: now, lost: lost, named: n.named.names, complete: n.complete, size: n.size, written: n.written, nodeless: n.nodeless}
	if self != nil {
		f.labels, f.exists = self.Labels, true
	}
	before := n.plan
	n.plan = n.plan.next(f)
	for u := range before.watches {
		if _, still := n.plan.watches[u]; !still {
			n.end(u)
		}
	}
	for u := range n.plan.watches {
		if n.running[u] == nil {
			n.begin(u)
		}
	}
	n.setAlarm(now)
	return n.plan.whole
}

func (n *nodeWatches) complete(u unit) bool {
	w := n.running[u]
	return w != nil && closed(w.read())
}

// size counts the Nodes of a unit that a complete watch holds: its own, or the one for all
// Nodes.
func (n *nodeWatches) size(u unit) int {
	if w := n.running[u]; w != nil && n.complete(u) {
		nodes, _ := w.list()
		return len(nodes)
	}
	all := n.running[unit{}]
	nodes, version := all.list()
	if n.sizes.version != version || n.sizes.of == nil {
		n.sizes = allSizes{version: version, of: map[unit]int{}}
	}
	size, counted := n.sizes.of[u]
	if !counted {
		for _, node := range nodes {
			if u.has(node.Labels) {
				size++
			}
		}
		n.sizes.of[u] = size
	}
	return size
}

func (n *nodeWatches) begin(u unit) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.launch == nil {
		return
	}
	c, err := n.open(u)
	if err != nil { // its Nodes stay outside
		n.log.Error("Nodes cannot be watched; those that are not known stay outside the unit", "kind", u.what(), "err", err)
		return
	}
	stop := n.launch(c.run, func(ctx context.Context) {
		select {
		case <-c.read():
			n.changed.send()
		case <-ctx.Done():
		}
	})
	n.running[u] = &runningWatch{nodeCollection: c, stop: stop}
	n.countRunning(u, 1)
}

func (n *nodeWatches) end(u unit) {
	w := n.running[u]
	if w == nil {
		return
	}
	w.stop()
	delete(n.running, u)
	n.away.forget(u.what())
	n.countRunning(u, -1)
}

// countRunning adds change to the count, and logs when a watch for all Nodes begins and ends.
func (n *nodeWatches) countRunning(u unit, change int64) {
	if !u.every() {
		n.units.Add(change)
	} else if n.all.Add(change) > 0 {
		n.log.Info("all Nodes are watched: the units of this Node that Services name are more, or together larger, than are watched one by one",
			"maxUnits", unitsMax, "maxNodes", unitNodesMax)
	} else {
		n.log.Info("only the Nodes of this Node's units are watched again")
	}
}

// setAlarm signals at changed when the plan must be made again.
func (n *nodeWatches) setAlarm(now time.Time) {
	at := n.plan.deadline()
	if at.Equal(n.alarmAt) {
		return
	}
	if n.alarm != nil {
		n.alarm.Stop()
	}
	if n.alarmAt = at; !at.IsZero() {
		n.alarm = time.AfterFunc(at.Sub(now), n.changed.send)
	}
}

// known returns the Nodes of all complete watches and this Node, and topology.Snapshot's
// Watched. Both are the same maps until something changes.
func (n *nodeWatches) known(self string) (map[string]labels.Set, map[string]bool) {
	var complete []unitNodes
	var sources []joinedSource
	for _, u := range slices.SortedFunc(maps.Keys(n.running), compareUnits) {
		if n.plan.watches[u].complete {
			w := n.running[u]
			nodes, version := w.list()
			if len(nodes) > 0 {
				w.several = len(nodes) > 1
			}
			complete, sources = append(complete, unitNodes{u, nodes}), append(sources, joinedSource{u, version})
		}
	}
	last := n.joined
	if last.nodes != nil && slices.Equal(last.sources, sources) && last.exists == n.plan.exists && maps.Equal(last.labels, n.plan.labels) {
		return last.nodes, last.watched
	}
	nodes := join(complete)
	delete(nodes, self)
	if n.plan.exists {
		nodes[self] = n.plan.labels
	}
	n.joined = joined{sources: sources, labels: n.plan.labels, exists: n.plan.exists, nodes: nodes, watched: n.plan.watched()}
	return nodes, n.joined.watched
}
