package driver

import (
	"context"
	"errors"
	"log/slog"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// NewCleaner makes a Backend whose Cleanup removes what any mode has left, independent of the
// mode in the options, and counts it in removal. Nothing is probed here: what cannot be removed
// is an error of Cleanup.
func NewCleaner(ctx context.Context, o options.Options, removal *rules.Removal, log *slog.Logger) rules.Backend {
	var cleaner rules.Backend
	for _, m := range modes() {
		cleaner = m.cleaner(ctx, o, cleaner, removal, log)
	}
	return cleaner
}

// Cleaned returns the answer of a successful Cleanup, as one line.
func Cleaned(o options.Options) string {
	if o.ServiceProxyName != "" {
		return "chains whose names begin with " + names(o).Prefix() + " and the jumps to them are gone from filter and nat; all others are as they were\n"
	}
	return "our chains and jumps are gone from filter and nat; so are our virtual servers, sets and link, if there were any\n"
}

// DescribeFirewall returns the last line of a Cleanup, which names KUBE-FIREWALL if the kernel
// has it. It returns "" otherwise, and for a daemon that uses other names.
func DescribeFirewall(o options.Options, r rules.Removal) string {
	if o.ServiceProxyName != "" || !r.FoundFirewall {
		return ""
	}
	return "left: chain " + netfilter.ChainFirewall + " in filter and the jumps to it, because the kubelet writes and needs them too\n"
}

// halfCleaner removes what some modes have left, if what another one has left cannot be removed.
type halfCleaner struct {
	rules.Backend
	err error // why it cannot
}

// Cleanup removes what it can. It always returns an error, because something may be left.
func (c halfCleaner) Cleanup(ctx context.Context) error {
	return errors.Join(c.Backend.Cleanup(ctx), c.err)
}
