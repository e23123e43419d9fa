package driver

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
)

// servers is the driver of mode ipvs: virtual servers over chains. With retiring it wraps the
// driver of mode iptables, and removes the virtual servers.
type servers struct {
	*ipvs.Backend
	Findings  // in chains: virtual servers that the kernel refuses become chains
	below     Running
	scheduler string // of Services whose own scheduler the kernel lacks
	retiring  bool
}

func startServers(ctx context.Context, o options.Options, log *slog.Logger) (Running, error) {
	below, err := startChains(ctx, o, log)
	if err != nil {
		return Running{}, err
	}
	return newServers(ctx, serversConfig(o, below.Driver, log), below)
}

// retireServers returns a driver over below that drains and removes what mode ipvs has left,
// and true. It returns below and false if nothing of ours is left, or that cannot be found out.
func retireServers(ctx context.Context, o options.Options, below Running, log *slog.Logger) (Running, bool, error) {
	if ofProxyBeside(o) {
		return below, false, nil
	}
	left, err := ipvs.Leftover()
	if err != nil {
		log.Warn("cannot find out whether mode ipvs has left virtual servers here; if it has, they stay", "err", err)
		return below, false, nil
	}
	if !left {
		return below, false, nil
	}
	log.Info("mode ipvs has left virtual servers or sets here; they are removed when their connections have ended", "atMost", o.IPVS.DrainTimeout)
	running, err := newServers(ctx, retiring(serversConfig(o, below.Driver, log)), below)
	return running, true, err
}

func newServers(ctx context.Context, config ipvs.BackendConfig, below Running) (Running, error) {
	backend, err := ipvs.New(ctx, config)
	if err != nil {
		return Running{}, fmt.Errorf("starting the IPVS backend: %w", err)
	}
	s := servers{Backend: backend, Findings: below.Findings, below: below, scheduler: config.Scheduler, retiring: config.Retire}
	// No pause: beside virtual servers each Sync has to write all chains.
	return Running{Driver: s, Guard: below.Guard, Findings: s}, nil
}

// ofProxyBeside reports whether the virtual servers on this machine belong to the proxy beside this
// one.
func ofProxyBeside(o options.Options) bool { return o.ServiceProxyName != "" }

// serversConfig returns the configuration of virtual servers over these chains.
func serversConfig(o options.Options, tables rules.Backend, log *slog.Logger) ipvs.BackendConfig {
	return ipvs.BackendConfig{
		Config:       ipvs.Config{Scheduler: o.IPVS.Scheduler, Exclude: o.IPVS.ExcludeCIDRs},
		Tables:       tables,
		DrainTimeout: o.IPVS.DrainTimeout,
		StrictARP:    o.IPVS.StrictARP,
		Timeouts:     ipvs.Timeouts{TCP: o.IPVS.TCPTimeout, TCPFin: o.IPVS.TCPFin, UDP: o.IPVS.UDPTimeout},
		Log:          log,
	}
}

// retiring returns c for virtual servers that are drained and removed.
func retiring(c ipvs.BackendConfig) ipvs.BackendConfig {
	c.Retire = true
	return c
}

// Written reports whether there are chains of a service proxy: every mode has some.
func (s servers) Written() bool { return s.below.Written() }

// Variant returns which iptables the chains use.
func (s servers) Variant() netfilter.Variant { return s.below.Variant() }

// Counts returns the counts of chains and of virtual servers.
func (s servers) Counts() metrics.Kernel {
	counts := s.below.Counts()
	counts.Servers = s.serverCounts
	return counts
}

func (s servers) serverCounts() metrics.Servers {
	now := s.Status()
	return metrics.Servers{
		Servers: now.Servers, Destinations: now.Destinations, Draining: now.Draining, Conflicts: now.Conflicts, Refused: now.Refused, Degraded: now.Degraded,
		Messages: map[string]int{
			"server": now.Messages.Servers, "destination": now.Messages.Destinations, "address": now.Messages.Addresses,
			"entry": now.Messages.Entries, "set": now.Messages.Sets, "link": now.Messages.Links,
		},
	}
}

