package watch

import (
	"cmp"
	"context"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"gridproxy/topology"
)

// Config says what a Chain reads, and which of its parts are on.
type Config struct {
	// Connect makes the Cluster that watches an API server. It sends no request: an error means that
	// a file, such as a kubeconfig or a token, is missing or wrong. It is called until it succeeds
	// once, never twice at a time. nil = Manifests are read. Then no Snapshot is held back, and no
	// endpoint is held.
	Connect   func() (*Cluster, error)
	Manifests ManifestConfig

	// Trial: default/kubernetes is another proxy's. It is not listed, and its node-local API proxies
	// are not probed.
	Trial bool

	// Written reports whether the kernel holds rules of ours. It may take 30 s. Snapshot calls it at
	// most once, and no other method waits for it. nil = it does not.
	Written func() bool

	// Saved is what an earlier process enforced. The zero value = nothing is known of it.
	Saved topology.Snapshot

	// ReconnectGrace is how long endpoints are held at most; 0 = none is.
	ReconnectGrace time.Duration
	// ReportHeld is called when the first endpoints of a wave are held, with them, and with none when
	// none is held any more. It must not block. nil = no call.
	ReportHeld func([]topology.HeldEndpoint)

	// Down is called when a node-local API proxy does not answer any more, or did not from the start.
	// It must not block. nil = no call.
	Down  func(netip.AddrPort, error)
	Probe func(context.Context, netip.AddrPort) error // nil = connect

	Log *slog.Logger // nil = none
}

// Chain is the Source of the daemon. What a Connection or Manifests know passes through the parts
// that are on: Hold, Remembered, Grace and Prober. Two may follow a Chain: one as any Source, and
// one with Second. Its methods are safe for concurrent use, and only Snapshot waits for the kernel.
type Chain struct {
	config        Config
	source        Source
	api           apiServer // the source; nil = it is not an API server
	prober        *Prober   // nil = it is off
	first, second pulse

	making sync.Mutex // held by Snapshot: one is put together at a time

	mu    sync.Mutex
	parts parts
	alarm *time.Timer // for the time at which a part must decide again; nil = no part had to yet
}

// Source keeps a Snapshot current.
type Source interface {
	// Run watches until ctx ends. It returns early only if it cannot continue. An unavailable API
	// server is not such a case.
	Run(ctx context.Context) error

	// Snapshot returns the state of the cluster now. It is false until Services,
	// EndpointSlices and the Nodes that count have all been read once. LastKeys and Host are left to
	// the caller.
	Snapshot() (topology.Snapshot, bool)

	// Changed receives after something in the Snapshot changed; many changes may be one
	// receive.
	Changed() <-chan struct{}

	// Lost returns since when, and why, the source cannot be read; zero = it can be.
	Lost() Loss
}

// apiServer is a Source that is an API server; a Connection is one.
type apiServer interface {
	Source
	// Listed returns what was listed last. It may be ahead of the Snapshot, never behind it.
	Listed() Listed
	// Losses returns the present loss of EndpointSlices, and the last one that has ended.
	Losses() (now Loss, last PastLoss)
	NodeWatches() (units, all int)
}

// parts decide one after the other. They are values: what one decides is another value.
type parts struct {
	hold       Hold
	remembered Remembered
	grace      Grace
}

// Facts are what Hold, Remembered and Grace decide from.
type Facts struct {
	Now      time.Time
	Snapshot *topology.Snapshot // of the source, or of the part before; nil = there is none yet
	Listed   Listed             // what the API server listed last
	Loss     Loss               // of EndpointSlices
	LastLoss PastLoss           // the last Loss that has ended

	// Written reports whether the kernel holds rules of ours. Only its first call takes long.
	Written func() bool
}

// New makes a Chain. It reads the manifests once, or the files of the connection, so that a
// mistake in them is reported before anything else is done. If there is a saved Snapshot,
// missing files of the connection are no error: Run tries again.
func New(c Config) (*Chain, error) {
	if c.Connect == nil {
		manifests := NewManifests(c.Manifests)
		return newChain(c, manifests), manifests.Read()
	}
	connection := NewConnection(c.Connect, c.Log)
	err := connection.Try()
	if !c.Saved.Saved.IsZero() {
		err = nil // Run logs it
	}
	return newChain(c, connection), err
}

func newChain(c Config, source Source) *Chain {
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Written == nil {
		c.Written = func() bool { return false }
	}
	if c.Probe == nil {
		c.Probe = connect
	}
	if c.Down == nil {
		c.Down = func(netip.AddrPort, error) {}
	}
	c.Written = sync.OnceValue(c.Written)
	chain := &Chain{config: c, source: source, first: newPulse(), second: newPulse()}
	var saved *topology.Snapshot
	if !c.Saved.Saved.IsZero() {
		saved = &c.Saved
	}
	chain.parts.remembered = Remembered{saved: saved, from: time.Now().Add(rememberedAfter)}
	if api, is := source.(apiServer); is {
		chain.api = api
		chain.parts.hold = Hold{limit: HoldLimit, nodesOnly: c.Trial, saved: HasAPIServer(c.Saved.Services)}
		chain.parts.grace = Grace{limit: c.ReconnectGrace, saved: saved}
	}
	if !c.Trial {
		chain.prober = newProber(c, chain.send)
	}
	return chain
}

// Run reads the source, and probes, until ctx ends. It fails only if the source does.
func (c *Chain) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var probing sync.WaitGroup
	if c.prober != nil {
		probing.Go(func() { c.prober.keepProbing(ctx) })
	}
	err := forward(ctx, c.source, c.send)
	cancel()
	probing.Wait()
	return err
}

