package iptables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// Comment suffixes by which other processes see that the kernel refuses a Service in part or whole.
const (
	commentQuarantined = " is quarantined: this kernel refuses its rules"
	commentNoSCTP      = " is quarantined: this kernel lacks xt_sctp"
	commentNoAffinity  = " (no affinity: this kernel lacks xt_recent)"
	commentNoIPVS      = " (this kernel lacks xt_ipvs)"
)

// Evidence is what the rules of one family say about Services that the kernel refused in part or
// whole. The names are those of Service ports, as rules.Service.Name prints them.
type Evidence struct {
	Quarantined     map[string]bool
	WithoutAffinity map[string]bool
	withoutSCTP     bool
	withoutIPVS     bool
}

func newEvidence() Evidence {
	return Evidence{Quarantined: map[string]bool{}, WithoutAffinity: map[string]bool{}}
}

func (e *Evidence) read(line netfilter.Line) {
	comment := line.Rule.Comment
	switch {
	case line.Kind != netfilter.LineRule || line.Foreign:
	case strings.HasSuffix(comment, commentQuarantined):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, commentQuarantined))] = true
	case strings.HasSuffix(comment, commentNoSCTP):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, commentNoSCTP))] = true
		e.withoutSCTP = true
	case strings.HasSuffix(comment, commentNoIPVS):
		e.withoutIPVS = true
	case strings.HasSuffix(comment, commentNoAffinity):
		name, _, _ := strings.Cut(comment, " -> ")
		e.WithoutAffinity[strings.Clone(name)] = true
	}
}

func (e *Evidence) any() bool { return len(e.Quarantined)+len(e.WithoutAffinity) > 0 || e.withoutIPVS }

// apply returns w as this kernel accepts it.
func (e *Evidence) apply(w desired) desired {
	w.options.WithoutRecent = len(e.WithoutAffinity) > 0
	w.options.WithoutSCTP = e.withoutSCTP
	w.options.WithoutIPVS = e.withoutIPVS
	q := refusedServices{}
	for _, s := range w.rules.Services {
		if e.Quarantined[s.Name.String()] {
			q[s.Name] = refusedService{service: s, treatment: rejected}
		}
	}
	w.rules = q.apply(w.rules)
	return w
}

// ReadEvidence reads Evidence from this machine's rules, of both families. It writes nothing. A
// family without tools has no rules.
func ReadEvidence(ctx context.Context, v netfilter.Variant, n netfilter.Naming) (Evidence, error) {
	found := newEvidence()
	var errs []error
	for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		path, err := findTool(toolName(v, f, "-save"))
		if err != nil {
			continue
		}
		for line, err := range (saver{path: path, family: f}).lines(ctx, "") {
			if err != nil {
				errs = append(errs, fmt.Errorf("reading the rules of %s: %w", f, err))
				break
			}
			if n.IsOurs(line.Table, line.Chain) {
				found.read(line)
			}
		}
	}
	return found, errors.Join(errs...)
}

// refusedBecause returns the comment of a rule that refuses a Service without rules in nat.
func (o Options) refusedBecause(s *rules.Service, v rules.Verdict) string {
	switch {
	case o.lacks(s):
		return s.Name.String() + commentNoSCTP
	case v == rules.Quarantine:
		return s.Name.String() + commentQuarantined
	default:
		return s.Name.String() + " has no endpoints"
	}
}
