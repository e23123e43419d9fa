package iptables

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"slices"
	"strings"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// NewCleaner makes a Backend for Cleanup alone. It opens no family, so it also cleans up where a
// family cannot be read or written.
func NewCleaner(c Config) *Backend {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Families = []netfilter.Family{netfilter.IPv4, netfilter.IPv6}
	variant := c.Variant
	if variant != netfilter.VariantLegacy {
		variant = netfilter.VariantNFT // both are cleaned, this one first
	}
	return &Backend{config: c, variant: variant, families: newFamilies[*openFamily](c, variant, nil)}
}

// Cleanup removes our chains and the jumps to them, kube-proxy's too, from both families and from
// every variant whose tools are installed. Under GridNames it removes only chains with these names,
// otherwise those of every Naming. KUBE-FIREWALL stays, because the kubelet relies on it, and so do
// the rules of other programs. A chain of ours that such a rule leads to stays too, with a warning.
// Everything else that remains or cannot be read is an error. Cleanup is idempotent. It counts in
// Config.Removal, which may say that nothing is to be removed.
func (b *Backend) Cleanup(ctx context.Context) error {
	for _, k := range b.syncers {
		k.last, k.mark, k.rules = nil, watermark{}, [2]int{}
	}
	var errs []error
	for _, v := range []netfilter.Variant{b.variant, otherVariant(b.variant)} {
		for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
			if err := b.cleanup(ctx, v, f); err != nil {
				errs = append(errs, fmt.Errorf("cleaning up %s in iptables-%s: %w", f, v, err))
			}
		}
	}
	return errors.Join(errs...)
}

// cleanup cleans one family of one variant, and reads back whether that is done. It also cleans
// if another table cannot be read. If Removal is dry, it only counts.
func (b *Backend) cleanup(ctx context.Context, v netfilter.Variant, f netfilter.Family) error {
	save, errSave := exec.LookPath(toolName(v, f, "-save"))
	restore, errRestore := exec.LookPath(toolName(v, f, "-restore"))
	if errSave != nil || errRestore != nil {
		return b.leftWithoutTools(v, f)
	}
	from := saver{path: save, variant: v, family: f}
	ks, unreadable, err := b.readOurs(ctx, from)
	if err != nil {
		return err
	}
	for _, id := range ks.sorted(render.Stale) {
		for _, pin := range ks.chain(id).leftover.pins {
			b.config.Log.Warn("kept a chain of ours, because a rule of another program leads to it",
				"family", f.String(), "variant", string(v), "chain", id.String(), "rule", pin)
		}
	}
	s := newScript(ks.options)
	s.take(removal(ks))
	text, _ := s.text()
	if len(text) == 0 || b.config.Removal.IsDry() {
		b.countRemoval(ks, v)
		return b.unreadableLeft(from, unreadable)
	}
	logInput(ctx, b.config.Log, text)
	if err := (restorer{path: restore}).run(ctx, text); err != nil {
		return errors.Join(err, b.unreadableLeft(from, unreadable))
	}
	b.countRemoval(ks, v)
	ks, unreadable, err = b.readOurs(ctx, from)
	if err != nil {
		return fmt.Errorf("reading back whether our rules are gone: %w", err)
	}
	return errors.Join(left(ks), b.unreadableLeft(from, unreadable))
}

// countRemoval counts the chains that are removed, the rules in them, and the jumps to them.
func (b *Backend) countRemoval(ks *kernelState, v netfilter.Variant) {
	c := removal(ks)
	where := func(t netfilter.Table) string {
		return fmt.Sprintf("iptables-%s %s %s", v, ks.options.Family, t)
	}
	for _, id := range c.drop {
		b.config.Removal.Add(where(id.Table), "chains", 1)
		b.config.Removal.Add(where(id.Table), "rules", ks.chain(id).leftover.rules)
	}
	for _, r := range c.removeText {
		b.config.Removal.Add(where(r.Table), "rules", 1)
	}
}

