package ipvs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/netfilter"
)

// drainTick is in what time a Backend asks to be called again while destinations drain.
const drainTick = 5 * time.Second

// BackendConfig is how a Backend is to write.
type BackendConfig struct {
	Config
	// Tables writes what virtual servers cannot say, as chains of IPVS mode unless Retire is set. The
	// families that it can write are the ones in use. chains.go says what it may do beside that.
	Tables       rules.Backend
	DrainTimeout time.Duration // how long a destination that is not wanted any more keeps its connections
	StrictARP    bool          // see host.Machine.ApplyIPVS
	Timeouts     Timeouts
	Log          *slog.Logger

	now func() time.Time // for tests; nil = time.Now
}

// Timeouts are those of ipvsadm(8), --set, in whole seconds; 0 = as the kernel has it.
type Timeouts struct{ TCP, TCPFin, UDP time.Duration }

// BackendStatus is what a Backend holds after its last Sync.
type BackendStatus struct {
	Status
	// Degraded says that this kernel would give new connections to destinations that drain.
	// Those out of the unit are deleted at once instead, with their connections.
	Degraded bool
	Messages Messages // sent since New
	Lacks    []string // schedulers that Services ask for and the kernel does not have; sorted
	Refused  int      // virtual servers that the kernel did not take, so that chains take their place
}

// Backend keeps the virtual servers, the link, the sets and the chains of the calling
// thread's network namespace equal to a Ruleset. It implements rules.Backend. One goroutine
// uses it.
type Backend struct {
	config     BackendConfig
	kernel     *kernel
	compiler   Compiler
	planner    Planner
	schedulers schedulers
	refused    []ServerKey    // sorted
	unusable   rules.Outcomes // of the last adopt
	known      bool           // the planner knows what the kernel holds
	retired    bool           // there is nothing left to retire
	degraded   bool
	told       map[string]struct{} // warnings that are not to be repeated
	others     rules.OtherWrites   // see OtherWrites
}

// New probes the kernel, and sets the sysctls and timeouts of IPVS. An error names all that
// is missing. With Retire nothing is probed and nothing is set: New then works on kernels
// without IPVS too.
func New(ctx context.Context, c BackendConfig) (*Backend, error) {
	c = c.complete()
	b := &Backend{config: c, planner: Planner{Exclude: c.Exclude}, told: map[string]struct{}{}}
	if !c.Retire {
		host.LoadModule(ctx, "ip_vs", procServers) // the one module that the kernel does not load by itself
	}
	var err error
	if b.kernel, err = openKernel(); err != nil {
		return nil, err
	}
	if c.Retire {
		return b, nil
	}
	if err := b.prepare(ctx); err != nil {
		b.kernel.close()
		return nil, err
	}
	return b, nil
}

// complete is c with everything said that may be left out.
func (c BackendConfig) complete() BackendConfig {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = time.Now
	}
	c.Scheduler = cmp.Or(c.Scheduler, DefaultScheduler)
	if t, ok := c.Tables.(familyLister); ok {
		c.Families = append([]netfilter.Family{}, t.Families()...) // never nil, which would be both
	} else if len(c.Families) == 0 {
		c.Families = []netfilter.Family{netfilter.IPv4, netfilter.IPv6}
	}
	return c
}

// prepare is what New does to the kernel. Families that cannot be probed because another program
// holds the xtables lock are left to adopt.
func (b *Backend) prepare(ctx context.Context) error {
	if err := checkScheduler(b.config.Scheduler); err != nil {
		return err
	}
	err := b.probe(ctx, b.config.Families...)
	if errors.Is(err, errLocked) {
		b.config.Log.Warn("the kernel is probed again with the next syncs", "err", err)
		b.config.Families, err = []netfilter.Family{}, nil // nil would be both
	}
	if err != nil {
		return err
	}
	if err := b.applySysctls(); err != nil {
		return err
	}
	if err := b.kernel.setTimeouts(b.config.Timeouts); err != nil {
		b.config.Log.Warn("the timeouts of IPVS stay as they are", "err", err)
	}
	return nil
}

