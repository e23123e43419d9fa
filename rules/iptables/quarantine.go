package iptables

import (
	"maps"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// maxReason bounds the reason of a quarantine in bytes, because tools print texts of any length.
const maxReason = 200

// Quarantined is one port of a Service whose rules the kernel refuses.
type Quarantined struct {
	Service topology.ServicePortName
	Family  netfilter.Family
	Kept    bool   // its last good rules stay, as for default/kubernetes; otherwise its addresses are rejected
	Reason  string // at most 200 bytes
}

// treatment is what is written instead of a Service that the kernel refuses.
type treatment uint8

const (
	rejected treatment = iota // every frontend is rejected
	kept                      // its last good rules stay
	omitted                   // nothing, because the kernel refuses even a REJECT for it
)

// refusedServices are the Services that the kernel refuses in one family.
type refusedServices map[topology.ServicePortName]refusedService

type refusedService struct {
	service   *rules.Service // as it was refused; another pointer is tried again
	treatment treatment
	lastGood  *rules.Service // with kept
	reason    string
	inPlace   bool // refused in its own chains only
}

// apply returns rs with every refused Service replaced.
func (q refusedServices) apply(rs rules.Ruleset) rules.Ruleset {
	if len(q) == 0 {
		return rs
	}
	rs.Services = slices.Clone(rs.Services)
	for i, s := range rs.Services {
		if r, is := q[s.Name]; is {
			rs.Services[i] = r.instead(s)
		}
	}
	return rs
}

func (r refusedService) instead(s *rules.Service) *rules.Service {
	switch r.treatment {
	case kept:
		return r.lastGood
	case omitted:
		return &rules.Service{Name: s.Name}
	default:
		return render.Reject(s)
	}
}

// among drops the Services that are no longer in list, and returns the others as list has them.
// With changed it returns only those that changed since they were refused.
func (q refusedServices) among(list []*rules.Service, changed bool) []*rules.Service {
	if len(q) == 0 {
		return nil
	}
	var found []*rules.Service
	seen := refusedServices{}
	for _, s := range list {
		if r, is := q[s.Name]; is {
			seen[s.Name] = r
			if !changed || r.service != s {
				found = append(found, s)
			}
		}
	}
	maps.DeleteFunc(q, func(name topology.ServicePortName, _ refusedService) bool {
		_, is := seen[name]
		return !is
	})
	return found
}

// report lists the Services of want that are quarantined, in the order of want.
func (q refusedServices) report(want rules.Ruleset, o render.Options) []Quarantined {
	if len(q) == 0 && !o.WithoutSCTP {
		return nil
	}
	var all []Quarantined
	for _, s := range want.Services {
		r, is := q[s.Name]
		switch {
		case is:
			all = append(all, Quarantined{Service: s.Name, Family: o.Family, Kept: r.treatment == kept, Reason: r.reason})
		case o.LacksMatch(s) && hasFrontend(s, o.Family):
			all = append(all, Quarantined{Service: s.Name, Family: o.Family, Reason: "this kernel lacks the match sctp (module xt_sctp)"})
		}
	}
	return all
}

// hasFrontend reports whether a Service has an address of a family.
func hasFrontend(s *rules.Service, f netfilter.Family) bool {
	return slices.ContainsFunc(s.Frontends, func(at rules.Frontend) bool { return at.Addr.Addr().Is6() == (f == netfilter.IPv6) })
}

// kubernetes returns the name of the API server's Service, without which a node learns nothing.
func kubernetes() types.NamespacedName {
	return types.NamespacedName{Namespace: "default", Name: "kubernetes"}
}

// isKubernetes reports whether a Service is the API server's.
func isKubernetes(name topology.ServicePortName) bool { return name.NamespacedName == kubernetes() }

// reasonOf returns what the tool printed, short enough for an Event.
func reasonOf(e *RestoreError) string {
	text := e.Output
	if text == "" {
		text = e.Err.Error()
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return cut(strings.ToValidUTF8(text, "?"), maxReason)
}

// cut shortens a text to limit bytes.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const dots = "…"
	return strings.ToValidUTF8(text[:limit-len(dots)], "") + dots
}

// Quarantine lists the Services that the kernel refused in the last successful Sync, by family.
func (b *Backend) Quarantine() []Quarantined {
	var all []Quarantined
	for _, k := range b.syncers {
		all = append(all, k.refused...)
	}
	return all
}

// WithoutLocalDNS returns the families whose kernel lacks xt_set: the rules of local DNS are
// left out.
func (b *Backend) WithoutLocalDNS() []netfilter.Family {
	return b.lacking(func(l lacks) bool { return l.set })
}

// WithoutAffinity returns the families whose kernel cannot keep a client at its endpoint.
func (b *Backend) WithoutAffinity() []netfilter.Family {
	return b.lacking(func(l lacks) bool { return l.recent })
}

// lacking returns the families whose kernel lacks a match.
func (b *Backend) lacking(match func(lacks) bool) []netfilter.Family {
	var all []netfilter.Family
	for _, k := range b.syncers {
		if match(k.lacks) {
			all = append(all, k.kernel.family)
		}
	}
	return all
}
