package iptables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// The ends of comments by which other processes recognise in the kernel that a Service is not
// served as it should be, because the kernel does not take that.
const (
	commentQuarantined = " is quarantined: this kernel refuses its rules"
	commentNoSCTP      = " is quarantined: this kernel lacks xt_sctp"
	commentNoAffinity  = " (no affinity: this kernel lacks xt_recent)"
)

// Evidence is what the rules of one family say of Services that the kernel does not take as they
// should be. The names are those of Service ports, as rules.Service.Name prints them.
type Evidence struct {
	Quarantined     map[string]bool
	WithoutAffinity map[string]bool
	withoutSCTP     bool
}

func newEvidence() Evidence {
	return Evidence{Quarantined: map[string]bool{}, WithoutAffinity: map[string]bool{}}
}

// read takes in one line of iptables-save.
func (e *Evidence) read(line netfilter.Line) {
	comment := line.Rule.Comment
	switch {
	case line.Kind != netfilter.LineRule || line.Foreign:
	case strings.HasSuffix(comment, commentQuarantined):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, commentQuarantined))] = true
	case strings.HasSuffix(comment, commentNoSCTP):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, commentNoSCTP))] = true
		e.withoutSCTP = true
	case strings.HasSuffix(comment, commentNoAffinity):
		name, _, _ := strings.Cut(comment, " -> ")
		e.WithoutAffinity[strings.Clone(name)] = true
	}
}

func (e *Evidence) any() bool { return len(e.Quarantined)+len(e.WithoutAffinity) > 0 }

// apply is w as the kernel takes it by this evidence.
func (e *Evidence) apply(w written) written {
	w.options.WithoutRecent = len(e.WithoutAffinity) > 0
	w.options.WithoutSCTP = e.withoutSCTP
	q := quarantine{}
	for _, s := range w.rules.Services {
		if e.Quarantined[s.Name.String()] {
			q[s.Name] = refused{service: s, treatment: rejected}
		}
	}
	w.rules = q.apply(w.rules)
	return w
}

// ReadEvidence reads what this machine's rules say of Services that its kernel does not take as
// they should be, of both families. It writes nothing. A family without tools has no rules.
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

// refusedBecause is the comment of a rule that refuses what has no rules in nat.
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
