package rules

import (
	"errors"
	"net/netip"
)

// Family is an address family. It numbers the families as netfilter.Family does.
type Family uint8

// The address families.
const (
	IPv4 Family = iota
	IPv6
)

// Families returns both address families.
func Families() [2]Family { return [2]Family{IPv4, IPv6} }

// String returns "IPv4" or "IPv6", as in metrics and in the body of /healthz.
func (f Family) String() string {
	if f == IPv6 {
		return "IPv6"
	}
	return "IPv4"
}

// Outcome is the result of one Sync for one address family. The zero value says that the
// kernel holds the family's part of the Ruleset. At most one of the two errors is set.
type Outcome struct {
	// Err says what failed. The family is tried again at the next Sync; while another one can be
	// written, at the next that verifies.
	Err error
	// LeftOut says why the family is not served on this machine: its tool is not installed,
	// or the kernel does not have the family. It is no failure, and it may change.
	LeftOut error
}

// Synced reports whether the kernel holds the family's part of the Ruleset.
func (o Outcome) Synced() bool { return o.Err == nil && o.LeftOut == nil }

// join combines the outcomes of two Backends. A failure counts before a family that is left out.
func (o Outcome) join(p Outcome) Outcome {
	if err := either(o.Err, p.Err); err != nil {
		return Outcome{Err: err}
	}
	return Outcome{LeftOut: either(o.LeftOut, p.LeftOut)}
}

// either joins two errors. A single one is returned unchanged.
func either(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	default:
		return errors.Join(a, b)
	}
}

// Outcomes is the result of one Sync for each address family, by Family. The zero value says
// that the kernel holds the whole Ruleset.
type Outcomes [2]Outcome

// FamilySet is a set of address families, by Family.
type FamilySet [2]bool

// Synced returns the families whose part of the Ruleset the kernel holds.
func (o Outcomes) Synced() FamilySet { return FamilySet{o[IPv4].Synced(), o[IPv6].Synced()} }

// FamilyOf returns the family of an address.
func FamilyOf(a netip.Addr) Family {
	if a.Is6() {
		return IPv6
	}
	return IPv4
}

// Err joins the errors of the families that failed; nil = none did.
func (o Outcomes) Err() error { return errors.Join(o[IPv4].Err, o[IPv6].Err) }

// LeftOut joins the reasons for which families are left out; nil = none is.
func (o Outcomes) LeftOut() error { return errors.Join(o[IPv4].LeftOut, o[IPv6].LeftOut) }

// Join returns the outcome of two Backends together.
func (o Outcomes) Join(p Outcomes) Outcomes {
	for f := range o {
		o[f] = o[f].join(p[f])
	}
	return o
}

// With returns o after a Sync that returned err. If no family reports an error, err counts as
// an error of both.
func (o Outcomes) With(err error) Outcomes {
	if err == nil || o.Err() != nil {
		return o
	}
	return Outcomes{{Err: err}, {Err: err}}
}
