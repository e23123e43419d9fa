package health

import (
	"net/netip"

	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

// families are the address families that this node serves and needs.
type families struct {
	served rules.FamilySet // not left out
	needed rules.FamilySet // with an address or a Pod CIDR here
}

// familiesOf returns the families that a run served, and those that this node needs. Loopback
// and link-local addresses do not count: every kernel has them.
func familiesOf(r syncer.Result) families {
	var now families
	for f, o := range r.Changes.Families {
		now.served[f] = o.LeftOut == nil
	}
	for _, a := range r.Snapshot.Host.Addrs {
		if !a.IsLoopback() && !a.IsLinkLocalUnicast() {
			now.needed[rules.FamilyOf(a)] = true
		}
	}
	for _, p := range r.Ruleset.Local.Prefixes {
		now.needed[rules.FamilyOf(p.Addr())] = true
	}
	if node := r.Snapshot.Self; node != nil {
		for _, cidr := range append([]string{node.Spec.PodCIDR}, node.Spec.PodCIDRs...) {
			if p, err := netip.ParsePrefix(cidr); err == nil {
				now.needed[rules.FamilyOf(p.Addr())] = true
			}
		}
	}
	return now
}

// required returns the served families that the health of the node depends on: those that it
// needs, or all of them if it needs none.
func (s families) required() rules.FamilySet {
	required := rules.FamilySet{s.served[0] && s.needed[0], s.served[1] && s.needed[1]}
	if required == (rules.FamilySet{}) {
		return s.served
	}
	return required
}

// ready reports whether each required family has synced at least once, and one is required.
func (s families) ready(synced rules.FamilySet) bool {
	required := s.required()
	for f := range required {
		if required[f] && !synced[f] {
			return false
		}
	}
	return required != rules.FamilySet{}
}
