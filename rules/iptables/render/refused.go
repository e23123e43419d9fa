package render

import (
	"slices"

	"gridproxy/rules"
)

// Comment suffixes by which other processes see that the kernel refuses a Service in part or whole.
const (
	CommentQuarantined = " is quarantined: this kernel refuses its rules"
	CommentNoSCTP      = " is quarantined: this kernel lacks xt_sctp"
	CommentNoAffinity  = " (no affinity: this kernel lacks xt_recent)"
	CommentNoIPVS      = " (this kernel lacks xt_ipvs)"
)

// Reject returns s as a Service that rejects at each frontend and has no rules in nat.
func Reject(s *rules.Service) *rules.Service {
	closed := *s
	closed.Sets, closed.Serving = nil, nil
	closed.Frontends = slices.Clone(s.Frontends)
	for i := range closed.Frontends {
		f := &closed.Frontends[i]
		f.Allow, f.Routes, f.Verdict = nil, nil, rules.Quarantine
	}
	return &closed
}

// refusedBecause returns the comment of a rule that refuses a Service without rules in nat.
func (o Options) refusedBecause(s *rules.Service, v rules.Verdict) string {
	switch {
	case o.LacksMatch(s):
		return s.Name.String() + CommentNoSCTP
	case v == rules.Quarantine:
		return s.Name.String() + CommentQuarantined
	default:
		return s.Name.String() + " has no endpoints"
	}
}
