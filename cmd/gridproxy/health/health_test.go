package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// idle is a Config.Progress without a sync in progress.
func idle() time.Time { return time.Time{} }

// uncounted is a Config.Answered that counts nothing.
func uncounted(string, int) {}

func node(taints ...string) *corev1.Node {
	n := &corev1.Node{}
	for _, t := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: t})
	}
	return n
}

func deleting() *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: time.Unix(1, 0)}}}
}

func TestCodes(t *testing.T) {
	now := time.Now()
	for _, test := range []struct {
		name                   string
		pending, success       time.Time
		self                   *corev1.Node
		optional, unobserved   bool
		failed                 bool // the only run
		healthz, livez, readyz int
	}{
		{name: "starting", unobserved: true, healthz: 200, livez: 200, readyz: 503},
		{name: "starting, first change waits too long", unobserved: true, pending: now.Add(-time.Hour), healthz: 503, livez: 503, readyz: 503},
		{name: "written, not observed yet", unobserved: true, success: now, healthz: 200, livez: 200, readyz: 503},
		{name: "failed", failed: true, self: node(), healthz: 200, livez: 200, readyz: 503},
		{name: "well", success: now, self: node("other"), healthz: 200, livez: 200, readyz: 200},
		{name: "a change waits a little", success: now, pending: now.Add(-time.Second), self: node(), healthz: 200, livez: 200, readyz: 200},
		{name: "stuck", success: now, pending: now.Add(-2 * time.Minute), self: node(), healthz: 503, livez: 503, readyz: 200},
		{name: "about to be removed", success: now, self: node(ToBeDeletedTaint), healthz: 503, livez: 200, readyz: 200},
		{name: "being deleted", success: now, self: deleting(), healthz: 503, livez: 200, readyz: 200},
		{name: "unknown to the API server", success: now, healthz: 503, livez: 200, readyz: 200},
		{name: "not in the manifests", success: now, optional: true, healthz: 200, livez: 200, readyz: 200},
		{name: "being deleted, in the manifests", success: now, optional: true, self: deleting(), healthz: 503, livez: 200, readyz: 200},
	} {
		t.Run(test.name, func(t *testing.T) {
			counted := map[string]int{}
			s := New(Config{
				Pending:      func(rules.Family) time.Time { return test.pending },
				LastSuccess:  func(rules.Family) time.Time { return test.success },
				Timeout:      time.Minute,
				Families:     rules.FamilySet{true, true},
				NodeOptional: test.optional,
				Progress:     idle,
				Answered:     func(path string, code int) { counted[path] = code },
			})
			if !test.unobserved {
				r := syncer.Result{Snapshot: topology.Snapshot{Self: test.self}, Backends: []syncer.BackendResult{{}}}
				if test.failed {
					r.Err = errors.New("no")
					r.Changes.Families = rules.Outcomes{}.With(r.Err)
				}
				s.Synced(r)
			}
			for path, want := range map[string]int{"/healthz": test.healthz, "/livez": test.livez, "/readyz": test.readyz} {
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != want || counted[path] != want {
					t.Errorf("%s: code %d, counted %d, want %d: %s", path, w.Code, counted[path], want, w.Body)
				}
			}
		})
	}
}

// TestBody: the fields are those that kube-proxy's clients read, with the values that kube-proxy
// gives them. A family has the time of its last sync, and is listed once it has synced.
func TestBody(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	const started, later = "2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"
	type family struct {
		LastUpdated string
		Healthy     bool
	}
	type body struct {
		LastUpdated, CurrentTime string
		NodeEligible             *bool
		Healthy                  bool
		Status                   map[string]family
	}
	waiting := [2]time.Time{rules.IPv4: start}
	for _, test := range []struct {
		name             string
		pending, success [2]time.Time
		self             *corev1.Node
		healthz, livez   body // LastUpdated "" = CurrentTime
	}{
		{
			name: "nothing has synced", self: node(),
			healthz: body{Healthy: true, NodeEligible: new(true)}, livez: body{Healthy: true},
		},
		{
			name: "the first sync is late", self: node(), pending: waiting,
			healthz: body{LastUpdated: "0001-01-01T00:00:00Z", NodeEligible: new(true)},
			livez:   body{Healthy: true}, // IPv6 works
		},
		{
			name: "one family has synced", self: node(), success: [2]time.Time{start},
			healthz: body{Healthy: true, NodeEligible: new(true), Status: map[string]family{"IPv4": {started, true}}},
			livez:   body{Healthy: true, Status: map[string]family{"IPv4": {started, true}}},
		},
		{
			name: "a family is late", self: node(), pending: waiting, success: [2]time.Time{start, start.Add(time.Minute)},
			healthz: body{LastUpdated: later, NodeEligible: new(true), Status: map[string]family{"IPv4": {started, false}, "IPv6": {later, true}}},
			livez:   body{Healthy: true, Status: map[string]family{"IPv4": {started, false}, "IPv6": {later, true}}},
		},
		{
			name: "both are late", self: node(), pending: [2]time.Time{start, start}, success: [2]time.Time{start, start},
			healthz: body{LastUpdated: started, NodeEligible: new(true), Status: map[string]family{"IPv4": {started, false}, "IPv6": {started, false}}},
			livez:   body{LastUpdated: started, Status: map[string]family{"IPv4": {started, false}, "IPv6": {started, false}}},
		},
		{
			name: "the Node is being deleted", self: deleting(), success: [2]time.Time{start, start.Add(time.Minute)},
			healthz: body{LastUpdated: later, Healthy: true, NodeEligible: new(false), Status: map[string]family{"IPv4": {started, true}, "IPv6": {later, true}}},
			livez:   body{Healthy: true, Status: map[string]family{"IPv4": {started, true}, "IPv6": {later, true}}},
		},
		{name: "there is no Node", healthz: body{LastUpdated: "0001-01-01T00:00:00Z", Healthy: true, NodeEligible: new(false)}, livez: body{Healthy: true}},
	} {
		s := New(Config{
			Pending:     func(f rules.Family) time.Time { return test.pending[f] },
			LastSuccess: func(f rules.Family) time.Time { return test.success[f] },
			Progress:    idle, Answered: uncounted, Timeout: time.Minute, Families: rules.FamilySet{true, true},
		})
		s.Synced(syncer.Result{Snapshot: topology.Snapshot{Self: test.self}})
		for path, want := range map[string]body{"/healthz": test.healthz, "/livez": test.livez} {
			w := httptest.NewRecorder()
			s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			var got body
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatalf("%s: %s: %v in %s", test.name, path, err, w.Body)
			}
			if want.CurrentTime = got.CurrentTime; want.LastUpdated == "" {
				want.LastUpdated = got.CurrentTime
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-want +got):\n%s", test.name, path, diff)
			}
		}
	}
}

