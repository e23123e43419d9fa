package status

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/topology/excerpt"
)

// judged returns s with its problems. The daemon is healthy if it has none.
func judged(s Status) Status {
	s.Problems = problems(s)
	s.Healthy = len(s.Problems) == 0
	return s
}

// problems returns the reasons why a daemon is not healthy, each with what to do. Every wait is
// compared with the limit of /healthz.
func problems(s Status) []string {
	var all []string
	add := func(format string, args ...any) { all = append(all, excerpt.Message(fmt.Sprintf(format, args...))) }
	syncProblems(s, add)
	knowledgeProblems(s, add)
	if !s.Node.Known && s.LastSync != nil && s.Services.Closed > 0 {
		add("there is no Node %s, so that closed Services (%d) refuse connections here until it appears; check --node-name", s.Node.Name, s.Services.Closed)
	}
	if len(s.Quarantined) > 0 {
		q := s.Quarantined[0]
		add("quarantined Services: %d, because the kernel refuses their rules; the first is %s, port %s of %s (%s); gridproxy explain shows each",
			s.Services.Quarantined, q.Service, cmp.Or(q.Port, "without a name"), q.Family, q.Reason)
	}
	if s.OtherProxy != nil {
		add("%s", s.OtherProxy.Message)
	}
	return all
}

// syncProblems calls add with each problem with what is not in the kernel.
func syncProblems(s Status, add func(string, ...any)) {
	waits := s.age(s.Sync.Pending)
	found := false
	for _, f := range s.Families {
		// While a sync hangs, the state of a family is that before it.
		if f.State == metrics.StateFailed && !f.Healthy && !s.Sync.Hangs {
			found = true
			add("%s fails: %s; the rules in force stay, and the daemon tries again", f.Name, f.Reason)
		}
	}
	switch {
	case s.Sync.Hangs:
		add("the sync in progress hangs: its last step was %s ago, a change has waited for %s; the rules in force stay; see the processes that the daemon started, and restart it",
			s.age(s.Sync.LastStep), waits)
	case found:
	case s.late() && !s.Sync.LastStep.IsZero():
		add("the sync in progress is late: a change has waited for %s, the limit is %s; its last step was %s ago", waits, s.limit(), s.age(s.Sync.LastStep))
	case s.late():
		add("no sync writes the waiting changes: the oldest has waited for %s, the limit is %s; see the log of the daemon", waits, s.limit())
	case s.LastSync == nil:
		add("nothing has been written since the start %s ago: %s", s.age(s.Daemon.Started), s.startsWith())
	case !s.Sync.Ready:
		add("not ready: an address family of this node has not synced yet; %s", cmp.Or(s.LastSync.Error, "the log of the daemon says why"))
	}
}

// late reports whether a change has waited for too long in some family.
func (s Status) late() bool {
	return slices.ContainsFunc(s.Families, func(f Family) bool { return !f.Healthy })
}

// startsWith returns what the daemon does before its first run ends.
func (s Status) startsWith() string {
	if !s.Sync.LastStep.IsZero() {
		return "the first sync is in progress"
	}
	return "Services, EndpointSlices and Nodes have not all been read from the " + s.Daemon.Source + " yet"
}

// knowledgeProblems calls add with each reason why what is known of the cluster is outdated.
func knowledgeProblems(s Status, add func(string, ...any)) {
	k := s.Knowledge
	if lost := s.age(k.LostSince); !k.LostSince.IsZero() && (lost >= s.limit() || k.Snapshot.IsZero()) {
		add("it has not been possible to read the %s for %s, so that later changes are not known here: %s; the rules in force stay", s.Daemon.Source, lost, k.LostReason)
	}
	if k.HeldBack {
		add("the list of the API server is held back, because it lacks what every cluster has: its storage may be empty or being restored; the rules in force stay")
	}
}

// age returns the time from t to the answer, rounded for people, and 0 for the zero time.
func (s Status) age(t time.Time) time.Duration {
	if t.IsZero() {
		return 0
	}
	age := max(s.CurrentTime.Sub(t), 0)
	if age < time.Minute {
		return age.Round(100 * time.Millisecond)
	}
	return age.Round(time.Second)
}

func (s Status) limit() time.Duration {
	return time.Duration(s.Sync.LimitSeconds * float64(time.Second))
}
