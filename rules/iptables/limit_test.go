package iptables

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A kernel that cannot be read back in time does not keep a change waiting, and what was not
// looked at is looked at the next time.
func TestReadBackHasALimit(t *testing.T) {
	endless := filepath.Join(t.TempDir(), "save")
	if err := os.WriteFile(endless, []byte("#!/bin/sh\nexec tail -f /dev/null\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	before := ruleset(services(3, 2))
	after := ruleset(services(4, 2))
	eachKernel(t, func(t *testing.T, v Variant, f Family) {
		here(t)
		b, _ := newBackend(t, v, f)
		mustSync(t, b, before, true)
		run(t, v.tool(f, "")+" -w 5 -t nat -F KUBE-POSTROUTING")

		k := b.keepers[0]
		save := k.kernel.save.path
		k.kernel.save.path, k.limit = endless, 50*time.Millisecond
		if c := mustSync(t, b, after, true); c.Verified || c.Chains == 0 {
			t.Errorf("%+v, want the change written, and not called verified", c)
		}

		k.kernel.save.path, k.limit = save, readLimit
		if c := mustSync(t, b, after, true); !c.Verified || c.Repaired != 1 {
			t.Errorf("%+v, want the flushed chain found", c)
		}
		wantEqual(t, t, b, after)
	})
}