// OtherWrites returns the writes into what belongs to virtual servers, then those into chains.
func (s servers) OtherWrites() rules.OtherWrites {
	return s.Backend.OtherWrites().Add(s.Findings.OtherWrites())
}

// Observers returns those of the chains, and one that reports schedulers that the kernel lacks
// or, with retiring, that nothing is left.
func (s servers) Observers(reporter *event.Reporter, log *slog.Logger) []syncer.Observer {
	all := s.below.Observers(reporter, log)
	if s.retiring {
		return append(all, &retireObserver{log: log})
	}
	return append(all, schedulerObserver{s.Backend, reporter, s.scheduler})
}

// schedulerObserver reports Services that ask for a scheduler which the kernel lacks.
type schedulerObserver struct {
	servers  *ipvs.Backend
	reporter *event.Reporter
	instead  string
}

// Synced reports Services whose scheduler the kernel lacks, after every run that decided
// something: a module may have been loaded since.
func (o schedulerObserver) Synced(r syncer.Result) {
	if r.Backends == nil {
		return // nothing was written
	}
	o.reporter.Lacking(r.View, o.servers.Status().Lacks, o.instead)
}

// retireObserver logs when nothing is left of the mode that was in use before.
type retireObserver struct {
	log  *slog.Logger
	done bool
}

// Synced logs, once, that nothing is left: after a good run that asks for no further one.
func (o *retireObserver) Synced(r syncer.Result) {
	if !o.done && r.Err == nil && r.Changes.Again == 0 {
		o.done = true
		o.log.Info("nothing is left of mode ipvs")
	}
}

func compareServers(ctx context.Context, o options.Options, log *slog.Logger) (*Shadow, error) {
	s, err := compareChains(ctx, o, log)
	if err != nil {
		return nil, err
	}
	return s, s.addServers(serversConfig(o, s.Backend, log))
}

// compareLeftServers makes a shadow of another mode show every virtual server of ours as a
// difference, except beside another proxy, to which they belong.
func compareLeftServers(o options.Options, s *Shadow, log *slog.Logger) error {
	if ofProxyBeside(o) {
		return nil
	}
	return s.addServers(retiring(serversConfig(o, s.Backend, log)))
}

// addServers makes a shadow compare virtual servers too. diff prints them before the chains.
func (s *Shadow) addServers(config ipvs.BackendConfig) error {
	backend, err := ipvs.NewShadow(config)
	if err != nil {
		return fmt.Errorf("starting the comparison of virtual servers: %w", err)
	}
	s.Backend = backend
	s.layers = append([]layer{serversLayer(backend)}, s.layers...)
	return nil
}

func serversLayer(s *ipvs.Shadow) layer {
	var parts []string
	for _, part := range ipvs.Parts() {
		parts = append(parts, part.Name)
	}
	return layer{tables: parts, found: func() []tableDifference {
		var all []tableDifference
		for _, d := range s.Differences() {
			all = append(all, tableDifference{d, d.Part, d.Family.String()})
		}
		return all
	}}
}

// cleanServers returns a Backend that also removes virtual servers, sets and the link. Beside
// another proxy, which owns these, it returns inner. If IPVS cannot be used, Cleanup fails.
func cleanServers(ctx context.Context, o options.Options, inner rules.Backend, removal *rules.Removal, log *slog.Logger) rules.Backend {
	if ofProxyBeside(o) {
		return inner
	}
	c := retiring(serversConfig(o, inner, log))
	c.Removal = removal
	backend, err := ipvs.New(ctx, c)
	if err != nil {
		return halfCleaner{inner, fmt.Errorf("what mode ipvs has left, if anything, stays: %w", err)}
	}
	return backend
}

