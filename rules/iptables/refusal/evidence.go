package refusal

import (
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
	WithoutIPVS     bool
}

// NewEvidence returns Evidence of nothing.
func NewEvidence() Evidence {
	return Evidence{Quarantined: map[string]bool{}, WithoutAffinity: map[string]bool{}}
}

// Read adds what a rule of ours says.
func (e *Evidence) Read(line netfilter.Line) {
	comment := line.Rule.Comment
	switch {
	case line.Kind != netfilter.LineRule || line.Foreign:
	case strings.HasSuffix(comment, render.CommentQuarantined):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, render.CommentQuarantined))] = true
	case strings.HasSuffix(comment, render.CommentNoSCTP):
		e.Quarantined[strings.Clone(strings.TrimSuffix(comment, render.CommentNoSCTP))] = true
		e.withoutSCTP = true
	case strings.HasSuffix(comment, render.CommentNoIPVS):
		e.WithoutIPVS = true
	case strings.HasSuffix(comment, render.CommentNoAffinity):
		name, _, _ := strings.Cut(comment, " -> ")
		e.WithoutAffinity[strings.Clone(name)] = true
	}
}

// Any reports whether the kernel refused something.
func (e *Evidence) Any() bool { return len(e.Quarantined)+len(e.WithoutAffinity) > 0 || e.WithoutIPVS }

// Apply returns w as this kernel accepts it.
func (e *Evidence) Apply(w render.Desired) render.Desired {
	w.Options.WithoutRecent = len(e.WithoutAffinity) > 0
	w.Options.WithoutSCTP = e.withoutSCTP
	w.Options.WithoutIPVS = e.WithoutIPVS
	q := refusedServices{}
	for _, s := range w.Rules.Services {
		if e.Quarantined[s.Name.String()] {
			q[s.Name] = refusedService{service: s, treatment: rejected}
		}
	}
	w.Rules = q.apply(w.Rules)
	return w
}
