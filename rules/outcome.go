package rules

import (
	"errors"
	"net/netip"
	"slices"
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

// Unspecified returns the unspecified address, which stands for each address of the family.
func (f Family) Unspecified() netip.Addr {
	if f == IPv6 {
		return netip.IPv6Unspecified()
	}
	return netip.IPv4Unspecified()
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
	if err := errors.Join(o.Err, p.Err); err != nil {
		return Outcome{Err: err}
	}
	return Outcome{LeftOut: errors.Join(o.LeftOut, p.LeftOut)}
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

// OtherWrites is what a verify found that another process had written into our chains, servers or
// sets after we had written them. What was only removed does not count, nor does what existed
// before our first Sync.
type OtherWrites struct {
	Places int      // chains, virtual servers, addresses and set entries
	First  []string // the first few of them, at most MaxPlaces
}

// MaxPlaces is how many places an OtherWrites names.
const MaxPlaces = 5

// NewOtherWrites makes an OtherWrites of these places.
func NewOtherWrites(places []string) OtherWrites {
	return OtherWrites{Places: len(places), First: slices.Clone(places[:min(len(places), MaxPlaces)])}
}

// Add returns the sum of both. Its First has at most MaxPlaces places.
func (w OtherWrites) Add(more OtherWrites) OtherWrites {
	first := slices.Concat(w.First, more.First)
	return OtherWrites{Places: w.Places + more.Places, First: first[:min(len(first), MaxPlaces)]}
}

// Removal is what a Cleanup removes, counted by it. A nil Removal counts nothing.
type Removal struct {
	DryRun bool // only count: nothing is removed
	Items  []RemovedItem

	FoundFirewall bool // KUBE-FIREWALL exists, which no Cleanup removes
}

// RemovedItem counts things of one kind at one place.
type RemovedItem struct {
	Where string // such as "iptables-nft IPv4 nat"
	What  string // such as "chains"
	Count int
}

// Add counts n more things; 0 adds nothing.
func (r *Removal) Add(where, what string, n int) {
	if r == nil || n == 0 {
		return
	}
	for i := range r.Items {
		if r.Items[i].Where == where && r.Items[i].What == what {
			r.Items[i].Count += n
			return
		}
	}
	r.Items = append(r.Items, RemovedItem{where, what, n})
}

// FindFirewall records that KUBE-FIREWALL exists.
func (r *Removal) FindFirewall() {
	if r != nil {
		r.FoundFirewall = true
	}
}

// IsDry reports whether nothing is to be removed.
func (r *Removal) IsDry() bool { return r != nil && r.DryRun }
