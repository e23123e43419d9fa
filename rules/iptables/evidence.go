package iptables

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"gridproxy/rules/iptables/render"
	"gridproxy/rules/netfilter"
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
	case strings.HasSuffix(comment, render.CommentQuarantined):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, render.CommentQuarantined))] = true
	case strings.HasSuffix(comment, render.CommentNoSCTP):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, render.CommentNoSCTP))] = true
		e.withoutSCTP = true
	case strings.HasSuffix(comment, render.CommentNoIPVS):
		e.withoutIPVS = true
	case strings.HasSuffix(comment, render.CommentNoAffinity):
		name, _, _ := strings.Cut(comment, " -> ")
		e.WithoutAffinity[strings.Clone(name)] = true
	}
}

func (e *Evidence) any() bool { return len(e.Quarantined)+len(e.WithoutAffinity) > 0 || e.withoutIPVS }

// apply returns w as this kernel accepts it.
func (e *Evidence) apply(w render.Desired) render.Desired {
	w.Options.WithoutRecent = len(e.WithoutAffinity) > 0
	w.Options.WithoutSCTP = e.withoutSCTP
	w.Options.WithoutIPVS = e.withoutIPVS
	q := refusedServices{}
	for _, s := range w.Rules.Services {
		if e.Quarantined[s.Name.String()] {
			q[s.Name] = refusedService{service: s, treatment: rejected}
		}
	}
	w.Rules = q.apply(w.Rules)
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
