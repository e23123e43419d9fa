package main

import (
	"context"
	"fmt"
	"log/slog"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables"
	"gridproxy/rules/ipvs"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
)

// mechanism is what writes into the kernel, as one Backend.
type mechanism struct {
	rules.Backend
	tables  *iptables.Backend
	servers *ipvs.Backend // nil = there are no virtual servers, and none to take leave of
	shadow  *shadow       // nil = what is wanted is written; else there are no tables and servers
}

// newMechanism makes what the mode asks for. In mode iptables, virtual servers that mode
// ipvs, ours or kube-proxy's, has left behind are retired: once chains have taken their
// place they take no new connections, and go when the open ones have ended.
func newMechanism(ctx context.Context, o options.Options, log *slog.Logger) (mechanism, error) {
	if o.Shadow {
		s, err := newShadow(ctx, o, log)
		if err != nil {
			return mechanism{}, err
		}
		return mechanism{Backend: s, shadow: s}, nil
	}
	tables, err := newTables(ctx, tablesConfig(o, log))
	if err != nil {
		return mechanism{}, err
	}
	alone := func() (mechanism, error) {
		tables.Pause() // beside virtual servers each Sync has to end with all chains
		return mechanism{Backend: tables, tables: tables}, nil
	}
	config, ours := serversConfig(o, tables, log)
	if !ours {
		return alone()
	}
	if config.Retire {
		left, err := ipvs.Leftover()
		if err != nil {
			log.Warn("virtual servers of mode ipvs, if there are any, stay as they are", "err", err)
			return alone()
		}
		if !left {
			return alone()
		}
		log.Info("mode ipvs has left virtual servers or sets here; they go when their connections have ended", "atMost", o.IPVS.DrainTimeout)
	}
	servers, err := ipvs.New(ctx, config)
	if err != nil {
		return mechanism{}, fmt.Errorf("starting the IPVS backend: %w", err)
	}
	return mechanism{Backend: servers, tables: tables, servers: servers}, nil
}

// newTables makes the iptables backend.
func newTables(ctx context.Context, c iptables.Config) (*iptables.Backend, error) {
	backend, err := iptables.New(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("starting the iptables backend: %w", err)
	}
	return backend, nil
}

// tablesConfig is for the families that this machine has, also those that it gets later.
func tablesConfig(o options.Options, log *slog.Logger) iptables.Config {
	return iptables.Config{
		HasFamily:     hasFamily,
		Variant:       o.Variant,
		MasqueradeBit: o.MasqueradeBit,
		DropInvalid:   func() bool { return !(host.Machine{}).BeLiberal() },
		Names:         o.Names(),
		IPVS:          o.ProxyMode == options.ModeIPVS,
		Log:           log,
	}
}

// hasFamily asks the kernel of the calling thread's network namespace.
func hasFamily(f netfilter.Family) bool {
	ipv4, ipv6 := host.Machine{}.Families()
	return f == netfilter.IPv4 && ipv4 || f == netfilter.IPv6 && ipv6
}

// serversConfig is for virtual servers beside these tables; false = they are the business of the
// proxy beside this one. In mode iptables they are to be retired.
func serversConfig(o options.Options, tables rules.Backend, log *slog.Logger) (ipvs.BackendConfig, bool) {
	c := ipvs.BackendConfig{
		Config:       o.Servers(),
		Tables:       tables,
		DrainTimeout: o.IPVS.DrainTimeout,
		StrictARP:    o.IPVS.StrictARP,
		Timeouts:     ipvs.Timeouts{TCP: o.IPVS.TCPTimeout, TCPFin: o.IPVS.TCPFin, UDP: o.IPVS.UDPTimeout},
		Log:          log,
	}
	c.Retire = o.ProxyMode != options.ModeIPVS
	return c, o.ServiceProxyName == ""
}

// counts is what metrics asks the mechanism.
func (m mechanism) counts() metrics.Kernel {
	if m.shadow != nil {
		return metrics.Kernel{Packets: countPackets, Shadow: m.shadow.counts, Trial: m.shadow.tables.Trial}
	}
	k := metrics.Kernel{
		Rules: m.ruleCounts, Packets: countPackets, Trial: m.tables.Trial,
		Quarantined: m.quarantineCounts, WithoutAffinity: m.withoutAffinity,
	}
	if m.servers != nil {
		k.Servers = m.serverCounts
	}
	return k
}

func (m mechanism) ruleCounts() []metrics.RuleCount {
	var counts []metrics.RuleCount
	for _, c := range m.tables.RuleCounts() {
		counts = append(counts, metrics.RuleCount{Table: c.Table.String(), Family: c.Family.String(), Rules: c.Rules})
	}
	return counts
}

func countPackets() (invalidDropped, localhostAccepted uint64) {
	c, err := iptables.ReadCounters()
	if err != nil {
		return 0, 0 // a kernel without nfacct counts nothing
	}
	return c.InvalidDropped, c.LocalhostAccepted
}

func (m mechanism) serverCounts() metrics.Servers {
	s := m.servers.Status()
	return metrics.Servers{
		Servers: s.Servers, Destinations: s.Destinations, Draining: s.Draining, Conflicts: s.Conflicts, Refused: s.Refused, Degraded: s.Degraded,
		Messages: map[string]int{
			"server": s.Messages.Servers, "destination": s.Messages.Destinations, "address": s.Messages.Addresses,
			"entry": s.Messages.Entries, "set": s.Messages.Sets, "link": s.Messages.Links,
		},
	}
}

// schedulerObserver tells of Services that ask for a scheduler which the kernel lacks.
type schedulerObserver struct {
	servers *ipvs.Backend
	teller  *event.Teller
	instead string
}

// Synced asks after every run: a module may have been loaded.
func (o schedulerObserver) Synced(r syncer.Result) {
	if r.Backends == nil {
		return // nothing was decided
	}
	o.teller.Lacking(r.View, o.servers.Status().Lacks, o.instead)
}
