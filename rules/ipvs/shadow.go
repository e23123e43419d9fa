package ipvs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// Shadow compares what the calling thread's network namespace holds beside iptables with a Ruleset,
// and writes nothing. It implements rules.Backend. One goroutine uses it, always in the same
// network namespace.
type Shadow struct {
	config      BackendConfig
	kernel      *kernel
	compiler    Compiler
	differences []Difference
}

// Difference is one Part of one family that the kernel does not hold as desired, in lines.
type Difference struct {
	Part            string // its Name
	Family          netfilter.Family
	Kernel, Desired []string
	services        []string
}

// WriteTo writes the difference as a unified diff from what the kernel holds to what is desired.
func (d Difference) WriteTo(w io.Writer) (int64, error) {
	return netfilter.WriteUnified(w, d.Family.String()+"/"+d.Part, d.Kernel, d.Desired)
}

// Services returns those whose virtual servers differ, sorted, as NAMESPACE/NAME. The Service
// of a surplus virtual server is unknown.
func (d Difference) Services() []string { return d.services }

// NewShadow opens the kernel. Its Tables are a shadow too. It does not find out which schedulers
// the kernel lacks. With Retire it works on kernels without IPVS too.
func NewShadow(c BackendConfig) (*Shadow, error) {
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	return &Shadow{config: c.complete(), kernel: k}, nil
}

// Sync compares. Differences has the result, and that of its Tables the rest. If the kernel cannot
// be read, the result of the last Sync stays.
func (s *Shadow) Sync(ctx context.Context, desired rules.Ruleset, verify bool) (rules.Changes, error) {
	r := shadowRun{shadow: s, ctx: ctx, ruleset: desired, verify: verify, planner: planner{exclude: s.config.Exclude}}
	_ = runPhases(&r.planner, &r) // no call fails
	if r.err == nil {
		s.differences = r.compare()
	}
	r.changes.Verified = r.changes.Verified && r.err == nil
	r.changes.Families = r.changes.Families.With(r.errTables).Join(rules.Outcomes{}.With(r.err))
	return r.changes, errors.Join(r.err, r.errTables)
}

// Cleanup does nothing: nothing was written.
func (s *Shadow) Cleanup(context.Context) error { return nil }

// Differences returns what the last Sync found, without the differences of its Tables.
func (s *Shadow) Differences() []Difference { return s.differences }

// Families returns the address families that are compared.
func (s *Shadow) Families() []netfilter.Family { return s.config.Families }

// shadowRun is one sync of a Shadow: the executor that writes only to its planner. What the planner
// holds in the end is what a Backend would leave in the kernel. Servers of other programs stay.
type shadowRun struct {
	shadow  *Shadow
	ctx     context.Context
	ruleset rules.Ruleset
	verify  bool

	planner   planner
	fresh     kernelState // as it was read
	compiled  Compiled
	changes   rules.Changes
	err       error // of reading
	errTables error
}

func (r *shadowRun) adopt() error {
	if families, ok := r.shadow.config.openFamilies(r.ctx, r.verify); ok {
		r.shadow.config.Families = families
	}
	return nil
}

// read reads the kernel for the planner. It looks for IPVS each time, because its module may be
// loaded at any time. An error is kept in err and not returned.
func (r *shadowRun) read() error {
	if r.err = r.shadow.kernel.openServers(); r.err == nil {
		r.fresh, r.err = r.shadow.kernel.observe(r.ctx, nil)
	}
	if r.err == nil {
		r.observe()
	} else {
		r.err = fmt.Errorf("reading virtual servers: %w", r.err)
	}
	return nil // the chains are compared also after a failure
}

// observe gives the planner a copy of what was read.
func (r *shadowRun) observe() {
	copied := r.fresh
	copied.State = cloned(r.fresh.State)
	r.planner.setObserved(copied)
}

func (r *shadowRun) split() error {
	r.compiled = r.shadow.compiler.Compile(r.ruleset, r.shadow.config.Config)
	r.planner.setDesired(r.compiled)
	return nil
}

func (r *shadowRun) writeChains() error {
	r.changes, r.errTables = r.shadow.config.Tables.Sync(r.ctx, r.compiled.Residual, r.verify)
	return nil
}

func (r *shadowRun) ask() error              { return nil }
func (r *shadowRun) create() error           { return nil }
func (r *shadowRun) changeSources() error    { return nil }
func (r *shadowRun) countConnections() error { return nil }
func (r *shadowRun) discard() error          { return nil } // compare takes it into account

func (r *shadowRun) do(ops []operation, _ bool) {
	for _, op := range ops {
		if !r.planner.skip(op) {
			r.planner.done(op)
		}
	}
}

// limits returns limits under which nothing drains.
func (r *shadowRun) limits() limits { return limits{noDrain: true} }

func (r *shadowRun) refusing() rules.FamilySet      { return rules.FamilySet{} }
func (r *shadowRun) chainsWritten() rules.FamilySet { return rules.FamilySet{true, true} }
func (r *shadowRun) synced() rules.FamilySet        { return rules.FamilySet{true, true} }

// compare finds the parts that differ. A real server that drains counts as gone.
func (r *shadowRun) compare() []Difference {
	after, now := r.planner.observed.State, cloned(r.fresh.State)
	maps.DeleteFunc(now.Destinations, func(key DestinationKey, d Destination) bool {
		return d.Weight == 0 && !has(after.Destinations, key)
	})
	have, desired := kernelState{State: now, Sets: r.fresh.Sets, Link: r.fresh.Link}, withEverySet(after)
	if r.shadow.config.Retire {
		desired = kernelState{State: after}
	}
	var all []Difference
	for _, f := range r.shadow.config.Families {
		for _, part := range Parts() {
			d := Difference{Part: part.Name, Family: f, Kernel: part.lines(have, f), Desired: part.lines(desired, f)}
			if slices.Equal(d.Kernel, d.Desired) {
				continue
			}
			if d.Part == partServers {
				d.services = differingServices(r.compiled.plans, now, after)
			}
			all = append(all, d)
		}
	}
	return all
}

func (p Part) lines(s kernelState, f netfilter.Family) []string {
	var text bytes.Buffer
	_ = p.write(&text, s, f) // a buffer takes everything
	return slices.DeleteFunc(strings.Split(text.String(), "\n"), func(line string) bool { return line == "" })
}

// differingServices returns the Services with a desired virtual server that differs between two
// States, sorted, as NAMESPACE/NAME.
func differingServices(plans []*servicePlan, now, after State) []string {
	different := map[ServerKey]struct{}{}
	for _, pair := range [][2]State{{now, after}, {after, now}} {
		for key := range missing(nil, pair[0].Servers, pair[1].Servers, sameServer) {
			different[key] = struct{}{}
		}
		same := func(_ DestinationKey, a, b Destination) bool { return a == b }
		for key := range missing(nil, pair[0].Destinations, pair[1].Destinations, same) {
			different[key.Server] = struct{}{}
		}
	}
	names := map[string]struct{}{}
	for _, p := range plans {
		for _, slot := range p.slots {
			if slot.set != "" && has(different, slot.key) {
				names[p.service.Name.NamespacedName.String()] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func cloned(s State) State {
	return State{
		Servers: maps.Clone(s.Servers), Destinations: maps.Clone(s.Destinations),
		Addresses: maps.Clone(s.Addresses), Entries: maps.Clone(s.Entries),
	}
}
