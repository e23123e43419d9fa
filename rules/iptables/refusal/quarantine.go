package refusal

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"
)

// MaxReason bounds the reason of a quarantine in bytes, because tools print texts of any length.
const MaxReason = 200

// Quarantined is one port of a Service whose rules the kernel refuses.
type Quarantined struct {
	Service topology.ServicePortName
	Family  netfilter.Family
	Kept    bool   // its last good rules stay, as for default/kubernetes; otherwise its addresses are rejected
	Reason  string // at most MaxReason bytes
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

func hasFrontend(s *rules.Service, f netfilter.Family) bool {
	return slices.ContainsFunc(s.Frontends, func(at rules.Frontend) bool { return at.Addr.Addr().Is6() == (f == netfilter.IPv6) })
}

// reasonOf returns what the tool printed, short enough for an Event.
func reasonOf(e *Error) string {
	text := cmp.Or(e.Output, e.Err.Error())
	if e.Text != "" {
		text += ": " + e.Text
	}
	text = strings.ToValidUTF8(text, "?")
	if len(text) <= MaxReason {
		return text
	}
	const dots = "…"
	return strings.ToValidUTF8(text[:MaxReason-len(dots)], "") + dots
}
