package ipvs

import (
	"context"

	"gridproxy/rules/netfilter"
)

// What follows is used of Tables that write chains of iptables, beside rules.Backend. Whoever
// makes Tables hands it in with them; this package starts no program of iptables itself.

// familyLister says which families can be written by now.
type familyLister interface {
	Families() []netfilter.Family
}

// opener tries again to open families.
type opener interface {
	Open(ctx context.Context, verify bool)
}

// restorer tries rules that only the kernel can judge. Of Tables that are none, iptables is not
// asked what the kernel lacks.
type restorer interface {
	// Restore runs one input through iptables-restore --noflush, also in a family that is not
	// open. locked says that another program held the xtables lock: nothing was written.
	Restore(ctx context.Context, f netfilter.Family, input string) (locked bool, err error)
}
