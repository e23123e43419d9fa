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

// BackendConfig is how a Backend writes.
type BackendConfig struct {
	Config
	// Tables writes what virtual servers cannot express, as chains of IPVS mode unless Retire is
	// set. The families that it can write are the ones in use. families.go says what else it may
	// offer.
	Tables       rules.Backend
	DrainTimeout time.Duration // how long a surplus real server keeps its connections
	StrictARP    bool          // see host.Machine.ApplyIPVS
	Timeouts     Timeouts
	Log          *slog.Logger
	Removal      *rules.Removal // what Cleanup counts; nil = it counts nothing
}

// Timeouts are those of ipvsadm(8), --set, in whole seconds; 0 = the kernel's.
type Timeouts struct{ TCP, TCPFin, UDP time.Duration }

// Status is what a Backend holds after its last Sync.
type Status struct {
	Servers      int // ours
	Destinations int // of ours
	Draining     int // of Destinations
	Conflicts    int // desired virtual servers that are left to another program

	// Degraded says that this kernel gives new connections to real servers that drain. Those out
	// of the unit are deleted at once instead, with their connections.
	Degraded bool
	Messages Messages // sent since New
	Lacks    []string // schedulers that Services ask for and the kernel lacks; sorted
	Refused  int      // virtual servers that the kernel refused, so that chains take their place
}

// Backend keeps the virtual servers, the link, the sets and the chains of the calling thread's
// network namespace equal to a Ruleset. It implements rules.Backend. One goroutine uses it.
type Backend struct {
	config     BackendConfig
	kernel     *kernel
	compiler   Compiler
	planner    planner
	schedulers probedSchedulers
	refused    []ServerKey      // by the kernel; sorted
	unusable   rules.Outcomes   // of the last adopt
	now        func() time.Time // the clock of drains

	known       bool // the planner knows what the kernel holds
	retired     bool // nothing is left to retire
	degraded    bool
	warned      map[string]struct{} // messages that are not repeated
	otherWrites rules.OtherWrites   // see OtherWrites
}

// New probes the kernel, and sets the sysctls and timeouts of IPVS. An error names everything that
// is missing. With Retire it probes and sets nothing: New then works on kernels without IPVS too.
func New(ctx context.Context, c BackendConfig) (*Backend, error) {
	c = c.complete()
	b := &Backend{config: c, planner: planner{exclude: c.Exclude}, now: time.Now, warned: map[string]struct{}{}}
	if !c.Retire {
		host.LoadModule(ctx, "ip_vs", procServers) // the one module that the kernel does not load automatically
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

func (c BackendConfig) complete() BackendConfig {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Scheduler = cmp.Or(c.Scheduler, DefaultScheduler)
	if t, ok := c.Tables.(familyOpener); ok {
		c.Families = append([]netfilter.Family{}, t.Families()...) // never nil, which would be both
	} else if len(c.Families) == 0 {
		c.Families = []netfilter.Family{netfilter.IPv4, netfilter.IPv6}
	}
	return c
}

// prepare probes the kernel for New, and sets its sysctls and timeouts. If another program
// holds the xtables lock, it leaves all families to adopt, without an error. Timeouts that
// cannot be set are only logged.
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

// applySysctls sets the sysctls of virtual servers, and degraded. Only one without which they
// do not work is an error; others are logged. Each verify repeats it: other programs may set
// them too.
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

func (b *Backend) warnOnce(message string, args ...any) {
	key := message + fmt.Sprint(args...)
	if _, warned := b.warned[key]; warned {
		return
	}
	b.warned[key] = struct{}{}
	b.config.Log.Warn(message, args...)
}

// Sync makes the kernel equal to desired; see rules.Backend, and phases for the order. A failure of
// one Service or family does not stop the others. After a failure of virtual servers the next Sync
// reads the kernel back first.
func (b *Backend) Sync(ctx context.Context, desired rules.Ruleset, verify bool) (rules.Changes, error) {
	b.otherWrites = rules.OtherWrites{}
	if b.retired {
		return b.config.Tables.Sync(ctx, desired, verify)
	}
	reading, end := rules.Reading(ctx)
	defer end()
	r := syncRun{backend: b, ctx: ctx, reading: reading, ruleset: desired, verify: verify, compiler: b.compiler}
	err := runPhases(&b.planner, &r)
	b.known = err == nil && r.err() == nil // a failure of the chains is for Tables to remember
	if err != nil {                        // the rest of the run did not take place
		r.changes.Verified, r.changes.Repaired = false, 0
	}
	b.warnConflicts()
	if err == nil && b.planner.status().Draining > 0 {
		r.changes.Again = drainPeriod
	}
	if r.changes.Families = r.outcomes(nil); r.changes.Families.Err() == nil {
		return r.changes, err // an error that no family reports is one of both: see rules.Changes
	}
	r.changes.Families = r.outcomes(err)
	return r.changes, r.changes.Families.Err()
}

func (b *Backend) warnConflicts() {
	for _, key := range b.planner.conflicts() {
		b.warnOnce("another program has a virtual server where a Service needs one; it is left alone, and the Service is not served there: "+
			"have its owner delete it or, if it is a leftover of gridproxy, delete it yourself",
			"server", key.String(), "delete", "ipvsadm -D "+protoFlag(key.Proto)+" "+key.Addr.String())
	}
}

func (b *Backend) warnRefused(refused map[ServerKey]error) {
	for i, key := range slices.SortedFunc(maps.Keys(refused), compareServers) {
		if i == errorsMax {
			b.warnOnce("the kernel refuses more virtual servers; chains of iptables serve them instead", "count", len(refused)-i)
			return
		}
		b.warnOnce("the kernel refuses a virtual server; chains of iptables serve its address and port instead, and it is tried again with each verify",
			"server", key.String(), "err", refused[key])
	}
}

// destroySets destroys those sets of ours or of kube-proxy's that were observed and that are
// chosen, and counts them in Removal. One that a rule of another program names stays, with a
// warning.
func (b *Backend) destroySets(chosen func(knownSet) bool) error {
	var errs []error
	for _, s := range knownSets() {
		if _, found := b.planner.observed.Sets[s.name]; !found || !chosen(s) {
			continue
		}
		inUse, err := b.kernel.destroySet(s.name)
		if err == nil && !inUse {
			b.config.Removal.Add(whereOf(s.family), "ipsets", 1)
		}
		if inUse {
			b.warnOnce("an ipset of ours stays, because a rule of another program names it", "set", s.name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Status returns what the Backend holds after the last Sync, for metrics.
func (b *Backend) Status() Status {
	s := b.planner.status()
	s.Degraded, s.Messages, s.Lacks, s.Refused = b.degraded, b.kernel.sent, b.schedulers.lacks, len(b.refused)
	return s
}
