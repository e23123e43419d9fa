package health

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"gridproxy/rules"
)

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
