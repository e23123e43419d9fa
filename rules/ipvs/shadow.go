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
	"time"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// Shadow compares what the calling thread's network namespace holds beside iptables with a
// Ruleset, and writes nothing. It implements rules.Backend. One goroutine uses it, for good on
// one network namespace.
type Shadow struct {
	config      BackendConfig
	kernel      *kernel
	compiler    Compiler
	differences []Difference
}

// Difference is one Part of one family that is not as it is wanted, as it is written, line by
// line.
type Difference struct {
	Part            string // its Name
	Family          netfilter.Family
	Kernel, Desired []string
	services        []string
}

// WriteTo writes the difference as a unified diff from what the kernel holds to what is wanted.
func (d Difference) WriteTo(w io.Writer) (int64, error) {
	return netfilter.WriteUnified(w, d.Family.String()+"/"+d.Part, d.Kernel, d.Desired)
}

// Services are those whose virtual servers differ, sorted, as NAMESPACE/NAME. Whose a virtual
// server was that is not wanted any more, nobody knows.
func (d Difference) Services() []string { return d.services }

// NewShadow opens the kernel. Its Tables are a shadow too. A scheduler that the kernel lacks is
// not found out. With Retire it works on kernels without IPVS too.
func NewShadow(c BackendConfig) (*Shadow, error) {
	k, err := openKernel()
	if err != nil {
		return nil, err
	}
	return &Shadow{config: c.complete(), kernel: k}, nil
}

// Sync compares; Differences tells what came of it, and its Tables what came of theirs. What cannot
// be read leaves what was found last. IPVS may come at any time: it is looked for each time.
func (s *Shadow) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	if tables, ok := s.config.Tables.(familyLister); ok {
		if o, ok := tables.(opener); ok {
			o.Open(ctx, verify)
		}
		s.config.Families = append([]netfilter.Family{}, tables.Families()...) // never nil, which would be both
	}
	var fresh Observed
	err := s.kernel.openServers()
	if err == nil {
		fresh, err = s.kernel.observe(nil)
	}
	if err != nil {
		err = fmt.Errorf("reading virtual servers: %w", err)
	}
	compiled := s.compiler.Compile(want, s.config.Config)
	if err == nil {
		s.differences = compareParts(fresh, compiled, s.config)
	}
	changes, tablesErr := s.config.Tables.Sync(ctx, compiled.Residual, verify)
	changes.Verified = changes.Verified && err == nil
	changes.Families = changes.Families.With(tablesErr).Join(rules.Outcomes{}.With(err))
	return changes, errors.Join(err, tablesErr)
}

// Cleanup does nothing: nothing was written.
func (s *Shadow) Cleanup(context.Context) error { return nil }

// Differences are what the last Sync found, but for those of its Tables.
func (s *Shadow) Differences() []Difference { return s.differences }

// Families are those that are compared.
func (s *Shadow) Families() []netfilter.Family { return s.config.Families }

// outcome is what a kernel would hold in the end. Virtual servers of others stay.
func outcome(fresh Observed, c Compiled, config BackendConfig) State {
	p := Planner{Exclude: config.Exclude}
	fresh.State = cloned(fresh.State)
	p.Read(fresh)
	run := func(ops []Op) {
		for _, op := range ops {
			if !p.Skip(op) {
				p.Done(op)
			}
		}
	}
	_ = p.carryOut(func() time.Time { return time.Time{} }, Limits{NoDrain: true}, steps{ // no step fails
		grow:        func() { p.Want(c); run(p.Grow()) },
		run:         run,
		chains:      func() held { return held{} },
		connections: func() (map[DestinationKey]int, error) { return nil, nil },
	})
	return p.Has().State
}

func cloned(s State) State {
	return State{
		Servers: maps.Clone(s.Servers), Destinations: maps.Clone(s.Destinations),
		Addresses: maps.Clone(s.Addresses), Entries: maps.Clone(s.Entries),
	}
}

// compareParts are the parts that differ. A destination that drains is as good as gone.
func compareParts(fresh Observed, c Compiled, config BackendConfig) []Difference {
	after, now := outcome(fresh, c, config), cloned(fresh.State)
	maps.DeleteFunc(now.Destinations, func(key DestinationKey, d Destination) bool {
		_, stays := after.Destinations[key]
		return d.Weight == 0 && !stays
	})
	have, desired := Observed{State: now, Sets: fresh.Sets, Link: fresh.Link}, whole(after)
	if config.Retire {
		desired = Observed{State: after}
	}
	var all []Difference
	for _, f := range config.Families {
		for _, part := range Parts() {
			d := Difference{Part: part.Name, Family: f, Kernel: part.lines(have, f), Desired: part.lines(desired, f)}
			if slices.Equal(d.Kernel, d.Desired) {
				continue
			}
			if d.Part == partServers {
				d.services = servicesOf(c.Pieces, now, after)
			}
			all = append(all, d)
		}
	}
	return all
}

func (p Part) lines(o Observed, f netfilter.Family) []string {
	var text bytes.Buffer
	_ = p.write(&text, o, f) // a buffer takes everything
	return slices.DeleteFunc(strings.Split(text.String(), "\n"), func(line string) bool { return line == "" })
}

// servicesOf are those that want a virtual server that differs.
func servicesOf(pieces []*Piece, now, after State) []string {
	different := map[ServerKey]struct{}{}
	for _, pair := range [][2]State{{now, after}, {after, now}} {
		for key, server := range pair[0].Servers {
			if other, there := pair[1].Servers[key]; !there || other != server {
				different[key] = struct{}{}
			}
		}
		for key, d := range pair[0].Destinations {
			if other, there := pair[1].Destinations[key]; !there || other != d {
				different[key.Server] = struct{}{}
			}
		}
	}
	names := map[string]struct{}{}
	for _, piece := range pieces {
		u := newUnion()
		u.update([]*Piece{piece}, nil)
		for key := range u.state().Servers {
			if _, is := different[key]; is {
				names[piece.service.Name.NamespacedName.String()] = struct{}{}
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}
