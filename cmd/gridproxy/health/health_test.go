package health

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/syncer"
	"gridproxy/topology"

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
			if s.Healthy() != (test.livez == 200) {
				t.Errorf("Healthy() is %v", s.Healthy())
			}
		})
	}
}

// TestBody: the fields are those that kube-proxy's clients read.
func TestBody(t *testing.T) {
	success := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	pending := time.Time{}
	s := New(Config{
		Pending: func(rules.Family) time.Time { return pending }, LastSuccess: func(rules.Family) time.Time { return success },
		Progress: idle, Answered: uncounted,
		Timeout: time.Minute, Families: rules.FamilySet{true, false}, NodeOptional: true,
	})
	get := func(path string) map[string]any {
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		var body map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatalf("%s: %v in %s", path, err, w.Body)
		}
		return body
	}
	body := get("/healthz")
	if body["lastUpdated"] != body["currentTime"] {
		t.Errorf("healthy: lastUpdated %v is not currentTime %v", body["lastUpdated"], body["currentTime"])
	}
	if body["nodeEligible"] != true || body["healthy"] != true {
		t.Errorf("got %v", body)
	}
	pending = success
	body = get("/livez")
	if _, has := body["nodeEligible"]; has || body["healthy"] != false || body["lastUpdated"] != "2026-01-02T03:04:05Z" {
		t.Errorf("unhealthy /livez: got %v", body)
	}
	family, _ := body["status"].(map[string]any)["IPv4"].(map[string]any)
	if family["healthy"] != false || family["lastUpdated"] != "2026-01-02T03:04:05Z" {
		t.Errorf("status: got %v", body["status"])
	}
}
