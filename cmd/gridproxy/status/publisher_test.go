package status

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/event"
	"gridproxy/cmd/gridproxy/health"
	"gridproxy/cmd/gridproxy/metrics"
	"gridproxy/cmd/gridproxy/otherproxy"
	"gridproxy/rules"
	"gridproxy/rules/healthcheck"
	"gridproxy/rules/syncer"
	"gridproxy/topology"
	"gridproxy/topology/watch"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// TestNext: what several runs find adds up.
func TestNext(t *testing.T) {
	at := func(seconds int) time.Time { return time.Unix(int64(1000+seconds), 0) }
	run := func(seconds int) syncer.Result {
		return syncer.Result{
			Start: at(seconds), End: at(seconds + 1),
			Snapshot: topology.Snapshot{Node: "bj-3", Nodes: map[string]labels.Set{"bj-3": nil}},
		}
	}
	first := run(0)
	first.Queued, first.Verify, first.Changes.Verified = at(0), true, true
	s := next(Status{}, first)
	if !s.Node.Known || s.Knowledge.Snapshot != at(0) || s.LastSync.End != at(1) || s.LastSync.TookSeconds != 1 || s.LastVerification.End != at(1) {
		t.Errorf("after the first run: %+v", s)
	}

	repair := run(10)
	repair.Verify, repair.Changes = true, rules.Changes{Verified: true, Repaired: 2}
	s = next(s, repair)
	if s.Drift != (Drift{2, at(11)}) || s.LastVerification.Repaired != 2 || s.Knowledge.Snapshot != at(0) {
		t.Errorf("after a repair: %+v", s)
	}

	interrupted := run(20)
	interrupted.Verify, interrupted.Changes = true, rules.Changes{Verified: true, Interrupted: true}
	if s = next(s, interrupted); s.LastVerification.End != at(11) || s.LastSync.End != at(21) {
		t.Errorf("after an interrupted verification: %+v", s.LastVerification)
	}

	quiet := run(25)
	quiet.Verify = true
	if s = next(s, quiet); s.LastVerification.End != at(26) || s.LastVerification.ReadBack {
		t.Errorf("after a verification for which nothing had to be read: %+v", s.LastVerification)
	}

	failed := run(30)
	failed.Err, failed.Verify = errors.New("refused\n"+strings.Repeat("x", 5000)), true
	failed.Changes.Families = rules.Outcomes{{Err: failed.Err}, {LeftOut: errors.New("no tool")}}
	s = next(s, failed)
	if s.Families[0].State != metrics.StateFailed || s.Families[1].State != metrics.StateLeftOut || s.Families[1].Reason != "no tool" || s.LastVerification.End != at(31) || s.Drift != (Drift{2, at(11)}) {
		t.Errorf("after a failure: %+v", s)
	}
	if e := s.LastSync.Error; !strings.HasPrefix(e, `refused\nx`) || len(e) > 1000 {
		t.Errorf("an error of %d bytes: %.40s", len(e), e)
	}
}