// Changed receives after a change in the source, when a part decides otherwise after some time, and
// when an API proxy begins or ceases to answer.
func (c *Chain) Changed() <-chan struct{} { return c.first }

// Second receives as Changed does, for the other follower.
func (c *Chain) Second() <-chan struct{} { return c.second }

func (c *Chain) send() {
	c.first.send()
	c.second.send()
}

// Snapshot returns what is to be enforced now; false = there is no Snapshot yet. It may wait
// for Written, and the first time for probes.
func (c *Chain) Snapshot() (topology.Snapshot, bool) {
	c.making.Lock()
	defer c.making.Unlock()
	f := c.facts()
	before, after := c.parts, c.parts
	var heldUntil, savedFrom, graceUntil time.Time
	after.hold, f.Snapshot, heldUntil = before.hold.Next(f)
	after.remembered, f.Snapshot, savedFrom = before.remembered.Next(f)
	after.grace, f.Snapshot, graceUntil = before.grace.Next(f)
	c.takeOver(after, earlier(earlier(heldUntil, savedFrom), graceUntil))
	c.report(before, after)
	if f.Snapshot == nil {
		return topology.Snapshot{}, false
	}
	s := *f.Snapshot
	if c.prober != nil {
		s.APIProxies = c.prober.answersFor(s.Slices)
	}
	return s, true
}

func (c *Chain) facts() Facts {
	f := Facts{Written: c.config.Written}
	if s, whole := c.source.Snapshot(); whole {
		f.Snapshot = &s
	}
	if c.api != nil && f.Snapshot != nil {
		f.Listed = c.api.Listed() // after the Snapshot: what it misses is missing here too
		f.Loss, f.LastLoss = c.api.Losses()
	}
	f.Now = time.Now()
	return f
}

// takeOver makes what the parts have decided visible, and signals a change at the time at which
// one of them must decide again; zero = none must.
func (c *Chain) takeOver(after parts, again time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts = after
	if c.alarm != nil {
		c.alarm.Stop()
	}
	if !again.IsZero() {
		c.alarm = time.AfterFunc(time.Until(again), c.send)
	}
}

// report logs what the parts decide otherwise than before, and calls ReportHeld.
func (c *Chain) report(before, after parts) {
	log, saved := c.config.Log, c.config.Saved.Saved
	switch was, is, lacks := before.hold.held, after.hold.held, after.hold.lacks; {
	case is && !was:
		log.Warn("the API server does not list what every cluster has: its storage may be empty or being restored, or it may be another cluster's; "+
			"its list is held back, and the rules stay unchanged", "missing", lacks, "atMost", HoldLimit)
	case was && !is && lacks != "":
		log.Error("the API server still does not list what every cluster has; its list takes effect now", "missing", lacks, "heldFor", HoldLimit)
	case was && !is:
		log.Info("the API server lists what every cluster has again; its list takes effect")
	}
	switch was, is := before.remembered.inUse(), after.remembered.inUse(); {
	case is && !was:
		age := max(time.Since(saved), 0).Round(time.Second) // the clock may be wrong after a boot
		log.Warn("the API server has not been read yet: the saved state is in force until then", "saved", saved, "age", age)
	case was && !is:
		log.Info("the API server has been read; it takes the place of the saved state", "saved", saved)
	}
	if held := after.grace.held; (len(held) == 0) != (len(before.grace.held) == 0) && c.config.ReportHeld != nil {
		c.config.ReportHeld(held)
	}
}

// On tells which parts of a Chain are on.
type On struct{ APIServer, Remembered, Grace, Prober bool }

// On returns which parts are on.
func (c *Chain) On() On {
	return On{
		APIServer: c.api != nil, Remembered: !c.config.Saved.Saved.IsZero(), Prober: c.prober != nil,
		Grace: c.api != nil && c.config.ReconnectGrace > 0,
	}
}

// now returns what the parts have decided last.
func (c *Chain) now() parts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parts
}

// Holding reports whether the Snapshot of the source was held back when it was last asked for.
func (c *Chain) Holding() bool { return c.now().hold.held }

// InUse reports whether the saved Snapshot is in force.
func (c *Chain) InUse() bool { return c.now().remembered.inUse() }

// Held returns the endpoints that are held now.
func (c *Chain) Held() []topology.HeldEndpoint { return c.now().grace.waves.Held(time.Now()) }

// Answers returns the API proxies that are named, each with whether it answers; nil = no
// Prober.
func (c *Chain) Answers() topology.ProbedProxies {
	if c.prober == nil {
		return nil
	}
	return c.prober.Answers()
}

// Lost returns since when, and why, the source cannot be read; zero = it can be.
func (c *Chain) Lost() Loss { return c.source.Lost() }

// NodeWatches counts the running watches for Nodes: for the Nodes of one unit each, and for all
// Nodes. Without an API server there are none.
func (c *Chain) NodeWatches() (units, all int) {
	if c.api == nil {
		return 0, 0
	}
	return c.api.NodeWatches()
}

// earlier returns the earlier of two times; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// forward runs a source to its end, and calls send for each of its changes. The error is Run's.
func forward(ctx context.Context, s Source, send func()) error {
	ctx, cancel := context.WithCancel(ctx)
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.Changed():
				send()
			}
		}
	})
	err := s.Run(ctx)
	cancel()
	forwarding.Wait()
	return err
}

// pulse signals that something has happened at least once since the last receive.
type pulse chan struct{}

func newPulse() pulse { return make(pulse, 1) }

func (p pulse) send() {
	select {
	case p <- struct{}{}:
	default:
	}
}

var _ Source = (*Chain)(nil)