// TestBodyText: names and order of the fields are those of kube-proxy, too.
func TestBodyText(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := New(Config{
		Pending: func(rules.Family) time.Time { return start }, LastSuccess: func(rules.Family) time.Time { return start },
		Progress: idle, Answered: uncounted, Timeout: time.Minute, Families: rules.FamilySet{true, false}, NodeOptional: true,
	})
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/healthz", nil))
	const last = `"lastUpdated":"2026-01-02T03:04:05Z"`
	want := regexp.MustCompile(`^\{` + last + `,"currentTime":"[^"]+","nodeEligible":true,"healthy":false,"status":\{"IPv4":\{` + last + `,"healthy":false\}\}\}$`)
	if !want.MatchString(w.Body.String()) {
		t.Errorf("got %s, want %s", w.Body, want)
	}
}

// TestLivezFollowsProgress: /livez fails for a sync that hangs, and not for a long one that makes
// progress. /healthz reports in both cases that changes wait.
func TestLivezFollowsProgress(t *testing.T) {
	ago := func(d time.Duration) time.Time { return time.Now().Add(-d) }
	const timeout, firstStep = time.Minute, 3 * time.Minute
	for _, test := range []struct {
		name                       string
		pending, progress, success time.Time
		livez, healthz             int
	}{
		{name: "at rest", success: ago(time.Hour), livez: 200, healthz: 200},
		{name: "first sync begins", pending: ago(time.Second), progress: ago(time.Second), livez: 200, healthz: 200},
		{name: "first sync in progress", pending: ago(time.Hour), progress: ago(time.Second), livez: 200, healthz: 503},
		{name: "first sync in a slow restore", pending: ago(time.Hour), progress: ago(2 * time.Minute), livez: 200, healthz: 503},
		{name: "first sync hangs", pending: ago(4 * time.Minute), progress: ago(4 * time.Minute), livez: 503, healthz: 503},
		{name: "first sync failed", pending: ago(4 * time.Minute), livez: 503, healthz: 503},
		{name: "repair in progress", pending: ago(2 * time.Minute), progress: ago(time.Second), success: ago(time.Hour), livez: 200, healthz: 503},
		{name: "repair hangs", pending: ago(2 * time.Minute), progress: ago(2 * time.Minute), success: ago(time.Hour), livez: 503, healthz: 503},
		{name: "repair failed", pending: ago(2 * time.Minute), success: ago(time.Hour), livez: 503, healthz: 503},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := New(Config{
				Pending:     func(rules.Family) time.Time { return test.pending },
				LastSuccess: func(rules.Family) time.Time { return test.success },
				Progress:    func() time.Time { return test.progress }, Answered: uncounted,
				Timeout: timeout, FirstStep: firstStep, Families: rules.FamilySet{rules.IPv4: true}, NodeOptional: true,
			})
			if c := s.Checks(); c.Live != (test.livez == 200) || c.Families[rules.IPv4].Healthy != (test.healthz == 200) || c.Pending != test.pending ||
				c.Hangs != (test.livez == 503 && !test.progress.IsZero()) {
				t.Errorf("Checks() are not what the endpoints answer: %+v", c)
			}
			for path, want := range map[string]int{"/livez": test.livez, "/healthz": test.healthz} {
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				if w.Code != want {
					t.Errorf("%s: code %d, want %d: %s", path, w.Code, want, w.Body)
				}
			}
		})
	}
}
