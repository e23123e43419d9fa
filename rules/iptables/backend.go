package iptables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/iptables/refusal"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// Config configures a Backend.
type Config struct {
	Families      []netfilter.Family          // nil = both
	HasFamily     func(netfilter.Family) bool // called before a family is opened: whether the kernel has and uses it; nil = yes
	Variant       netfilter.Variant           // "" = VariantAuto
	MasqueradeBit uint8                       // bit of the packet mark, 0 to 31; kube-proxy's default is 14
	Names         netfilter.Naming            // whose chains are written, repaired and removed
	IPVS          bool                        // write the fixed chains of IPVS mode; its sets must exist before Sync
	DropInvalid   func() bool                 // called in each Sync: false if nf_conntrack_tcp_be_liberal is set; nil = true
	Log           *slog.Logger
	Removal       *rules.Removal // what Cleanup counts; nil = it counts nothing
}

// Backend keeps the calling thread's network namespace equal to a Ruleset, for both address
// families. It implements rules.Backend. One goroutine uses it.
type Backend struct {
	config   Config
	variant  netfilter.Variant
	families *families[*openFamily] // not open yet
	syncers  []*openFamily          // sorted by Family
	opened   bool                   // families were tried since the last Sync
	pause    bool                   // see Pause
	acct     bool                   // the nfacct objects exist
	general  fileID                 // of the program iptables, as last seen
}

// openFamily is an address family that can be written.
type openFamily struct {
	*familySyncer
	refusals *refusal.Refusals // of the familySyncer
}

// New finds the tools and probes what they and the kernel can do, in chains that it removes
// again. Only the nfacct objects that it creates remain. It fails if no family is open and
// waiting cannot help, as on a kernel without the match statistic; other families are opened
// later.
func New(ctx context.Context, c Config) (*Backend, error) {
	c, variant, err := c.complete(ctx)
	if err != nil {
		return nil, err
	}
	b := &Backend{config: c, variant: variant}
	b.families = newFamilies(c, variant, b.openFamily)
	if b.syncers, err = b.families.start(ctx); err != nil {
		return nil, err
	}
	_, b.general = generalTool()
	b.warnOfOtherVariant(ctx, b.syncers, readTimeout)
	return b, nil
}

func (b *Backend) openFamily(ctx context.Context, f netfilter.Family) (*openFamily, error) {
	k, err := findKernel(ctx, b.variant, f)
	if err == nil {
		err = k.probe(ctx)
	}
	if err != nil {
		return nil, err
	}
	syncer := &familySyncer{
		kernel: k, limit: readTimeout, chunks: defaultChunks(b.variant), pause: b.pause, committed: b.committed,
		log: b.config.Log.With("family", f.String(), "variant", string(b.variant)),
	}
	opened := &openFamily{familySyncer: syncer, refusals: refusal.New(syncer, syncer.log)}
	return opened, opened.refusals.Probe(ctx, b.config.options(f, false, false))
}

// Open tries to open the families that are not open yet. Without verify it skips a family whose
// tables the kernel lacks, and one that failed while another one works. The next Sync does not try
// again.
func (b *Backend) Open(ctx context.Context, verify bool) {
	b.opened = true
	more := b.families.try(ctx, verify, len(b.syncers) > 0)
	b.syncers = append(b.syncers, more...)
	slices.SortFunc(b.syncers, func(a, b *openFamily) int { return cmp.Compare(a.kernel.family, b.kernel.family) })
	b.warnOfOtherVariant(ctx, more, readTimeout)
}

// complete fills in defaults and detects the variant.
func (c Config) complete(ctx context.Context) (Config, netfilter.Variant, error) {
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
		c.Families = []netfilter.Family{netfilter.IPv4, netfilter.IPv6}
	}
	if c.Variant != "" && c.Variant != netfilter.VariantAuto {
		return c, c.Variant, nil
	}
	ctx, cancel := inTime(ctx, readTimeout)
	defer cancel()
	variant, err := DetectVariant(ctx)
	return c, variant, err
}

