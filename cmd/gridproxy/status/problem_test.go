package status

import (
	"strings"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/topology/excerpt"
)

// TestProblems: each state of a daemon, and what is wrong with it. Waits are compared with the
// limit of /healthz, here a minute.
func TestProblems(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	late := func(s *Status, state string) {
		s.Families[0].Healthy, s.Families[0].State, s.Sync.Pending, s.Sync.Live = false, state, ago(2*time.Minute), false
	}
	for _, test := range []struct {
		name   string
		change func(*Status)
		want   []string // the beginning of each problem
	}{
		{name: "well"},
		{name: "a family is not used", change: func(s *Status) { s.Families[1].State = metrics.StateLeftOut }},
		{name: "a change waits a little", change: func(s *Status) { s.Sync.Pending = ago(time.Second) }},
		{name: "a run failed a moment ago", change: func(s *Status) {
			s.LastSync.Error, s.Families[0].State, s.Sync.Pending = "refused", metrics.StateFailed, ago(time.Second)
		}},
		{name: "a long sync makes progress, nothing waits too long", change: func(s *Status) { s.Sync.LastStep = ago(time.Second) }},
		{name: "malformed annotations and closed Services without endpoints", change: func(s *Status) { s.Services.Malformed, s.Services.Refused = 3, 4 }},
		{name: "a family fails", change: func(s *Status) { late(s, metrics.StateFailed); s.Families[0].Reason = "no table" },
			want: []string{"IPv4 fails: no table; "}},
		{name: "a family fails that the node does not need", change: func(s *Status) { late(s, metrics.StateFailed); s.Sync.Live = true },
			want: []string{"IPv4 fails: "}},
		{name: "both families fail", change: func(s *Status) {
			late(s, metrics.StateFailed)
			s.Families[1] = Family{Name: "IPv6", State: metrics.StateFailed, Reason: "too"}
		}, want: []string{"IPv4 fails: ", "IPv6 fails: too; "}},
		{name: "a sync hangs", change: func(s *Status) {
			late(s, metrics.StateSynced)
			s.Sync.LastStep, s.Sync.Hangs = ago(90*time.Second), true
		}, want: []string{"the sync in progress hangs: its last step was 1m30s ago, a change has waited for 2m0s"}},
		{name: "a sync hangs after a failure", change: func(s *Status) {
			late(s, metrics.StateFailed)
			s.Sync.LastStep, s.Sync.Hangs = ago(90*time.Second), true
		}, want: []string{"the sync in progress hangs: "}},
		{name: "a sync is late, and makes progress", change: func(s *Status) { late(s, metrics.StateSynced); s.Sync.LastStep = ago(time.Second) },
			want: []string{"the sync in progress is late: a change has waited for 2m0s, the limit is 1m0s; its last step was 1s ago"}},
		{name: "no sync begins", change: func(s *Status) { late(s, metrics.StateSynced) },
			want: []string{"no sync writes the waiting changes: the oldest has waited for 2m0s"}},
		{name: "starting, nothing is known", change: starting,
			want: []string{"nothing has been written since the start 10s ago: Services, EndpointSlices and Nodes have not all been read from the API server yet"}},
		{name: "starting, the first sync is in progress", change: func(s *Status) { starting(s); s.Sync.LastStep = ago(time.Second) },
			want: []string{"nothing has been written since the start 10s ago: the first sync is in progress"}},
		{name: "starting, the first sync is late", change: func(s *Status) {
			starting(s)
			late(s, StateStarting)
			s.Sync.LastStep = ago(time.Second)
		}, want: []string{"the sync in progress is late: "}},
		{name: "starting, and the API server does not answer", change: func(s *Status) {
			starting(s)
			s.Knowledge.LostSince, s.Knowledge.LostReason = ago(time.Second), "connection refused"
		}, want: []string{"nothing has been written since the start", "it has not been possible to read the API server for 1s, so that later changes are not known here: connection refused; "}},
		{name: "the first run failed", change: func(s *Status) { s.Sync.Ready, s.LastSync.Error = false, "no table" },
			want: []string{"not ready: an address family of this node has not synced yet; no table"}},
		{name: "the API server is away for a moment", change: func(s *Status) { s.Knowledge.LostSince = ago(59 * time.Second) }},
		{name: "the API server is away", change: func(s *Status) { s.Knowledge.LostSince = ago(time.Minute) },
			want: []string{"it has not been possible to read the API server for 1m0s, "}},
		{name: "a list is held back", change: func(s *Status) { s.Knowledge.HeldBack = true }, want: []string{"the list of the API server is held back"}},
		{name: "an unknown node without closed Services", change: func(s *Status) { s.Node.Known = false }},
		{name: "an unknown node", change: func(s *Status) { s.Node.Known, s.Services.Closed = false, 2 },
			want: []string{"there is no Node bj-3, so that closed Services (2) refuse connections here"}},
		{name: "a Service is quarantined", change: func(s *Status) {
			s.Services.Quarantined, s.Quarantined = 1, []QuarantinedPort{{"default/web", "http", "IPv4", "refused"}}
		}, want: []string{"quarantined Services: 1, because the kernel refuses their rules; the first is default/web, port http of IPv4 (refused)"}},
		{name: "another proxy", change: func(s *Status) {
			s.OtherProxy = &OtherProxy{Message: "another service proxy writes" + strings.Repeat("!", 5000)}
		},
			want: []string{"another service proxy writes"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := Status{
				CurrentTime: now,
				Daemon:      Daemon{Source: SourceAPIServer, Started: ago(10 * time.Second)},
				Node:        Node{Name: "bj-3", Known: true, Eligible: true},
				Knowledge:   Knowledge{Snapshot: ago(5 * time.Second)},
				Sync:        Sync{Live: true, Ready: true, LimitSeconds: 60},
				LastSync:    &Run{End: ago(4 * time.Second)},
				Families:    []Family{{Name: "IPv4", State: metrics.StateSynced, Healthy: true}, {Name: "IPv6", State: metrics.StateSynced, Healthy: true}},
			}
			if test.change != nil {
				test.change(&s)
			}
			got := judged(s)
			if got.Healthy != (len(test.want) == 0) || len(got.Problems) != len(test.want) {
				t.Fatalf("healthy %t, problems %q; want %q", got.Healthy, got.Problems, test.want)
			}
			for i, p := range got.Problems {
				if !strings.HasPrefix(p, test.want[i]) || len(p) > excerpt.MaxLineChars {
					t.Errorf("problem %q, want %q", p, test.want[i])
				}
			}
		})
	}
}

// starting makes of s what it is before the first run.
func starting(s *Status) {
	s.LastSync, s.Knowledge, s.Sync.Ready, s.Node.Known = nil, Knowledge{}, false, false
	s.Families = []Family{{Name: "IPv4", State: StateStarting, Healthy: true}}
}
