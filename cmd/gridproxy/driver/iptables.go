package driver

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/cmd/inspect/explain"
	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
)

// StepTimeout bounds one step of a Sync. Every mode writes chains, and no other step is longer.
const StepTimeout = iptables.RestoreTimeout

// writtenTimeout bounds how long Written asks the kernel.
const writtenTimeout = 30 * time.Second

// chains is the driver of mode iptables, and the part of mode ipvs that writes chains.
type chains struct {
	*iptables.Backend
	names netfilter.Naming
}

func startChains(ctx context.Context, o options.Options, log *slog.Logger) (Running, error) {
	return newChains(ctx, chainsConfig(o, log))
}

func newChains(ctx context.Context, config iptables.Config) (Running, error) {
	backend, err := iptables.New(ctx, config)
	if err != nil {
		return Running{}, fmt.Errorf("starting the iptables backend: %w", err)
	}
	c := chains{backend, config.Names}
	return Running{Driver: c, Guard: backend, Findings: c, pause: backend.Pause}, nil
}

// chainsConfig returns the configuration of chains for the families that this machine has, also
// those that it gets later.
func chainsConfig(o options.Options, log *slog.Logger) iptables.Config {
	return iptables.Config{
		HasFamily:     hasFamily,
		Variant:       o.Variant,
		MasqueradeBit: o.MasqueradeBit,
		DropInvalid:   func() bool { return !(host.Machine{}).BeLiberal() },
		Names:         names(o),
		IPVS:          o.ProxyMode == options.ModeIPVS,
		Log:           log,
	}
}

func names(o options.Options) netfilter.Naming {
	if o.ServiceProxyName != "" {
		return netfilter.GridNames
	}
	return netfilter.KubeNames
}

// hasFamily reports whether the calling thread's network namespace has a family.
func hasFamily(f netfilter.Family) bool {
	ipv4, ipv6 := host.Machine{}.Families()
	return f == netfilter.IPv4 && ipv4 || f == netfilter.IPv6 && ipv6
}

// Written reports whether there are chains of a service proxy, or the kernel cannot be asked.
func (c chains) Written() bool { return chainsWritten(c.Variant(), c.names) }

// chainsWritten reports whether the kernel holds chains of a service proxy, in either family,
// or cannot be asked. A family that is not open may open later, over the chains that it has.
func chainsWritten(v netfilter.Variant, names netfilter.Naming) bool {
	ctx, cancel := context.WithTimeout(context.Background(), writtenTimeout)
	defer cancel()
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		chain, err := iptables.ServiceRulesIn(ctx, v, f, names)
		if err != nil || chain != "" {
			return true
		}
	}
	return false
}

// Counts returns the counts of chains and of Services that the kernel refuses.
func (c chains) Counts() metrics.Kernel {
	return metrics.Kernel{
		Rules: c.ruleCounts, Packets: countPackets, Trial: c.Trial,
		Quarantined: c.quarantineCounts, WithoutAffinity: c.WithoutAffinity,
	}
}

// Observers returns none: what chains cannot do is in Findings.
func (c chains) Observers(*event.Reporter, *slog.Logger) []syncer.Observer { return nil }

// Quarantine returns the Service ports whose chains the kernel refuses.
func (c chains) Quarantine() []event.Quarantined {
	var all []event.Quarantined
	for _, q := range c.Backend.Quarantine() {
		all = append(all, event.Quarantined{Service: q.Service, Family: rules.Family(q.Family), Kept: q.Kept, Reason: q.Reason})
	}
	return all
}

// WithoutAffinity returns the families in which the kernel lacks the match recent.
func (c chains) WithoutAffinity() []rules.Family { return neutral(c.Backend.WithoutAffinity()) }

// WithoutLocalDNS returns the families in which the kernel lacks the match set.
func (c chains) WithoutLocalDNS() []rules.Family { return neutral(c.Backend.WithoutLocalDNS()) }

func neutral(families []netfilter.Family) []rules.Family {
	var all []rules.Family
	for _, f := range families {
		all = append(all, rules.Family(f))
	}
	return all
}

func (c chains) ruleCounts() []metrics.RuleCount {
	var counts []metrics.RuleCount
	for _, r := range c.RuleCounts() {
		counts = append(counts, metrics.RuleCount{Table: r.Table.String(), Family: r.Family.String(), Rules: r.Rules})
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

// quarantineCounts returns how many Service ports the kernel refuses, for every family in use.
func (c chains) quarantineCounts() map[rules.Family]int {
	counts := map[rules.Family]int{}
	for _, f := range c.Families() {
		counts[rules.Family(f)] = 0
	}
	for _, q := range c.Backend.Quarantine() {
		counts[rules.Family(q.Family)]++
	}
	return counts
}

func compareChains(ctx context.Context, o options.Options, log *slog.Logger) (*Shadow, error) {
	tables, err := iptables.NewShadow(ctx, chainsConfig(o, log))
	if err != nil {
		return nil, fmt.Errorf("starting the comparison of iptables: %w", err)
	}
	return &Shadow{Backend: tables, chains: tables, names: names(o), layers: []layer{chainsLayer(tables)}}, nil
}

func chainsLayer(s *iptables.Shadow) layer {
	return layer{
		tables: []string{netfilter.Filter.String(), netfilter.NAT.String()},
		found: func() []tableDifference {
			var all []tableDifference
			for _, d := range s.Differences() {
				all = append(all, tableDifference{d, d.Table.String(), d.Family.String()})
			}
			return all
		},
	}
}

func cleanChains(_ context.Context, o options.Options, _ rules.Backend, removal *rules.Removal, log *slog.Logger) rules.Backend {
	c := chainsConfig(o, log)
	c.Removal = removal
	c.HasFamily = nil // rules may be left of a family that is disabled by now
	return iptables.NewCleaner(c)
}

// renderChains writes want as iptables-restore takes it. In mode ipvs, want is only what
// virtual servers cannot enforce.
func renderChains(w io.Writer, want rules.Ruleset, o options.Options) error {
	_, err := render.Ruleset(want, render.Options{
		Family:        o.Family,
		MasqueradeBit: o.MasqueradeBit,
		RandomFully:   true,
		DropInvalid:   true,
		Names:         names(o),
		IPVS:          o.ProxyMode == options.ModeIPVS,
	}).WriteTo(w)
	return err
}

// ReadEvidence reads what the rules in this machine's kernel say of Services that it refuses.
// In every mode these rules are chains.
func ReadEvidence(ctx context.Context, o options.Options) (explain.Evidence, error) {
	variant, err := o.Variant, error(nil)
	if variant == "" || variant == netfilter.VariantAuto {
		if variant, err = iptables.DetectVariant(ctx); err != nil {
			return explain.Evidence{}, err
		}
	}
	found, err := iptables.ReadEvidence(ctx, variant, names(o))
	return explain.Evidence{Quarantined: found.Quarantined, WithoutAffinity: found.WithoutAffinity}, err
}
