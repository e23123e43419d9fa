package driver

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/rules"
	"gridproxy/rules/syncer"
)

var errFailed = errors.New("failed")

// comparisons is a Backend that succeeds, or fails with err.
type comparisons struct {
	rules.Backend
	err error
}

func (c *comparisons) Sync(context.Context, rules.Ruleset, bool) (rules.Changes, error) {
	return rules.Changes{Verified: c.err == nil}, c.err
}

// TestShadowTellsWhatItFoundTwice: a comparison that failed does not count.
func TestShadowTellsWhatItFoundTwice(t *testing.T) {
	backend := &comparisons{}
	var out bytes.Buffer
	s := &Shadow{Backend: backend}
	o := &shadowObserver{log: command.NewLog(&out, "text", 0), kernel: s}
	for i, step := range []struct {
		err  error
		told int
	}{{err: errFailed}, {}, {err: errFailed}, {told: 1}, {told: 1}} {
		backend.err = step.err
		changes, err := s.Sync(t.Context(), rules.Ruleset{}, true)
		o.Synced(syncer.Result{Changes: changes, Err: err})
		if again := changes.Again > 0; again != (step.err == nil && step.told == 0) {
			t.Errorf("step %d: asks to be called again: %t", i, again)
		}
		if told := strings.Count(out.String(), "the kernel holds what gridproxy would write"); told != step.told {
			t.Errorf("step %d: logged %d times, want %d", i, told, step.told)
		}
	}
}