// applySysctls is repeated when the kernel is verified: others may set them too.
func (b *Backend) applySysctls() error {
	settings, err := host.Machine{Log: b.config.Log}.ApplyIPVS(b.config.StrictARP)
	if err != nil {
		return fmt.Errorf("setting what virtual servers need: %w", err)
	}
	for _, w := range settings.Warnings {
		b.warnOnce(w.Error())
	}
	b.degraded = !settings.Quiet
	if b.degraded {
		b.warnOnce("an endpoint that leaves the unit is deleted at once, with its open connections, because this kernel would go on giving it new ones")
	}
	return nil
}

// warnOnce logs a message the first time.
func (b *Backend) warnOnce(message string, args ...any) {
	key := message + fmt.Sprint(args...)
	if _, told := b.told[key]; told {
		return
	}
	b.told[key] = struct{}{}
	b.config.Log.Warn(message, args...)
}

// Sync makes the kernel equal to want; see rules.Backend. It adds, then it writes the
// chains, then it deletes: at no moment does a Service have neither. Only what leaves a
// virtual server that stays does not wait for the chains. Of a family whose chains could not
// be written nothing else is deleted. What one Service or family fails at does not stop the others.
// After an error of virtual servers the next Sync reads the kernel back first.
func (b *Backend) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	b.others = rules.OtherWrites{}
	if b.retired {
		return b.config.Tables.Sync(ctx, want, verify)
	}
	return b.sync(ctx, want, verify)
}

func (b *Backend) sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	t := turn{backend: b, ctx: ctx, chains: b.adopt(ctx, verify)}
	read, known := verify || !b.known, false
	defer func() { b.known = known }()
	config, err := b.configure(&t, want, read)
	if err != nil {
		return rules.Changes{}, err
	}
	if read {
		if err := b.read(&t); err != nil {
			return rules.Changes{}, err
		}
	}
	var compiled Compiled
	err = b.planner.carryOut(b.config.now, Limits{Drain: b.config.DrainTimeout, NoDrain: b.degraded}, steps{
		grow: func() {
			compiled = b.grow(&t, want, config)
			b.warnConflicts()
			b.leaveFromElsewhere(want.HostAddrs)
		},
		run: t.run,
		chains: func() held {
			chains, err := b.config.Tables.Sync(ctx, compiled.Residual, verify)
			t.count(chains, err)
			return heldOf(t.chains)
		},
		connections: b.connections,
	})
	if b.planner.Status().Draining > 0 {
		t.changes.Again = drainTick
	}
	known = err == nil && t.err() == nil // what chains failed at is for Tables to know
	t.changes.Families = t.outcomes(err)
	if err := t.changes.Families.Err(); err != nil {
		return t.changes, err
	}
	err = b.discard(read)
	known = known && err == nil
	return t.changes, err
}

func (b *Backend) warnConflicts() {
	for _, key := range b.planner.Conflicts() {
		b.warnOnce("a virtual server is there already that is not known as ours; it is left alone, and the Service that needs one there is not served: "+
			"let its owner give it up or, if it is a leftover of gridproxy, delete it",
			"server", key.String(), "delete", "ipvsadm -D "+protoFlag(key.Proto)+" "+key.Addr.String())
	}
}

// configure finds out how want is to be split: which of its schedulers the kernel has, and which virtual
// servers it did not take. What it did not is tried again whenever the kernel is read.
func (b *Backend) configure(t *turn, want rules.Ruleset, read bool) (Config, error) {
	c := b.config.Config
	if c.Retire {
		return c, nil
	}
	if read {
		b.schedulers.forget()
		t.unset = b.applySysctls()
	} else {
		c.Refused = b.refused
	}
	if err := b.schedulers.look(want.Services, b.tryScheduler); err != nil {
		return Config{}, err
	}
	c.Lacks = b.schedulers.lacks
	return c, nil
}

