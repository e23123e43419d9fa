package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
)

// on is the result of a run on a machine with addresses and Pod CIDRs.
func on(podCIDRs []string, addrs ...string) topology.Snapshot {
	s := topology.Snapshot{Self: &corev1.Node{Spec: corev1.NodeSpec{PodCIDRs: podCIDRs}}}
	for _, a := range addrs {
		s.Host.Addrs = append(s.Host.Addrs, netip.MustParseAddr(a))
	}
	return s
}

// TestReadyOncePerFamily: /readyz waits for each family that the node needs, and then stays ready.
func TestReadyOncePerFamily(t *testing.T) {
	broken, absent := rules.Outcome{Err: errors.New("lock")}, rules.Outcome{LeftOut: errors.New("no tool")}
	private := []string{"127.0.0.1", "::1", "fe80::1"}
	for _, test := range []struct {
		name string
		s    topology.Snapshot
		runs []rules.Outcomes
		want []bool // ready, after each run
	}{
		{"both", on(nil, "192.0.2.1", "2001:db8::1"), []rules.Outcomes{{broken, broken}, {broken}, {}, {broken, broken}}, []bool{false, false, true, true}},
		{"one after the other", on(nil, "192.0.2.1", "2001:db8::1"), []rules.Outcomes{{broken, {}}, {{}, broken}}, []bool{false, true}},
		{"IPv6 is link-local alone", on(nil, append(private, "192.0.2.1")...), []rules.Outcomes{{broken, {}}, {{}, broken}}, []bool{false, true}},
		{"a Pod CIDR of IPv6", on([]string{"10.1.0.0/24", "fd00:1::/64"}, append(private, "192.0.2.1")...), []rules.Outcomes{{{}, broken}, {}}, []bool{false, true}},
		{"IPv6 is left out", on(nil, "192.0.2.1", "2001:db8::1"), []rules.Outcomes{{{}, absent}}, []bool{true}},
		{"the needed one is left out", on(nil, append(private, "192.0.2.1")...), []rules.Outcomes{{absent, broken}, {absent, {}}}, []bool{false, true}},
		{"no address", on(nil), []rules.Outcomes{{{}, broken}, {}}, []bool{false, true}},
		{"left out, then installed", on(nil, "192.0.2.1", "2001:db8::1"), []rules.Outcomes{{{}, absent}, {{}, broken}}, []bool{true, true}},
	} {
		never := func(rules.Family) time.Time { return time.Time{} }
		s := New(Config{Pending: never, LastSuccess: never, Progress: idle, Answered: uncounted, Families: rules.FamilySet{true, true}})
		for i, o := range test.runs {
			s.Synced(syncer.Result{Snapshot: test.s, Backends: []syncer.BackendResult{{}}, Changes: rules.Changes{Families: o}})
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
			if got := w.Code == http.StatusOK; got != test.want[i] {
				t.Errorf("%s: after run %d ready is %v, want %v", test.name, i, got, test.want[i])
			}
		}
	}
}

// TestHealthOfFamilies: each family has its own health. /healthz fails if a family fails that the
// node needs, /livez only if no family is written.
func TestHealthOfFamilies(t *testing.T) {
	long := time.Now().Add(-time.Hour)
	both, four := on(nil, "192.0.2.1", "2001:db8::1"), on(nil, "192.0.2.1", "fe80::1")
	absent := rules.Outcome{LeftOut: errors.New("no tool")}
	for _, test := range []struct {
		name           string
		s              topology.Snapshot
		outcomes       rules.Outcomes
		pending        [2]time.Time
		healthz, livez int
		status         map[string]bool
	}{
		{"well", both, rules.Outcomes{}, [2]time.Time{}, 200, 200, map[string]bool{"IPv4": true, "IPv6": true}},
		{"IPv6 fails", both, rules.Outcomes{}, [2]time.Time{{}, long}, 503, 200, map[string]bool{"IPv4": true, "IPv6": false}},
		{"IPv4 fails", both, rules.Outcomes{}, [2]time.Time{long, {}}, 503, 200, map[string]bool{"IPv4": false, "IPv6": true}},
		{"both fail", both, rules.Outcomes{}, [2]time.Time{long, long}, 503, 503, map[string]bool{"IPv4": false, "IPv6": false}},
		{"IPv6 fails where it is link-local", four, rules.Outcomes{}, [2]time.Time{{}, long}, 200, 200, map[string]bool{"IPv4": true, "IPv6": false}},
		{"IPv6 is left out", both, rules.Outcomes{{}, absent}, [2]time.Time{}, 200, 200, map[string]bool{"IPv4": true}},
		{"IPv4 fails and IPv6 is left out", both, rules.Outcomes{{}, absent}, [2]time.Time{long, {}}, 503, 503, map[string]bool{"IPv4": false}},
	} {
		s := New(Config{
			Pending:     func(f rules.Family) time.Time { return test.pending[f] },
			LastSuccess: func(rules.Family) time.Time { return long },
			Progress:    idle, Answered: uncounted,
			Timeout: time.Minute, Families: rules.FamilySet{true, true},
		})
		s.Synced(syncer.Result{Snapshot: test.s, Backends: []syncer.BackendResult{{}}, Changes: rules.Changes{Families: test.outcomes}})
		for path, want := range map[string]int{"/healthz": test.healthz, "/livez": test.livez} {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			var body Status
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
				t.Fatal(err)
			}
			if w.Code != want || len(body.Status) != len(test.status) {
				t.Errorf("%s: %s is %d, want %d: %s", test.name, path, w.Code, want, w.Body)
			}
			for name, healthy := range test.status {
				if body.Status[name].Healthy != healthy {
					t.Errorf("%s: %s says of %s %+v, want healthy %v", test.name, path, name, body.Status[name], healthy)
				}
			}
		}
		for _, f := range rules.Families() {
			if got, want := s.FamilyHealthy(f), test.pending[f].IsZero(); got != want {
				t.Errorf("%s: FamilyHealthy(%s) is %v", test.name, f, got)
			}
		}
	}
}
