package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/otherproxy"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

// TestOtherProxyIsCountedOnce: one repair is one finding, however many runs follow that do not call
// the Backend.
func TestOtherProxyIsCountedOnce(t *testing.T) {
	o := &otherProxyObserver{
		log: slog.New(slog.DiscardHandler), limits: otherproxy.NewLimits(time.Minute, time.Second),
		found: func() rules.OtherWrites { return rules.NewOtherWrites([]string{"IPv4 nat/KUBE-SVC-A"}) },
	}
	now := time.Now()
	for i := range 10 {
		o.Synced(syncer.Result{End: now.Add(time.Duration(i) * time.Minute), Backends: []syncer.BackendResult{{Name: "iptables"}}, Unchanged: i > 0})
	}
	if s := o.now(); s.Suspected || s.Evidence.Findings != 1 {
		t.Errorf("after one finding: %+v", s)
	}
}

// TestOtherProxyObserver: one Event and one log line when another proxy is suspected, and one line
// when it no longer is. A run that did not read the kernel does not count the findings of an
// earlier one.
func TestOtherProxyObserver(t *testing.T) {
	var out bytes.Buffer
	var events []string
	o := &otherProxyObserver{
		log: command.NewLog(&out, "text", 0), limits: otherproxy.NewLimits(2*time.Minute, 10*time.Second),
		found:  func() rules.OtherWrites { return rules.NewOtherWrites([]string{"IPv4 nat/KUBE-SVC-A"}) },
		record: func(reason, message string) { events = append(events, reason+": "+message) },
	}
	begin := time.Now()
	asked := make([]syncer.BackendResult, 1)
	for after := time.Duration(0); after <= 10*time.Minute; after += time.Minute {
		o.Synced(syncer.Result{End: begin.Add(after), Err: errFailed})
	}
	if len(events) > 0 {
		t.Errorf("runs that asked the kernel nothing: %q", events)
	}
	for after := time.Duration(0); after <= 10*time.Minute; after += time.Minute {
		o.Synced(syncer.Result{End: begin.Add(after), Backends: asked, Err: errFailed}) // the other family may fail
	}
	if len(events) != 1 || !strings.HasPrefix(events[0], "OtherServiceProxy: another service proxy") || !strings.Contains(events[0], "IPv4 nat/KUBE-SVC-A") {
		t.Errorf("Events: %q", events)
	}
	if n := strings.Count(out.String(), "another service proxy"); n != 1 || !o.now().Suspected {
		t.Errorf("suspected %v, in %d lines:\n%s", o.now().Suspected, n, out.String())
	}
	o.found = func() rules.OtherWrites { return rules.OtherWrites{} }
	o.Synced(syncer.Result{End: begin.Add(3 * time.Hour), Backends: asked})
	if n := strings.Count(out.String(), "no other service proxy"); n != 1 || o.now().Suspected {
		t.Errorf("three hours later: suspected %v:\n%s", o.now().Suspected, out.String())
	}
}