// grow splits want and adds what is missing. Virtual servers that the kernel does not take go to
// the chains: it splits once more.
func (b *Backend) grow(t *turn, want rules.Ruleset, c Config) Compiled {
	before := b.compiler // so that the chains of what is refused time and again keep their pointers
	compiled := b.compiler.Compile(want, c)
	b.planner.Want(compiled)
	refused := t.grow(b.planner.Grow())
	if len(refused) > 0 {
		b.warnRefused(refused)
		c.Refused = slices.AppendSeq(slices.Clone(c.Refused), maps.Keys(refused))
		slices.SortFunc(c.Refused, compareServers)
		b.compiler = before
		compiled = b.compiler.Compile(want, c)
		b.planner.Want(compiled)
		t.run(b.planner.Grow())
	}
	b.refused = c.Refused
	return compiled
}

func (b *Backend) warnRefused(refused map[ServerKey]error) {
	for i, key := range sorted(maps.Keys(refused), compareServers) {
		if i == mostErrors {
			b.warnOnce("the kernel refuses more virtual servers; chains of iptables serve them instead", "count", len(refused)-i)
			return
		}
		b.warnOnce("the kernel refuses a virtual server; chains of iptables serve its address and port instead, and it is tried again from time to time",
			"server", key.String(), "err", refused[key])
	}
}

func (b *Backend) tryScheduler(name string) error {
	if len(b.config.Families) == 0 {
		return nil // there is no virtual server that asks for it
	}
	return b.kernel.tryScheduler(b.config.Families[0], name)
}

// read reads the kernel back and makes what everything else needs: the sets and the link.
func (b *Backend) read(t *turn) error {
	var believed *Observed
	if b.known {
		believed = b.planner.Has()
	}
	fresh, err := b.kernel.observe(believed)
	if err != nil {
		return fmt.Errorf("reading the kernel back: %w", err)
	}
	if !b.config.Retire {
		for _, f := range b.config.Families {
			if err := b.kernel.ensureSets(f, fresh.Sets); err != nil {
				t.fail(f, err)
			}
		}
		if err := b.kernel.ensureLink(); err != nil {
			return err
		}
		fresh.Link = true
	}
	var before Observed
	if b.known {
		before = *believed // which Read replaces
	}
	b.planner.Read(fresh)
	if b.known {
		b.others = otherWrites(before, fresh, b.planner.isForeign)
		t.repairs(b.planner.Grow())
	}
	t.changes.Verified = true
	return nil
}

// connections counts those of the destinations for which it matters.
func (b *Backend) connections() (map[DestinationKey]int, error) {
	counting := b.planner.Counting()
	if len(counting) == 0 || b.kernel.servers == nil {
		return nil, nil
	}
	return b.kernel.countConnections(counting)
}

// discard destroys the sets that only kube-proxy had, once no rule names them, and at the
// end of Retire everything.
func (b *Backend) discard(read bool) error {
	if b.config.Retire {
		if !b.planner.Empty() {
			return nil
		}
		err := b.remove()
		b.retired = err == nil
		return err
	}
	if !read {
		return nil
	}
	for _, s := range ourSets() {
		if _, found := b.planner.Has().Sets[s.name]; found && s.kind == "" {
			if err := b.destroy(s.name); err != nil {
				return err
			}
		}
	}
	return nil
}

// destroy destroys a set, unless a rule of somebody else names it.
func (b *Backend) destroy(name string) error {
	inUse, err := b.kernel.destroySet(name)
	if inUse {
		b.warnOnce("an ipset of ours stays, because a rule of somebody else names it", "set", name)
	}
	return err
}

// Status is for metrics.
func (b *Backend) Status() BackendStatus {
	return BackendStatus{
		Status:   b.planner.Status(),
		Degraded: b.degraded,
		Messages: b.kernel.sent,
		Lacks:    b.schedulers.lacks,
		Refused:  len(b.refused),
	}
}