// readOurs reads our chains, with no chain desired. unreadable is the error about tables that
// cannot be read; nil = all can be read.
func (b *Backend) readOurs(ctx context.Context, from saver) (ks *kernelState, unreadable, err error) {
	ks = newKernelState(render.Options{Family: from.family, Names: b.config.Names}, removing, 0)
	// Without a named table, neither variant creates a table that does not exist.
	for line, err := range from.lines(ctx, "", netfilter.Filter, netfilter.NAT, netfilter.Mangle) {
		switch {
		case isUnreadable(err):
			unreadable = err
		case err != nil:
			return nil, nil, err
		default:
			if line.Kind == netfilter.LineChain && line.Table == netfilter.Filter && line.Chain == netfilter.ChainFirewall {
				b.config.Removal.FindFirewall()
			}
			ks.read(line)
		}
	}
	return ks, unreadable, nil
}

// removal returns the change that removes what is stale.
func removal(ks *kernelState) (c change) {
	ks.removeUndesired(&c)
	return c
}

// mostNamed is how many chains one error names.
const mostNamed = 5

// left returns an error if something stale remains after the removal, because it was written
// again.
func left(ks *kernelState) error {
	c := removal(ks)
	var names []string
	for _, id := range c.drop {
		names = append(names, id.String())
	}
	for _, r := range c.removeText {
		names = append(names, "a jump in "+r.ChainID.String())
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("after the removal there still are %s: another process (gridproxy run, kube-proxy) writes them again; "+
		"stop it first", shortened(names))
}

// shortened returns a text with the first names, and how many more there are.
func shortened(names []string) string {
	text := strings.Join(names[:min(mostNamed, len(names))], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unreadableLeft returns an error if tables that cannot be read, as unreadable says (nil =
// none), may hold chains of ours. With nft the kernel lists their chains; with legacy they
// always may. Without a chain of ours there is no jump to one.
func (b *Backend) unreadableLeft(from saver, unreadable error) error {
	if unreadable == nil || from.variant != netfilter.VariantNFT {
		return unreadable
	}
	names, err := b.chainsByName(from.family, unreadableTables(unreadable))
	switch {
	case err != nil:
		return errors.Join(unreadable, err)
	case len(names) == 0:
		return nil
	default:
		return fmt.Errorf("chains of ours are left, %s: %w", shortened(names), unreadable)
	}
}

// chainsByName returns our chains in iptables-nft's tables of a family, as the kernel lists
// them, such as "nat/KUBE-SERVICES".
func (b *Backend) chainsByName(f netfilter.Family, tables []netfilter.Table) ([]string, error) {
	var ours []string
	for _, t := range tables {
		names, err := nftChains(f, t.String())
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if id := (render.ChainID{Table: t, Chain: name}); removing.removes(id, b.config.Names) {
				ours = append(ours, id.String())
			}
		}
	}
	return ours, nil
}

// leftWithoutTools returns an error if a variant without installed tools may have rules of ours.
func (b *Backend) leftWithoutTools(v netfilter.Variant, f netfilter.Family) error {
	tools := toolName(v, f, "-save") + " and " + toolName(v, f, "-restore")
	if v == netfilter.VariantNFT {
		names, err := b.chainsByName(f, []netfilter.Table{netfilter.Filter, netfilter.NAT, netfilter.Mangle})
		if noNFTables(err) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("the kernel has chains of ours, %s, but %s are not installed; install iptables and try again",
			shortened(names), tools)
	}
	tables, err := legacyTableNames(f)
	if err != nil {
		return err
	}
	for _, t := range []netfilter.Table{netfilter.Filter, netfilter.NAT, netfilter.Mangle} {
		if slices.Contains(tables, t.String()) {
			return fmt.Errorf("the kernel has legacy table %s, which may hold chains of ours, but %s are not installed; "+
				"install iptables and try again", t, tools)
		}
	}
	return nil
}