// renderServers writes the part that --part names, or all parts, each after a comment line with its
// name.
func renderServers(w io.Writer, want rules.Ruleset, o options.Options) error {
	compiled := compile(want, o)
	state := compiled.State()
	for _, part := range options.Parts() {
		if o.Part != "" && o.Part != part {
			continue
		}
		if o.Part == "" {
			if _, err := fmt.Fprintf(w, "# %s\n", part); err != nil {
				return err
			}
		}
		if err := renderPart(w, part, compiled.Residual, state, o); err != nil {
			return err
		}
	}
	return nil
}

func renderPart(w io.Writer, part options.Part, residual rules.Ruleset, state ipvs.State, o options.Options) error {
	for _, p := range ipvs.Parts() {
		if options.Part(p.Name) == part {
			return p.Write(w, state, o.Family)
		}
	}
	return renderChains(w, residual, o)
}

// compile splits want into virtual servers and chains, for a kernel that has every scheduler.
func compile(want rules.Ruleset, o options.Options) ipvs.Compiled {
	return new(ipvs.Compiler).Compile(want, serversConfig(o, nil, nil).Config)
}

// warnSchedulers returns warnings about schedulers that no kernel has, one for each Service.
func warnSchedulers(want rules.Ruleset, o options.Options) (warnings []string) {
	for _, s := range want.Services {
		if s.Scheduler != "" && !slices.Contains(ipvs.Schedulers(), s.Scheduler) {
			warnings = append(warnings, fmt.Sprintf("Service %s: annotation %s asks for scheduler %q, which does not exist; %s is used instead; want %s",
				s.Name.NamespacedName, topology.AnnotationScheduler, s.Scheduler, o.IPVS.Scheduler, strings.Join(ipvs.Schedulers(), ", ")))
		}
	}
	return slices.Compact(warnings)
}

// explainServers adds which addresses of a Service are virtual servers, and which are chains.
func explainServers(e *explain.Explanation, want rules.Ruleset, o options.Options) {
	s := compile(want, o).State()
	endpoints := map[ipvs.ServerKey][]string{}
	for d := range s.Destinations {
		endpoints[d.Server] = append(endpoints[d.Server], d.Addr.String())
	}
	for _, key := range slices.SortedFunc(maps.Keys(s.Servers), compareKeys) {
		server := explain.Server{Address: key.String(), Scheduler: s.Servers[key].Scheduler, Endpoints: append([]string{}, endpoints[key]...)}
		slices.Sort(server.Endpoints)
		if affinity := s.Servers[key].Affinity; affinity > 0 {
			server.Affinity = affinity.String()
		}
		e.Servers = append(e.Servers, server)
	}
	for entry := range s.Entries {
		if entry.Set != netfilter.SetName(netfilter.IPv4, netfilter.SetChains) && entry.Set != netfilter.SetName(netfilter.IPv6, netfilter.SetChains) {
			continue
		}
		e.Chains = append(e.Chains, inChains(s, entry))
	}
	slices.SortFunc(e.Chains, func(a, b explain.InChains) int { return cmp.Compare(a.Address, b.Address) })
}

func inChains(s ipvs.State, entry ipvs.Entry) explain.InChains {
	if !entry.Net.IsSingleIP() {
		return explain.InChains{Address: fmt.Sprintf("%s:%d/%s", entry.Net, entry.Port, entry.Proto), Packets: explain.AllPackets}
	}
	key := ipvs.ServerKey{Addr: netip.AddrPortFrom(entry.Net.Addr(), entry.Port), Proto: entry.Proto}
	if _, beside := s.Servers[key]; beside {
		return explain.InChains{Address: key.String(), Packets: explain.OwnPackets}
	}
	return explain.InChains{Address: key.String(), Packets: explain.AllPackets}
}

func compareKeys(a, b ipvs.ServerKey) int {
	return cmp.Or(a.Addr.Compare(b.Addr), cmp.Compare(a.Proto, b.Proto))
}
