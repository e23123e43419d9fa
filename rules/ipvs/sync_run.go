package ipvs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/host"

	"golang.org/x/sys/unix"
)

// syncRun is one sync of a Backend: the executor that writes to the kernel.
type syncRun struct {
	backend *Backend
	ctx     context.Context // of the sync, also for rules.Progress
	reading context.Context // rules.Reading
	ruleset rules.Ruleset
	verify  bool
	reads   bool // the kernel is read back

	compiler Compiler // as it was before this sync
	config   Config   // of the split
	compiled Compiled
	refused  map[ServerKey]error // virtual servers that the kernel refused, and why

	changes rules.Changes
	tables  rules.Outcomes  // of the chains
	chains  rules.FamilySet // families whose chains were written
	failed  [2]failures     // of operations, by family
	ended   error           // why no more operations are done: the kernel hangs, or the sync must end
	unset   error           // sysctls that virtual servers need and that cannot be set
}

func (r *syncRun) adopt() error {
	r.tables = r.backend.adopt(r.ctx, r.verify)
	r.reads = r.verify || !r.backend.known
	if r.reads && r.backend.known && r.reading.Err() != nil {
		r.interrupt()
	}
	return nil
}

// ask finds out which schedulers the kernel lacks, and sets the config of the split, with the
// virtual servers that the kernel refused. When the kernel is read, these are tried again, and
// the sysctls are set; an error of them is kept in unset and not returned.
func (r *syncRun) ask() error {
	b := r.backend
	r.config = b.config.Config
	if r.config.Retire {
		return nil
	}
	if r.reads {
		defer r.countVerifyTime()()
		b.schedulers.forget()
		r.unset = b.applySysctls()
	} else {
		r.config.Refused = b.refused
	}
	if err := b.schedulers.look(r.ruleset.Services, b.tryScheduler); err != nil {
		return err
	}
	r.config.Lacks = b.schedulers.lacks
	return nil
}

func (r *syncRun) read() error {
	if !r.reads {
		return nil
	}
	b := r.backend
	var expected *kernelState
	reading := r.ctx
	if b.known {
		expected, reading = &b.planner.observed, r.reading
	}
	defer r.countVerifyTime()()
	fresh, err := b.kernel.observe(reading, expected)
	if err != nil && b.known && rules.Interrupted(reading) {
		r.interrupt()
		return nil
	}
	if err != nil {
		return fmt.Errorf("reading the kernel back: %w", err)
	}
	last := b.planner.observed
	b.planner.setObserved(fresh)
	if b.known {
		b.otherWrites = findOtherWrites(last, fresh, b.planner.isForeign)
		r.countRepairs(b.planner.grow(limits{}))
	}
	r.changes.Verified = true
	return nil
}

// countVerifyTime returns a func that adds to VerifyTime the processor time since this call.
func (r *syncRun) countVerifyTime() func() {
	before := host.ProcessorTime()
	return func() { r.changes.VerifyTime += host.ProcessorTime() - before }
}

// interrupt makes this a sync that does not read: what the planner knows of the kernel stays, and
// what the kernel refused is not tried again.
func (r *syncRun) interrupt() {
	r.reads = false
	r.changes.Interrupted = true
	if !r.config.Retire {
		r.config.Refused = r.backend.refused
	}
}

func (r *syncRun) create() error {
	if !r.reads || r.config.Retire {
		return nil
	}
	b := r.backend
	for _, f := range b.config.Families {
		if err := b.kernel.ensureSets(f, b.planner.observed.Sets); err != nil {
			r.failed[f].add(err)
		}
	}
	if err := b.kernel.ensureLink(); err != nil {
		return err
	}
	b.planner.observed.Link = true
	return nil
}

// split compiles the Ruleset without the virtual servers that the kernel refused, and gives the
// result to the planner. It starts from the compiler as it was before this sync, so that the
// chains of virtual servers that are refused again and again keep their pointers.
func (r *syncRun) split() error {
	b := r.backend
	if len(r.refused) > 0 {
		b.warnRefused(r.refused)
		r.config.Refused = slices.AppendSeq(slices.Clone(r.config.Refused), maps.Keys(r.refused))
		slices.SortFunc(r.config.Refused, compareServers)
	}
	b.refused = r.config.Refused
	b.compiler = r.compiler
	r.compiled = b.compiler.Compile(r.ruleset, r.config)
	b.planner.setDesired(r.compiled)
	return nil
}

func (r *syncRun) changeSources() error {
	r.backend.changeSources(r.ruleset.HostAddrs)
	return nil
}

func (r *syncRun) writeChains() error {
	c, err := r.backend.config.Tables.Sync(r.ctx, r.compiled.Residual, r.verify)
	r.tables = r.tables.Join(c.Families.With(err))
	for f, o := range r.tables {
		r.chains[f] = o.Err == nil
	}
	r.changes.Chains += c.Chains
	r.changes.Rules += c.Rules
	r.changes.Repaired += c.Repaired
	r.changes.Unguarded = c.Unguarded
	r.changes.Interrupted = r.changes.Interrupted || c.Interrupted
	r.changes.VerifyTime += c.VerifyTime
	r.changes.Verified = r.changes.Verified && c.Verified
	return nil
}

