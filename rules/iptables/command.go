package iptables

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"

	"github.com/coreos/go-iptables/iptables"
)

// command runs iptables on single rules and chains. go-iptables knows the arguments of each version
// of the tool, but cannot end it, so each call has a limit here.
type command struct {
	path  string
	ipt   *iptables.IPTables
	limit time.Duration // 0 = as the constants say
}

// openCommand probes a tool and returns what runs it.
func openCommand(ctx context.Context, path string, f netfilter.Family) (command, error) {
	c := command{path: path}
	err := c.within(ctx, versionTimeout, func() (err error) {
		c.ipt, err = iptables.New(iptables.IPFamily(protocolOf(f)), iptables.Path(path), iptables.Timeout(lockSeconds))
		return err
	})
	if err != nil {
		return c, fmt.Errorf("probing %s: %w", path, err)
	}
	return c, nil
}

// tableChanged is what iptables-legacy prints when another process has replaced a table between its
// read and its write. Nothing is written then. Only a process that does not share the xtables lock
// can cause it, such as one in a container without the host's /run/xtables.lock.
const tableChanged = "tables: Resource temporarily unavailable"

// Attempts of a command that fails with tableChanged, and the pause between them.
const (
	changedAttempts = 5
	changedPause    = 50 * time.Millisecond
)

// within runs do, which starts the tool, and kills the tool at the limit. It runs do again if
// that fails with tableChanged.
func (c command) within(ctx context.Context, limit time.Duration, do func() error) error {
	return retried(ctx, changedAttempts, changedPause, func(err error) bool { return strings.Contains(err.Error(), tableChanged) },
		func() error { return c.once(ctx, limit, do) })
}

// retried calls do until it succeeds, its error does not pass, or ctx ends, at most attempts
// times with a pause in between. It returns the last error.
func retried(ctx context.Context, attempts int, pause time.Duration, passes func(error) bool, do func() error) error {
	for attempt := 1; ; attempt++ {
		err := do()
		if err == nil || attempt == attempts || !passes(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}

func (c command) once(ctx context.Context, limit time.Duration, do func() error) error {
	ctx, cancel := withLimit(ctx, c.path, cmp.Or(c.limit, limit))
	defer cancel()
	err := host.Within(ctx, c.path, do)
	if err == nil {
		rules.Progress(ctx)
		return nil
	}
	return errors.Join(err, context.Cause(ctx))
}

// insert inserts a rule at a position of a chain, from 1.
func (c command) insert(ctx context.Context, t netfilter.Table, chain string, at int, rule []string) error {
	return c.within(ctx, commandTimeout, func() error { return c.ipt.Insert(t.String(), chain, at, rule...) })
}

func (c command) appendRule(ctx context.Context, p render.ChainID, rule []string) error {
	return c.within(ctx, commandTimeout, func() error { return c.ipt.Append(p.Table.String(), p.Chain, rule...) })
}

func (c command) hasRule(ctx context.Context, p render.ChainID, rule []string) (there bool, err error) {
	err = c.within(ctx, commandTimeout, func() error {
		there, err = c.ipt.Exists(p.Table.String(), p.Chain, rule...)
		return err
	})
	return there, err
}

func (c command) hasChain(ctx context.Context, p render.ChainID) (there bool, err error) {
	err = c.within(ctx, commandTimeout, func() error {
		there, err = c.ipt.ChainExists(p.Table.String(), p.Chain)
		return err
	})
	return there, err
}

// newChain makes a chain. It is no error if another program has made the chain meanwhile.
func (c command) newChain(ctx context.Context, p render.ChainID) error {
	err := c.within(ctx, commandTimeout, func() error { return c.ipt.NewChain(p.Table.String(), p.Chain) })
	if err != nil {
		if there, _ := c.hasChain(ctx, p); there {
			return nil
		}
	}
	return err
}

func protocolOf(f netfilter.Family) iptables.Protocol {
	if f == netfilter.IPv6 {
		return iptables.ProtocolIPv6
	}
	return iptables.ProtocolIPv4
}

func (c command) version(ctx context.Context) (version, error) {
	ctx, cancel := withLimit(ctx, c.path, cmp.Or(c.limit, versionTimeout))
	defer cancel()
	out, err := host.Command(ctx, c.path, "--version").Output()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return version{}, errors.Join(err, cause)
	}
	if err != nil {
		return version{}, fmt.Errorf("running %s --version: %w", c.path, err)
	}
	rules.Progress(ctx)
	return parseVersion(string(out))
}

// version is the version of a tool. The zero value is unknown.
type version struct {
	number  [3]int
	variant netfilter.Variant // "" = not reported, as before 1.8
}

var versionText = regexp.MustCompile(`v(\d+\.\d+\.\d+)(?:\s+\((\w+)\))?`)

// parseVersion parses what --version prints: "iptables v1.8.9 (nf_tables)".
func parseVersion(text string) (version, error) {
	m := versionText.FindStringSubmatch(text)
	if m == nil {
		return version{}, fmt.Errorf("%.80q names no version of iptables", text)
	}
	var v version
	if _, err := fmt.Sscanf(m[1], "%d.%d.%d", &v.number[0], &v.number[1], &v.number[2]); err != nil {
		return version{}, fmt.Errorf("reading the version of iptables in %.80q: %w", text, err)
	}
	switch m[2] {
	case "nf_tables":
		v.variant = netfilter.VariantNFT
	case "legacy":
		v.variant = netfilter.VariantLegacy
	}
	return v, nil
}

// randomFully reports whether MASQUERADE has --random-fully: since 1.6.2.
func (v version) randomFully() bool {
	return slices.Compare(v.number[:], []int{1, 6, 2}) >= 0
}

func (v version) String() string {
	return fmt.Sprintf("%d.%d.%d", v.number[0], v.number[1], v.number[2])
}
