package driver

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/rules/syncer"
)

// Package ipvs asks its Tables for these methods, and does without those that are missing.
var _ interface {
	Families() []netfilter.Family
	Open(ctx context.Context, verify bool)
	Restore(ctx context.Context, f netfilter.Family, input string) (locked bool, err error)
} = chains{}

// TestRetireObserver: one log line, after the last drain has ended.
func TestRetireObserver(t *testing.T) {
	var out bytes.Buffer
	o := &retireObserver{log: command.NewLog(&out, "text", 0)}
	drains := syncer.Result{Changes: rules.Changes{Again: time.Second}}
	for i, r := range []syncer.Result{drains, {Err: errFailed}, drains, {}, drains, {}} {
		o.Synced(r)
		if told := strings.Count(out.String(), "nothing is left"); told != min(i/3, 1) {
			t.Errorf("after run %d: logged %d times", i, told)
		}
	}
}
