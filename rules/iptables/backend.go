package iptables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gridproxy/rules"
)

// Config is how a Backend is to write.
type Config struct {
	Families      []Family    // nil = both; one whose tools do not work here is left out
	Variant       Variant     // "" = VariantAuto
	MasqueradeBit uint8       // bit of the packet mark, 0 to 31; kube-proxy's default is 14
	Names         Naming      // whose chains are written, mended and removed
	IPVS          bool        // write the skeleton of IPVS mode; its sets must exist before Sync
	DropInvalid   func() bool // asked before every sync: false where nf_conntrack_tcp_be_liberal is set; nil = true
	Log           *slog.Logger

	record           func(input []byte) // sees what is restored; for tests
	withoutIPVSMatch bool               // see Options
}

// Backend keeps the calling thread's network namespace equal to a Ruleset, both address
// families together. It implements rules.Backend. One goroutine uses it.
type Backend struct {
	config  Config
	variant Variant
	keepers []*keeper
	acct    bool // the nfacct objects could be made
}

// New finds the tools and probes what they and the kernel can do. It writes nothing but
// the kernel objects of the nfacct counters.
func New(ctx context.Context, c Config) (*Backend, error) {
	c, variant, err := c.complete(ctx)
	if err != nil {
		return nil, err
	}
	b := &Backend{variant: variant}
	b.config, b.keepers, err = openFamilies(c, variant, func(f Family) (*keeper, error) {
		k, err := openKernel(variant, f)
		if err != nil {
			return nil, err
		}
		k.restore.record = c.record
		return &keeper{kernel: k, limit: readLimit, log: c.Log.With("family", f.String(), "variant", string(variant))}, nil
	})
	if err != nil {
		return nil, err
	}
	b.warnOfOtherVariant(ctx, readLimit)
	return b, nil
}

// openFamilies opens the families that work here, and leaves the others out of c.
func openFamilies[T any](c Config, v Variant, open func(Family) (T, error)) (Config, []T, error) {
	var opened []T
	var works []Family
	var errs []error
	for _, f := range c.Families {
		o, err := open(f)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f, err))
			continue
		}
		opened, works = append(opened, o), append(works, f)
	}
	if len(opened) == 0 {
		return c, nil, fmt.Errorf("iptables-%s works for no address family: %w", v, errors.Join(errs...))
	}
	for _, err := range errs {
		c.Log.Warn("an address family is left out, because its iptables does not work here", "err", err)
	}
	c.Families = works
	return c, opened, nil
}

// complete is c with everything said that may be left out, and the variant.
func (c Config) complete(ctx context.Context) (Config, Variant, error) {
	if c.MasqueradeBit > 31 {
		return c, "", fmt.Errorf("masquerade bit %d is out of range: a packet mark has bits 0 to 31", c.MasqueradeBit)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.DropInvalid == nil {
		c.DropInvalid = func() bool { return true }
	}
	if len(c.Families) == 0 {
		c.Families = []Family{IPv4, IPv6}
	}
	if c.Variant != "" && c.Variant != VariantAuto {
		return c, c.Variant, nil
	}
	ctx, cancel := inTime(ctx, readLimit)
	defer cancel()
	variant, err := DetectVariant(ctx)
	return c, variant, err
}

// options are those of one family, before a Ruleset has its say.
func (c Config) options(f Family, randomFully, nfacct bool) Options {
	return Options{
		Family:        f,
		MasqueradeBit: c.MasqueradeBit,
		RandomFully:   randomFully,
		DropInvalid:   c.DropInvalid(),
		NFAcct:        nfacct,
		Names:         c.Names,
		IPVS:          c.IPVS,

		withoutIPVSMatch: c.withoutIPVSMatch,
	}
}

// warnOfOtherVariant says so if a service proxy has written with the other variant: the
// kernel asks the rules of both.
func (b *Backend) warnOfOtherVariant(ctx context.Context, limit time.Duration) {
	reading, cancel := inTime(ctx, limit)
	defer cancel()
	for _, k := range b.keepers {
		chain, err := ServiceRulesIn(reading, b.variant.other(), k.kernel.family, b.config.Names)
		if err != nil && ctx.Err() == nil && reading.Err() != nil {
			k.log.Warn("whether the other variant of iptables holds rules of a service proxy, which packets would meet too, is unknown", "err", context.Cause(reading))
		}
		if err == nil && chain != "" {
			k.log.Warn("another variant of iptables holds rules of a service proxy too, and packets meet both; "+
				"stop what wrote them, then run gridproxy cleanup while gridproxy is stopped", "other", string(b.variant.other()), "chain", chain)
		}
	}
}

// Variant is the variant in use.
func (b *Backend) Variant() Variant { return b.variant }

// Families are the address families in use.
func (b *Backend) Families() []Family { return slices.Clone(b.config.Families) }

// Sync makes the kernel equal to want; see rules.Backend. What one family fails at does
// not stop the other. After an error the next Sync reads the kernel back first.
func (b *Backend) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	unknown := slices.ContainsFunc(b.keepers, func(k *keeper) bool { return k.last == nil })
	if verify || unknown || !b.acct {
		b.ensureCounters()
	}
	var total rules.Changes
	var errs []error
	for _, k := range b.keepers {
		o := b.config.options(k.kernel.family, k.kernel.ipt.HasRandomFully(), b.acct)
		c, err := k.sync(ctx, written{rules: want, options: o.For(want)}, verify, b.committed)
		total.Chains += c.Chains
		total.Rules += c.Rules
		total.Repaired += c.Repaired
		total.Verified = total.Verified || c.Verified
		if err != nil {
			errs = append(errs, fmt.Errorf("syncing %s with iptables-%s: %w", o.Family, b.variant, err))
		}
	}
	return total, errors.Join(errs...)
}

// ensureCounters makes the nfacct objects. Kernels without them lose two counters,
// nothing else.
func (b *Backend) ensureCounters() {
	err := ensureAcct()
	if err != nil && b.acct {
		b.config.Log.Warn("the packet counters are gone and cannot be made again", "err", err)
	}
	b.acct = err == nil
}

// committed moves the watermarks of all families on after one of them committed its own
// transactions since generation before: the number is the namespace's, not a family's.
func (b *Backend) committed(before, commits uint32) {
	for _, k := range b.keepers {
		after, known := k.kernel.generation()
		if !known {
			k.mark = watermark{}
			continue
		}
		k.mark = k.mark.advance(before, after, commits)
	}
}

// Trial reports whether the kernel held chains of a trial, a gridproxy with --service-proxy-name,
// beside ours when it was last read back.
func (b *Backend) Trial() bool {
	return slices.ContainsFunc(b.keepers, func(k *keeper) bool { return k.trial })
}

// RuleCount is how many rules of ours a table holds.
type RuleCount struct {
	Family Family
	Table  Table
	Rules  int
}

// RuleCounts are the rules in the kernel after the last Sync, jumps from built-in chains
// not counted.
func (b *Backend) RuleCounts() []RuleCount {
	var all []RuleCount
	for _, k := range b.keepers {
		for t, n := range k.rules {
			all = append(all, RuleCount{Family: k.kernel.family, Table: Table(t), Rules: n})
		}
	}
	return all
}
