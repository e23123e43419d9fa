package iptables

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// mostNamed is how many chains one error names.
const mostNamed = 5

// left is an error if there is still something to be removed: what was removed came back.
func (s *sweep) left() error {
	stay := s.staying()
	var names []string
	for _, p := range slices.SortedFunc(maps.Keys(s.chains), comparePlaces) {
		if !stay[p] {
			names = append(names, p.String())
		}
	}
	for _, r := range s.jumps {
		names = append(names, "a jump in "+r.place.String())
	}
	if len(names) == 0 {
		return nil
	}
	return fmt.Errorf("after the removal there still are %s: another process (gridproxy run, kube-proxy) writes them again; "+
		"stop it first", shortened(names))
}

// shortened names the first few.
func shortened(names []string) string {
	text := strings.Join(names[:min(mostNamed, len(names))], ", ")
	if more := len(names) - mostNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// unreadableLeft is an error if a table that cannot be read holds chains of ours, by the
// kernel's own word. Without a chain of ours there is no jump to one.
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

// chainsByName are the chains of ours that the kernel has in iptables-nft's tables of a family,
// whatever rules the tables have.
func (b *Backend) chainsByName(f netfilter.Family, tables []netfilter.Table) ([]string, error) {
	s := sweep{grid: b.config.Names == netfilter.GridNames}
	var ours []string
	for _, t := range tables {
		names, err := nftChains(f, t.String())
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			if p := (place{t, name}); s.ours(p) {
				ours = append(ours, p.String())
			}
		}
	}
	return ours, nil
}

// leftWithoutTools is an error if the kernel has rules of a variant that may be ours, although the
// variant's tools are not installed.
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
		return fmt.Errorf("there are chains of ours, %s, but %s are not installed; install iptables and try again",
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
