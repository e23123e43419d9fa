package driver

import (
	"context"
	"io"
	"log/slog"
	"slices"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
)

// Driver compares a Ruleset with the kernel and, unless it is a shadow, writes it. It is for the
// network namespace of the calling thread.
type Driver interface {
	rules.Backend
	// Written reports whether the kernel holds rules of a service proxy with our names. True if the
	// kernel cannot be asked.
	Written() bool
	// Variant returns which iptables is used.
	Variant() netfilter.Variant
	// Counts returns what metrics ask of the driver.
	Counts() metrics.Kernel
	// Observers report what only this driver can find out. They are called after all others.
	Observers(*event.Reporter, *slog.Logger) []syncer.Observer
}

// Guard protects loopback addresses. A machine must not route them without it (CVE-2020-8558).
type Guard interface {
	// CanGuard returns why this machine must not route loopback addresses, or nil if it may.
	CanGuard() error
	// Guard writes the protection if it is missing.
	Guard(context.Context) error
	// Closed returns the outcome of each family that cannot be written, when it was last tried.
	Closed() rules.Outcomes
}

// Findings are what the last Sync found in the kernel.
type Findings interface {
	OtherWrites() rules.OtherWrites
	// Quarantine returns the Service ports whose rules the kernel refuses.
	Quarantine() []event.Quarantined
	// WithoutAffinity returns the families in which the kernel cannot keep a client at its
	// endpoint.
	WithoutAffinity() []rules.Family
	// WithoutLocalDNS returns the families in which the kernel cannot lead queries to grid-dns.
	WithoutLocalDNS() []rules.Family
}

// Running is a driver, by what its users need of it.
type Running struct {
	Driver
	Guard    Guard    // nil = a shadow
	Findings Findings // nil = a shadow

	pause func() // lets a Sync return before all is written; nil = it cannot
}

// mechanism is what one value of --proxy-mode means. A nil func has nothing to do.
type mechanism struct {
	name options.Mode
	// start makes the driver of a daemon in this mode.
	start func(context.Context, options.Options, *slog.Logger) (Running, error)
	// compare makes the shadow of that driver.
	compare func(context.Context, options.Options, *slog.Logger) (*Shadow, error)
	// retire wraps the driver of another mode, so that it also removes what this mode has left here;
	// false = nothing is left. nil = the driver of every other mode does so anyway.
	retire func(context.Context, options.Options, Running, *slog.Logger) (Running, bool, error)
	// compareLeft makes a shadow of another mode also compare what this mode has left.
	compareLeft func(options.Options, *Shadow, *slog.Logger) error
	// cleaner removes what this mode has left, after what inner removes; inner is nil for the first.
	cleaner func(ctx context.Context, o options.Options, inner rules.Backend, removal *rules.Removal, log *slog.Logger) rules.Backend
	// render writes what the kernel should hold.
	render func(io.Writer, rules.Ruleset, options.Options) error
	// warnings returns what this mode cannot enforce on any kernel.
	warnings func(rules.Ruleset, options.Options) []string
	// explain adds what this mode makes of the one Service in a Ruleset.
	explain func(*explain.Explanation, rules.Ruleset, options.Options)
}

// modes returns the mechanisms of all modes, in the order in which they are cleaned up.
func modes() []mechanism {
	return []mechanism{
		{
			name: options.ModeIPTables, start: startChains, compare: compareChains,
			cleaner: cleanChains, render: renderChains,
		},
		{
			name: options.ModeIPVS, start: startServers, compare: compareServers,
			retire: retireServers, compareLeft: compareLeftServers,
			cleaner: cleanServers, render: renderServers, warnings: warnSchedulers, explain: explainServers,
		},
	}
}

// inUse returns the mechanism of the mode in use, and those of the other modes.
func inUse(o options.Options) (own mechanism, others []mechanism) {
	others = modes()
	i := max(0, slices.IndexFunc(others, func(m mechanism) bool { return m.name == o.ProxyMode }))
	own = others[i]
	return own, slices.Delete(others, i, i+1)
}

// New makes the driver that the options ask for: a shadow with --shadow. What another mode has
// left, ours or kube-proxy's, is retired: once the rules of this mode have taken its place, it gets
// no new connections, and goes when the open ones have ended.
func New(ctx context.Context, o options.Options, log *slog.Logger) (Running, error) {
	if o.Shadow {
		s, err := NewShadow(ctx, o, log)
		if err != nil {
			return Running{}, err
		}
		return Running{Driver: s}, nil
	}
	own, others := inUse(o)
	running, err := own.start(ctx, o, log)
	if err != nil {
		return Running{}, err
	}
	alone := true
	for _, other := range others {
		if other.retire == nil {
			continue
		}
		var left bool
		if running, left, err = other.retire(ctx, o, running, log); err != nil {
			return Running{}, err
		}
		alone = alone && !left
	}
	if alone && running.pause != nil {
		running.pause()
	}
	return running, nil
}

// NewShadow makes a Shadow of the driver that New makes without --shadow.
func NewShadow(ctx context.Context, o options.Options, log *slog.Logger) (*Shadow, error) {
	own, others := inUse(o)
	s, err := own.compare(ctx, o, log)
	if err != nil {
		return nil, err
	}
	for _, other := range others {
		if other.compareLeft == nil {
			continue
		}
		if err := other.compareLeft(o, s, log); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Render writes what a node with these options would write, as the tools of the mode take it.
func Render(w io.Writer, want rules.Ruleset, o options.Options) error {
	own, _ := inUse(o)
	return own.render(w, want, o)
}

// Warnings returns what no kernel enforces as a Service asks for it, one text for each Service.
func Warnings(want rules.Ruleset, o options.Options) []string {
	own, _ := inUse(o)
	if own.warnings == nil {
		return nil
	}
	return own.warnings(want, o)
}

// Explain adds to an Explanation what the mode makes of its Service, which is the only one in want.
func Explain(e *explain.Explanation, want rules.Ruleset, o options.Options) {
	if own, _ := inUse(o); own.explain != nil {
		own.explain(e, want, o)
	}
}