func (r *syncRun) countConnections() error {
	b := r.backend
	b.planner.connections = nil
	if len(b.planner.drains) == 0 || b.kernel.servers == nil {
		return nil
	}
	var err error
	b.planner.connections, err = b.kernel.countConnections(b.planner.drains)
	return err
}

// discard destroys the sets that only kube-proxy has, if the kernel was read. With Retire it
// removes everything, once nothing of ours serves any more.
func (r *syncRun) discard() error {
	b := r.backend
	if b.config.Retire {
		if !b.planner.empty() {
			return nil
		}
		err := b.remove()
		b.retired = err == nil
		return err
	}
	if !r.reads {
		return nil
	}
	return b.destroySets(func(s knownSet) bool { return s.kind == "" })
}

// do carries out operations and tells the planner which succeeded. It goes on after one that
// fails, and keeps its error: in refused if movable allows it, else in failed. Once the kernel
// does not answer or ctx ends, it does nothing more: see ended.
func (r *syncRun) do(ops []operation, movable bool) {
	b := r.backend
	for _, op := range ops {
		if r.ended == nil {
			r.ended = context.Cause(r.ctx)
		}
		if r.ended != nil {
			return
		}
		if _, refused := r.refused[op.Destination.Server]; movable && refused || b.planner.skip(op) {
			continue
		}
		switch err := b.kernel.do(op); {
		case errors.Is(err, errForeign):
			r.do(b.planner.conflict(op.Destination.Server), movable)
		case hangs(err):
			r.ended = err
		case err == nil:
			b.planner.done(op)
			r.count(op)
			rules.Progress(r.ctx)
		case !movable || !r.refuse(op, err):
			r.failed[op.family()].add(err)
		}
	}
}

// refuse notes in refused the virtual servers that cannot exist because the kernel refused an
// operation, and reports whether there are any. It returns false, too, if the kernel lacks
// something that it was expected to hold, and must be read.
func (r *syncRun) refuse(op operation, err error) bool {
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.ENODEV) || op.Kind == addEntry && errors.Is(err, unix.ENOENT) {
		return false
	}
	needing := r.backend.planner.needing(op)
	for _, key := range needing {
		if r.refused == nil {
			r.refused = map[ServerKey]error{}
		}
		r.refused[key] = err
	}
	return len(needing) > 0
}

func (r *syncRun) limits() limits {
	return limits{now: r.backend.now(), drain: r.backend.config.DrainTimeout, noDrain: r.backend.degraded}
}

func (r *syncRun) refusing() rules.FamilySet {
	return rules.FamilySet{len(r.refused) > 0, len(r.refused) > 0}
}

func (r *syncRun) chainsWritten() rules.FamilySet { return r.chains }

func (r *syncRun) synced() rules.FamilySet {
	clean := r.outcomes(nil).Err() == nil
	return rules.FamilySet{clean, clean}
}

// outcomes returns the outcomes of the whole sync. err is an error of both families.
func (r *syncRun) outcomes(err error) rules.Outcomes {
	all := r.tables
	for f := range all {
		if failed := errors.Join(r.failed[f].err(), all[f].Err, r.ended, r.unset, err); failed != nil {
			all[f] = rules.Outcome{Err: failed}
		}
	}
	return all
}

// err returns the errors of operations, and why the sync ended early; nil = nothing failed.
func (r *syncRun) err() error { return errors.Join(r.failed[0].err(), r.failed[1].err(), r.ended) }

// failures are what operations of one family failed with.
type failures struct {
	errs  []error // the first of them
	count int
}

func (f *failures) add(err error) {
	f.count++
	if len(f.errs) < errorsMax {
		f.errs = append(f.errs, err)
	}
}

// err returns the first errors and how many more there are; nil = nothing failed.
func (f *failures) err() error {
	errs := f.errs
	if more := f.count - len(errs); more > 0 {
		errs = append(errs[:len(errs):len(errs)], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}

func (r *syncRun) count(op operation) {
	switch op.Kind {
	case addServer, updateServer, deleteServer:
		r.changes.Chains++
	case addDestination, updateDestination, deleteDestination:
		r.changes.Rules++
	}
}

// countRepairs adds to Repaired the number of objects that operations repair, after we had
// written them. Real servers count with their virtual server.
func (r *syncRun) countRepairs(ops []operation) {
	repaired := map[any]struct{}{}
	for _, op := range ops {
		switch op.Kind {
		case addAddress, deleteAddress:
			repaired[op.Addr] = struct{}{}
		case addEntry, deleteEntry:
			repaired[op.Entry] = struct{}{}
		default:
			repaired[op.Destination.Server] = struct{}{}
		}
	}
	r.changes.Repaired += len(repaired)
}