// options returns the options of one family. Options.For adds what the Ruleset says.
func (c Config) options(f netfilter.Family, randomFully, nfacct bool) render.Options {
	return render.Options{
		Family:        f,
		MasqueradeBit: c.MasqueradeBit,
		RandomFully:   randomFully,
		DropInvalid:   c.DropInvalid(),
		NFAcct:        nfacct,
		Names:         c.Names,
		IPVS:          c.IPVS,
	}
}

// warnOfOtherVariant logs a warning if a service proxy has written with the other variant: packets
// traverse the rules of both.
func (b *Backend) warnOfOtherVariant(ctx context.Context, syncers []*openFamily, limit time.Duration) {
	reading, cancel := inTime(ctx, limit)
	defer cancel()
	for _, k := range syncers {
		chain, err := ServiceRulesIn(reading, otherVariant(b.variant), k.kernel.family, b.config.Names)
		if err != nil && ctx.Err() == nil && reading.Err() != nil {
			k.log.Warn("cannot read whether the other variant of iptables holds rules of a service proxy; packets would traverse them too",
				"err", context.Cause(reading))
		}
		if err == nil && chain != "" {
			k.log.Warn("the other variant of iptables also holds rules of a service proxy, and packets traverse both; "+
				"stop the program that wrote them, then run gridproxy cleanup while gridproxy is stopped", "other", string(otherVariant(b.variant)), "chain", chain)
		}
	}
}

// Variant returns the variant in use.
func (b *Backend) Variant() netfilter.Variant { return b.variant }

// Families returns the address families that are open, sorted; never nil.
func (b *Backend) Families() []netfilter.Family {
	open := []netfilter.Family{}
	for _, k := range b.syncers {
		open = append(open, k.kernel.family)
	}
	return open
}

// Closed returns the outcomes of the families that are not open.
func (b *Backend) Closed() rules.Outcomes { return b.families.outcomes(b.config.Families) }

// Sync makes the kernel equal to want; see rules.Backend. It first tries to open the families that
// are not open yet. An error in one family does not stop the other. After an error the next Sync of
// the family reads the kernel back first.
func (b *Backend) Sync(ctx context.Context, want rules.Ruleset, verify bool) (rules.Changes, error) {
	if !b.opened {
		b.Open(ctx, verify)
	}
	b.opened = false
	if verify {
		b.noticeSwitch(ctx)
		for _, k := range b.syncers {
			k.lookForNFTProxy(b.config.Names)
		}
	}
	unknown := slices.ContainsFunc(b.syncers, func(k *openFamily) bool { return k.last == nil })
	if verify || unknown || !b.acct {
		b.ensureCounters()
	}
	total := rules.Changes{Families: b.Closed()}
	skip := b.waiting(verify)
	for _, k := range b.syncers {
		k.others, k.verifyTime, k.interrupted = rules.OtherWrites{}, 0, false
		if skip[k.kernel.family] {
			total.Families[k.kernel.family].Err = k.failed
			continue
		}
		c, err := b.syncOne(ctx, k, want, verify)
		total.Chains += c.Chains
		total.Rules += c.Rules
		total.Repaired += c.Repaired
		total.Verified = total.Verified || c.Verified
		total.Late = total.Late || c.Late
		total.WriteTime += c.WriteTime
		total.Again = max(total.Again, c.Again)
		total.Interrupted = total.Interrupted || c.Interrupted || k.interrupted
		total.VerifyTime += c.VerifyTime + k.verifyTime
		total.Unguarded = errors.Join(total.Unguarded, k.unguarded)
		total.Families[k.kernel.family].Err, k.failed = err, err
	}
	if err := total.Families.Err(); err != nil || len(b.syncers) > 0 {
		return total, err
	}
	return total, fmt.Errorf("iptables-%s works for no address family: %w", b.variant, total.Families.LeftOut())
}

