package ipvs

import (
	"context"
	"fmt"
	"slices"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// adopt takes into use the families that Tables can write by now, after probing what virtual
// servers need of the kernel. The result is the outcome of those that cannot be used yet. A family
// that was probed in vain is probed again only with verify, while another one is in use.
func (b *Backend) adopt(ctx context.Context, verify bool) (failed rules.Outcomes) {
	before := b.unusable
	defer func() { b.unusable = failed }()
	tables, ok := b.config.Tables.(familyLister)
	if !ok || b.config.Retire {
		return failed
	}
	if o, ok := tables.(opener); ok {
		o.Open(ctx, verify)
	}
	for _, f := range tables.Families() {
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

// probe names everything that the kernel lacks for some families in one error.
func (b *Backend) probe(ctx context.Context, families ...netfilter.Family) error {
	chains, _ := b.config.Tables.(restorer)
	p := prober{kernel: b.kernel, chains: chains, families: families}
	return p.run(ctx, b.config.Scheduler)
}

// held says of which families nothing may be taken away, because their chains could not be
// written.
type held [2]bool

func heldOf(chains rules.Outcomes) (h held) {
	for f, o := range chains {
		h[f] = o.Err != nil
	}
	return h
}

// family is the address family that an Op is about.
func (op Op) family() netfilter.Family {
	switch op.Kind {
	case AddEntry, DeleteEntry:
		if op.Entry.Net.IsValid() {
			return familyOf(op.Entry.Net.Addr())
		}
		for _, s := range ourSets() { // a bitmap:port of kube-proxy's
			if s.name == op.Entry.Set {
				return s.family
			}
		}
		return netfilter.IPv4
	case AddAddress, DeleteAddress:
		return familyOf(op.Addr)
	default:
		return op.Destination.Server.family()
	}
}

// without leaves out the Ops of families that are held.
func (h held) without(ops []Op) []Op {
	if h == (held{}) {
		return ops
	}
	return slices.DeleteFunc(ops, func(op Op) bool { return h[op.family()] })
}
