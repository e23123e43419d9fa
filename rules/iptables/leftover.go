package iptables

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
)

// mostNamed is how many chains one error names.
const mostNamed = 5

// left returns an error if something stale remains after the removal, because it was written
// again.
func left(ks *kernelState) error {
	c := changeOf(render.Block{}, &kernelPart{ks, true}, ks.options)
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

// shortened returns the first names, and how many more there are.
func shortened(names []string) string {
	text := strings.Join(names[:min(mostNamed, len(names))], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unreadableLeft returns an error if the kernel lists chains of ours in a table that cannot be
// read. Without a chain of ours there is no jump to one.
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
// them.
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