// TestFirstAreNamed: of any number of Services that are refused or malformed, and of health-check
// ports that are not open, the first three are named, as the last run found them.
func TestFirstAreNamed(t *testing.T) {
	for _, n := range []int{0, 1, 3, 4, 1000} {
		var v topology.View
		var failed []healthcheck.BindError
		for i := range n {
			for _, name := range []string{"refused", "malformed", "open"} {
				sp := &topology.ServicePort{Name: topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: name, Name: fmt.Sprintf("%03d", i)}}}
				switch name {
				case "refused":
					sp.Closure.Keys = []string{"zone"}
				case "malformed":
					sp.Closure.Malformed = "no list"
				}
				v.Ports = append(v.Ports, sp)
			}
			failed = append(failed, healthcheck.BindError{
				Service: types.NamespacedName{Namespace: "health", Name: fmt.Sprintf("%03d", i)}, Addr: netip.MustParseAddrPort("0.0.0.0:31000"),
				Err: &net.OpError{Op: "listen", Net: "tcp4", Err: os.NewSyscallError("bind", syscall.EADDRINUSE)},
			})
		}
		p := NewPublisher(Config{
			Services:      func() metrics.ServiceCounts { return metrics.ServiceCounts{Refused: n, Malformed: n} },
			UnopenedPorts: func() []healthcheck.BindError { return failed },
			Checks:        func() health.Checks { return health.Checks{} },
		})
		p.Synced(syncer.Result{View: v})
		s := p.now()
		for i := range min(n, servicesMax) {
			number := fmt.Sprintf("%03d", i)
			want := UnopenedPort{"health/" + number, "0.0.0.0:31000", 31000, "address already in use"}
			if s.FirstRefused[i] != "refused/"+number || s.FirstMalformed[i] != "malformed/"+number || s.FirstUnopened[i] != want {
				t.Errorf("of %d, number %d: %s, %s, %+v", n, i, s.FirstRefused[i], s.FirstMalformed[i], s.FirstUnopened[i])
			}
		}
		if want := min(n, servicesMax); len(s.FirstRefused) != want || len(s.FirstMalformed) != want || len(s.FirstUnopened) != want || s.UnopenedPorts != n {
			t.Errorf("of %d: %v, %v, %v", n, s.FirstRefused, s.FirstMalformed, s.FirstUnopened)
		}
		p.config.Services, failed = func() metrics.ServiceCounts { return metrics.ServiceCounts{} }, nil
		p.Synced(syncer.Result{})
		if s := p.now(); s.FirstRefused != nil || s.FirstMalformed != nil || s.FirstUnopened != nil {
			t.Errorf("after their end: %+v", s)
		}
	}
}

// TestAnswerIsBounded: however many Services are quarantined, and whatever the texts are, the
// answer is small. It says what was asked at that moment.
func TestAnswerIsBounded(t *testing.T) {
	long := strings.Repeat("\x1b", 10_000)
	var refused []event.Quarantined
	for i := range 1000 {
		name := types.NamespacedName{Namespace: long, Name: fmt.Sprint(i / 2)}
		refused = append(refused, event.Quarantined{Service: topology.ServicePortName{NamespacedName: name, Port: long}, Reason: long})
	}
	checks := health.Checks{Live: true, Ready: true, Families: map[rules.Family]health.FamilyStatus{rules.IPv4: {Healthy: true}}, Timeout: time.Minute}
	p := NewPublisher(Config{
		Services:    func() metrics.ServiceCounts { return metrics.ServiceCounts{All: 7, Closed: 2, Refused: 1} },
		Quarantined: func() []event.Quarantined { return refused },
		OtherProxy: func() otherproxy.State {
			return otherproxy.State{Suspected: true, Evidence: otherproxy.Evidence{Latest: rules.NewOtherWrites([]string{long})}}
		},
		Checks: func() health.Checks { return checks },
		Lost:   func() watch.Loss { return watch.Loss{Since: time.Now(), Reason: long} },
	})
	get := func() (s Status) {
		t.Helper()
		w := httptest.NewRecorder()
		p.Server().Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Path, nil))
		if err := json.Unmarshal(w.Body.Bytes(), &s); err != nil || w.Body.Len() > 64<<10 {
			t.Fatalf("%d bytes: %v", w.Body.Len(), err)
		}
		return s
	}
	if s := get(); s.LastSync != nil || s.Families[0].State != StateStarting {
		t.Errorf("before the first run: %+v", s)
	}
	p.Synced(syncer.Result{Err: errors.New(long), Backends: []syncer.BackendResult{{}}, Changes: rules.Changes{Families: rules.Outcomes{{Err: errors.New(long)}, {Err: errors.New(long)}}}})
	s := get()
	if want := (Services{All: 7, Open: 5, Closed: 2, Refused: 1, Quarantined: 500}); s.Services != want || len(s.Quarantined) != quarantinedMax || s.OtherProxy == nil {
		t.Errorf("Services %+v, %d named, want %+v", s.Services, len(s.Quarantined), want)
	}
	refused = nil
	p.Synced(syncer.Result{}) // decided nothing, so nothing was found
	if s := get(); s.Services.Quarantined != 500 {
		t.Errorf("after a run that decided nothing: %+v", s.Services)
	}
	p.Synced(syncer.Result{Backends: []syncer.BackendResult{{}}})
	if s := get(); s.Services.Quarantined != 0 || s.Quarantined != nil {
		t.Errorf("after their end: %+v", s.Services)
	}
	checks.Hangs = true
	if s := get(); !s.Sync.Hangs || s.Healthy {
		t.Error("the answer is from the last run, not from now")
	}
}
