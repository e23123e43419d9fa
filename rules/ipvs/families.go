package ipvs

import (
	"context"
	"fmt"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// These interfaces are what BackendConfig.Tables may offer beside rules.Backend. A Backend of
// iptables has both, its Shadow the first one. This package runs no iptables itself.

type familyOpener interface {
	// Open tries again to open families.
	Open(ctx context.Context, verify bool)
	// Families returns those that can be written by now.
	Families() []netfilter.Family
}

// restorer tries rules, to find out which matches the kernel has. Tables without it are not asked.
type restorer interface {
	// Restore writes one input with iptables-restore --noflush, also in a family that is not open.
	// locked reports that another program held the xtables lock, so that nothing was written.
	Restore(ctx context.Context, f netfilter.Family, input string) (locked bool, err error)
}

// openFamilies lets Tables try to open families, and returns those whose chains it can write by
// now. It returns false if Tables cannot report families.
func (c BackendConfig) openFamilies(ctx context.Context, verify bool) ([]netfilter.Family, bool) {
	tables, ok := c.Tables.(familyOpener)
	if !ok {
		return nil, false
	}
	tables.Open(ctx, verify)
	return append([]netfilter.Family{}, tables.Families()...), true // never nil, which would be both
}

// adopt adds to the families in use those whose chains can be written by now, if the kernel has
// what virtual servers need, which it probes. It returns the errors of those that it could not
// add. While another family is in use, one whose probe failed is probed again only with verify.
// With Retire it does nothing.
func (b *Backend) adopt(ctx context.Context, verify bool) (failed rules.Outcomes) {
	before := b.unusable
	defer func() { b.unusable = failed }()
	if b.config.Retire {
		return failed
	}
	families, _ := b.config.openFamilies(ctx, verify)
	for _, f := range families {
		if slices.Contains(b.config.Families, f) {
			continue
		}
		if !verify && len(b.config.Families) > 0 && before[f].Err != nil {
			failed[f] = before[f]
			continue
		}
		if err := b.probe(ctx, f); err != nil {
			failed[f].Err = fmt.Errorf("taking virtual servers of %s into use: %w", f, err)
			continue
		}
		b.config.Families = append(slices.Clone(b.config.Families), f) // Compiler compares the old slice
		slices.Sort(b.config.Families)
		b.known = false // its sets must be made
	}
	return failed
}

// probe tries in the kernel what IPVS mode needs for some families. One error names everything
// that is missing; it is errLocked if another program holds the xtables lock.
func (b *Backend) probe(ctx context.Context, families ...netfilter.Family) error {
	chains, _ := b.config.Tables.(restorer)
	p := prober{kernel: b.kernel, chains: chains, families: families}
	return p.run(ctx, b.config.Scheduler)
}