// waiting returns the families that a Sync without verify skips: failed ones, while another one
// works.
func (b *Backend) waiting(verify bool) (skip rules.FamilySet) {
	works := slices.ContainsFunc(b.syncers, func(k *openFamily) bool { return k.failed == nil })
	for _, k := range b.syncers {
		skip[k.kernel.family] = !verify && works && k.failed != nil
	}
	return skip
}

func (b *Backend) syncOne(ctx context.Context, k *openFamily, want rules.Ruleset, verify bool) (c rules.Changes, err error) {
	f := k.kernel.family
	if verify || k.last == nil { // the kernel is to be read back
		err = k.refresh(ctx)
	}
	if err == nil {
		o := b.config.options(f, k.kernel.random, b.acct)
		c, err = k.refusals.Sync(ctx, render.Desired{Rules: want, Options: o.For(want)}, verify)
	}
	if err != nil {
		err = fmt.Errorf("syncing %s with iptables-%s: %w", f, b.variant, err)
	}
	return c, err
}

// Pause makes Sync return after each chunk of large Services and ask to be called again
// (Changes.Again), so that changes of other Services do not wait. Without it, Sync returns when the
// kernel holds everything.
func (b *Backend) Pause() {
	b.pause = true
	for _, k := range b.syncers {
		k.pause = true
	}
}

// ensureCounters creates the nfacct objects, and notes in acct whether they exist. A kernel
// without nfacct only lacks two counters.
func (b *Backend) ensureCounters() {
	err := ensureAcct()
	if err != nil && b.acct {
		b.config.Log.Warn("the nfacct packet counters are gone and cannot be created again", "err", err)
	}
	b.acct = err == nil
}

// committed advances the watermarks of all families after one of them committed transactions since
// generation before. The generation belongs to the namespace, not to a family.
func (b *Backend) committed(before, commits uint32) {
	for _, k := range b.syncers {
		after, known := k.kernel.generation()
		if !known {
			k.mark = watermark{}
			continue
		}
		k.mark = k.mark.advance(before, after, commits)
	}
}

// Trial reports whether the last read-back found chains of a gridproxy with --service-proxy-name.
func (b *Backend) Trial() bool {
	return slices.ContainsFunc(b.syncers, func(k *openFamily) bool { return k.trial })
}

// Quarantine lists the Services that the kernel refused in the last successful Sync, by family.
func (b *Backend) Quarantine() []refusal.Quarantined {
	var all []refusal.Quarantined
	for _, k := range b.syncers {
		all = append(all, k.refusals.Quarantined()...)
	}
	return all
}

// WithoutLocalDNS returns the families whose kernel lacks xt_set: the rules of local DNS are left
// out.
func (b *Backend) WithoutLocalDNS() []netfilter.Family {
	return b.familiesThat((*refusal.Refusals).WithoutLocalDNS)
}

// WithoutAffinity returns the families whose kernel cannot keep a client at its endpoint.
func (b *Backend) WithoutAffinity() []netfilter.Family {
	return b.familiesThat((*refusal.Refusals).WithoutAffinity)
}

// familiesThat returns the open families for which is returns true.
func (b *Backend) familiesThat(is func(*refusal.Refusals) bool) []netfilter.Family {
	var all []netfilter.Family
	for _, k := range b.syncers {
		if is(k.refusals) {
			all = append(all, k.kernel.family)
		}
	}
	return all
}

// RuleCount is how many rules of ours a table holds.
type RuleCount struct {
	Family netfilter.Family
	Table  netfilter.Table
	Rules  int
}

// RuleCounts counts the rules in the kernel after the last Sync, without jumps from built-in
// chains.
func (b *Backend) RuleCounts() []RuleCount {
	var all []RuleCount
	for _, k := range b.syncers {
		for t, n := range k.rules {
			all = append(all, RuleCount{Family: k.kernel.family, Table: netfilter.Table(t), Rules: n})
		}
	}
	return all
}
