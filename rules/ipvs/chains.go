package ipvs

import (
	"context"

	"gridproxy/rules/netfilter"
)

// These interfaces are what BackendConfig.Tables may offer beside rules.Backend. A Backend of
// iptables has all three, its Shadow the first two. This package runs no iptables itself.

// familyLister says which families can be written by now.
type familyLister interface {
	Families() []netfilter.Family
}

// opener tries again to open families.
type opener interface {
	Open(ctx context.Context, verify bool)
}

// restorer tries rules, to find out which matches the kernel has. Tables without it are not asked.
type restorer interface {
	// Restore writes one input with iptables-restore --noflush, also in a family that is not open.
	// locked reports that another program held the xtables lock, so that nothing was written.
	Restore(ctx context.Context, f netfilter.Family, input string) (locked bool, err error)
}
