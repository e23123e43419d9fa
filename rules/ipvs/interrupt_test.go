package ipvs

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// endedReading is a context whose Reading has ended.
func endedReading(t *testing.T) context.Context {
	t.Helper()
	until, end := context.WithCancel(t.Context())
	end()
	return rules.WithReading(t.Context(), until)
}

// TestInterruptedVerification: a verification whose reading has ended changes nothing and reports
// it. What another program has changed is found by the next one.
func TestInterruptedVerification(t *testing.T) {
	m := newMachine(t, BackendConfig{})
	rs := ruleset(webService(1, "10.180.0.1:80"))
	ctx := endedReading(t)
	if c, err := m.Sync(ctx, rs, true); err != nil || !c.Verified || c.Interrupted {
		t.Fatalf("nothing is known: %v, %+v, want a read-back", err, c)
	}
	run(t, "", "ipvsadm", "-C")
	if c, err := m.Sync(ctx, rs, true); err != nil || !c.Interrupted || c.Verified || c.Repaired+c.Chains+c.Rules > 0 {
		t.Errorf("%v, %+v: want an interruption", err, c)
	}
	if c := m.sync(rs, true); !c.Verified || c.Repaired == 0 || c.VerifyTime <= 0 {
		t.Errorf("%+v: want the repair", c)
	}
	m.expect(m.wants(rs), "after the next verification")
}

// TestReadingEndsHalfway: a reading that ends after the sync has begun leaves what is known, and
// what the kernel refused, as they were.
func TestReadingEndsHalfway(t *testing.T) {
	refused := []ServerKey{{Addr: netip.MustParseAddrPort("10.96.0.1:80"), Proto: netfilter.TCP}}
	reading, end := rules.Reading(endedReading(t))
	defer end()
	b := &Backend{kernel: &kernel{}, known: true, refused: refused}
	b.planner.setObserved(filled(kernelState{Link: true}))
	r := syncRun{backend: b, ctx: t.Context(), reading: reading, verify: true, reads: true}
	if err := r.read(); err != nil || r.reads || !r.changes.Interrupted || r.changes.Verified {
		t.Errorf("%v, reads %t, %+v", err, r.reads, r.changes)
	}
	if !b.planner.observed.Link || len(r.config.Refused) != 1 {
		t.Errorf("observed %+v, refused %v", b.planner.observed, r.config.Refused)
	}
	b.known = false
	r = syncRun{backend: b, ctx: reading, reading: reading, reads: true}
	if err := r.read(); err == nil {
		t.Error("a sync that was ended goes on without knowing what the kernel holds")
	}
}

// TestProcIsReadUntilTheEnd: a list that is not read to its end is an error, not a short list.
func TestProcIsReadUntilTheEnd(t *testing.T) {
	reading, end := rules.Reading(endedReading(t))
	defer end()
	list := untilEnd{reading, strings.NewReader("IP Virtual Server version 1.2.1 (size=4096)\n")}
	if _, err := io.ReadAll(list); !errors.Is(err, rules.ErrInterrupted) {
		t.Errorf("%v, want that it was interrupted", err)
	}
	if _, err := parseProc(list, 1); !errors.Is(err, rules.ErrInterrupted) {
		t.Errorf("%v, want that it was interrupted", err)
	}
}
