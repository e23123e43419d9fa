package iptables

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"gridproxy/rules/netfilter"
)

// UnreadableError says that a table exists but its rules are unknown, because the tool does not
// print it. It must never be taken for an empty table.
type UnreadableError struct {
	Tool   string // the program, with its path
	Family netfilter.Family
	Table  netfilter.Table
	Reason string // why, and what to do; "" = the tool gave no reason
}

func (e *UnreadableError) Error() string {
	reason := e.Reason
	if reason == "" {
		reason = "the kernel has this table, but the tool printed nothing about it and reported no error; " +
			"run the tool by hand to find out why"
	}
	return fmt.Sprintf("%s does not print table %s of %s, so its rules are unknown: %s",
		e.Tool, e.Table, e.Family, reason)
}

// isUnreadable reports whether an error is about tables that exist but were not printed.
func isUnreadable(err error) bool { return errors.As(err, new(*UnreadableError)) }

func unreadableTables(err error) []netfilter.Table {
	if e, ok := err.(*UnreadableError); ok { //nolint:errorlint // what it wraps comes below
		return []netfilter.Table{e.Table}
	}
	var all []netfilter.Table
	switch e := err.(type) { //nolint:errorlint // as above
	case interface{ Unwrap() error }:
		all = unreadableTables(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all = append(all, unreadableTables(inner)...)
		}
	}
	return all
}

// unprintable returns the error of a table that iptables-nft calls incompatible. It names the
// rule that is the cause.
func (s saver) unprintable(t netfilter.Table) error {
	family := nftFamily(s.family)
	remedy := fmt.Sprintf("; put native nftables rules into a table of their own (nft add table %s NAME)", family)
	rule, found, err := findNativeRule(s.family, t.String())
	var reason string
	switch {
	case found:
		reason = fmt.Sprintf("rule %d of chain %s has the native nftables expression %q, which iptables does not know"+
			"%s, and delete this one (nft delete rule %s %s %s handle %d)",
			rule.handle, rule.chain, rule.expression, remedy, family, t, rule.chain, rule.handle)
	case err != nil:
		reason = fmt.Sprintf("it has native nftables rules; which ones is unknown: %v%s", err, remedy)
	default:
		reason = fmt.Sprintf("it has native nftables rules, which iptables does not know (nft -a list table %s %s prints them)%s",
			family, t, remedy)
	}
	return &UnreadableError{Tool: s.path, Family: s.family, Table: t, Reason: reason}
}

// printed is what a tool printed about tables.
type printed struct {
	tables       [netfilter.Other + 1]bool // printed
	incompatible [netfilter.Other + 1]bool // reported as incompatible, so not printed
}

func (p *printed) read(l netfilter.Line) {
	switch l.Kind {
	case netfilter.LineTable:
		p.tables[l.Table] = true
	case netfilter.LineIncompatible:
		p.incompatible[l.Table] = true
	}
}

// check returns an error unless each of the tables was printed or does not exist.
func (s saver) check(p printed, tables []netfilter.Table) error {
	var errs []error
	var missing []netfilter.Table
	for _, t := range tables {
		switch {
		case p.incompatible[t]:
			errs = append(errs, s.unprintable(t))
		case !p.tables[t]:
			missing = append(missing, t)
		}
	}
	if len(missing) == 0 {
		return errors.Join(errs...)
	}
	existing, err := s.existing()
	if err != nil {
		err = fmt.Errorf("checking whether a table that %s did not print exists: %w", s.path, err)
		return errors.Join(append(errs, err)...)
	}
	for _, t := range missing {
		if slices.Contains(existing, t.String()) {
			errs = append(errs, &UnreadableError{Tool: s.path, Family: s.family, Table: t})
		}
	}
	return errors.Join(errs...)
}

// existing returns the tables that the kernel lists.
func (s saver) existing() ([]string, error) {
	if s.variant == netfilter.VariantNFT {
		return nftTables(s.family)
	}
	return legacyTableNames(s.family)
}

// legacyTableNames returns the legacy tables of one family in the calling thread's network
// namespace. There are none while the kernel module is not loaded.
func legacyTableNames(f netfilter.Family) ([]string, error) {
	file := "/proc/thread-self/net/ip_tables_names"
	if f == netfilter.IPv6 {
		file = "/proc/thread-self/net/ip6_tables_names"
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading which legacy tables exist: %w", err)
	}
	return strings.Fields(string(text)), nil
}

// logUnread logs why the kernel was not read back. An unreadable table needs an operator, so it is
// an error, logged once.
func (k *familySyncer) logUnread(err error) {
	const next = "cannot read the rules back; changes are written, the rest is verified next time"
	if !isUnreadable(err) {
		k.log.Warn(next, "limit", k.limit, "err", err)
		return
	}
	if text := err.Error(); text != k.unread {
		k.unread = text
		k.log.Error(next, "err", err)
	}
}

func (k *familySyncer) wasRead() {
	if k.unread != "" {
		k.unread = ""
		k.log.Info("the rules can be read back again")
	}
}
