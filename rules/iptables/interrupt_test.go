package iptables

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"gridproxy/integration/env/wait"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
)

// unfinishedSave is a tool that prints what the real one does, and then waits for ever. started is
// the file with its process id, written before it waits.
func unfinishedSave(t *testing.T, real string) (path, started string) {
	t.Helper()
	dir := t.TempDir()
	started = filepath.Join(dir, "pid")
	script := fmt.Sprintf("%s \"$@\"\necho $$ >%s.new\nmv %s.new %s\nexec tail -f /dev/null", real, started, started, started)
	return program(t, dir, "save", script), started
}

// interruptible is a context whose Reading ends when the file exists.
func interruptible(t *testing.T, file string) context.Context {
	t.Helper()
	until, end := context.WithCancel(t.Context())
	t.Cleanup(end)
	go func() {
		defer end()
		_ = wait.For(t.Context(), func(context.Context) error { // ends with the test at the latest
			if pidIn(file) == 0 {
				return errors.New("not started")
			}
			return nil
		})
	}()
	return rules.WithReading(t.Context(), until)
}

// A verification that is interrupted is as if it had not begun: the change is written, nothing else
// is touched, and the next verification finds what this one did not.
func TestInterruptedReadBack(t *testing.T) {
	before, after := ruleset(services(3, 2)), ruleset(services(4, 2))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		mustSync(t, b, before, true)
		run(t, toolName(v, f, "")+" -w 5 -t nat -F KUBE-POSTROUTING")

		k := b.syncers[0]
		real, mark := k.kernel.save.path, k.mark
		var started string
		k.kernel.save.path, started = unfinishedSave(t, real)
		c, err := b.Sync(interruptible(t, started), before, true)
		if err != nil || !c.Interrupted || c.Verified || c.Repaired > 0 || c.Chains > 0 || c.VerifyTime <= 0 {
			t.Fatalf("%v, %+v: want nothing but an interruption", err, c)
		}
		if k.last == nil || k.mark != mark || k.unread != "" {
			t.Errorf("what was written last: %v, watermark %v, want %v, unreadable: %q", k.last, k.mark, mark, k.unread)
		}
		if pid := pidIn(started); !ended(pid) {
			t.Errorf("the program %d goes on", pid)
		}
		if err := os.Remove(started); err != nil {
			t.Fatal(err)
		}
		c, err = b.Sync(interruptible(t, started), after, true)
		if err != nil || !c.Interrupted || c.Verified || c.Chains == 0 {
			t.Fatalf("%v, %+v: want the change written", err, c)
		}

		k.kernel.save.path = real
		if c := mustSync(t, b, after, true); !c.Verified || c.Interrupted || c.Repaired != 1 {
			t.Errorf("%+v, want the flushed chain found", c)
		}
		wantEqual(t, t, b, after)
	})
}

// A change that the kernel refuses is no reason to doubt the change while nothing was read:
// another process may have removed what it builds on. The rules are read back and repaired at once.
func TestRefusedWithoutReading(t *testing.T) {
	before, after := ruleset(services(3, 2)), ruleset(services(4, 2))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		b, _ := newBackend(t, v, f)
		mustSync(t, b, before, true)
		run(t, toolName(v, f, "")+" -w 5 -t nat -F")
		run(t, toolName(v, f, "")+" -w 5 -t nat -X")
		until, end := context.WithCancel(t.Context())
		end()
		c, err := b.Sync(rules.WithReading(t.Context(), until), after, true)
		if err != nil || len(b.Quarantine()) > 0 {
			t.Errorf("%v, %+v, in quarantine: %v; want everything repaired", err, c, b.Quarantine())
		}
		wantEqual(t, t, b, after)
	})
}

// A reading that has ended before starts no program, unless it is not known what the kernel holds:
// that is read in any case.
func TestReadingThatHasEnded(t *testing.T) {
	rs := ruleset(services(3, 2))
	private(t)
	log := spy(t)
	until, end := context.WithCancel(t.Context())
	end()
	ctx := rules.WithReading(t.Context(), until)
	b, _ := newBackend(t, netfilter.VariantLegacy)
	if c, err := b.Sync(ctx, rs, true); err != nil || !c.Verified || c.Interrupted || c.VerifyTime <= 0 {
		t.Errorf("nothing is known: %v, %+v, want a read-back", err, c)
	}
	wantEqual(t, t, b, rs)
	started(t, log)
	if c, err := b.Sync(ctx, rs, true); err != nil || c.Verified || !c.Interrupted {
		t.Errorf("everything is known: %v, %+v, want no read-back", err, c)
	}
	if s := started(t, log); s != "" {
		t.Errorf("these were started:\n%s", s)
	}
	b.syncers[1].last = nil
	if c, err := b.Sync(ctx, rs, true); err != nil || !c.Verified || !c.Interrupted {
		t.Errorf("one family is known: %v, %+v, want the other one read", err, c)
	}
	wantEqual(t, t, b, rs)
}

// With nft a verification of untouched rules reads nothing, so it costs nothing.
func TestVerifyTimeAtRest(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT)
	rs := ruleset(services(3, 2))
	mustSync(t, b, rs, true)
	if c := mustSync(t, b, rs, true); c.VerifyTime != 0 || c.Interrupted {
		t.Errorf("at rest: %+v", c)
	}
	run(t, "iptables-nft -t nat -F KUBE-MARK-MASQ")
	if c := mustSync(t, b, rs, true); c.VerifyTime <= 0 || c.Repaired != 1 {
		t.Errorf("after another process wrote: %+v, want the cost of reading", c)
	}
}

// What the kernel refused is tried again as part of a verification, so not while a change waits.
func TestInterruptedVerificationTriesNothing(t *testing.T) {
	eachVariant(t, func(t *testing.T, v netfilter.Variant) {
		kernel := refusing(t)
		b, _ := newBackend(t, v, netfilter.IPv4)
		list := services(3, 2)
		refuse(t, kernel, toEndpoints(list[1]))
		mustSync(t, b, ruleset(list), true)
		wantRejecting(t, b, ruleset(list), 1)
		refuse(t, kernel)
		calls(t, kernel)
		until, end := context.WithCancel(t.Context())
		end()
		c, err := b.Sync(rules.WithReading(t.Context(), until), ruleset(list), true)
		if n := calls(t, kernel); err != nil || !c.Interrupted || n > 0 {
			t.Errorf("%v, %+v, %d restores: want an interruption", err, c, n)
		}
		wantRejecting(t, b, ruleset(list), 1)
		if c := mustSync(t, b, ruleset(list), true); c.Interrupted || c.VerifyTime <= 0 {
			t.Errorf("%+v: want the cost of a verification", c)
		}
		wantEqual(t, t, b, ruleset(list))
	})
}
