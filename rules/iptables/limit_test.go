package iptables

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gridproxy/rules/netfilter"
)

// endlessSave is a tool whose output never ends.
func endlessSave(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "save")
	if err := os.WriteFile(file, []byte("#!/bin/sh\nexec tail -f /dev/null\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return file
}

// A slow read-back does not keep a change waiting. What was not verified is verified the next time.
func TestReadBackHasALimit(t *testing.T) {
	endless := endlessSave(t)
	before := ruleset(services(3, 2))
	after := ruleset(services(4, 2))
	eachKernel(t, func(t *testing.T, v netfilter.Variant, f netfilter.Family) {
		here(t)
		b, _ := newBackend(t, v, f)
		mustSync(t, b, before, true)
		run(t, toolName(v, f, "")+" -w 5 -t nat -F KUBE-POSTROUTING")

		k := b.syncers[0]
		save := k.kernel.save.path
		k.kernel.save.path, k.limit = endless, 50*time.Millisecond
		if c := mustSync(t, b, after, true); c.Verified || c.Chains == 0 {
			t.Errorf("%+v, want the change written, and not called verified", c)
		}

		k.kernel.save.path, k.limit = save, readTimeout
		if c := mustSync(t, b, after, true); !c.Verified || c.Repaired != 1 {
			t.Errorf("%+v, want the flushed chain found", c)
		}
		wantEqual(t, t, b, after)
	})
}

// A shadow gives up too and says so. It keeps the last differences of each family.
func TestShadowHasALimit(t *testing.T) {
	private(t)
	s, err := NewShadow(t.Context(), Config{Variant: netfilter.VariantNFT, MasqueradeBit: 14})
	if err != nil {
		t.Fatal(err)
	}
	rs := ruleset(services(3, 2))
	if _, err := s.Sync(t.Context(), rs, true); err != nil {
		t.Fatal(err)
	}
	found := s.Differences()
	run(t, toolName(netfilter.VariantNFT, netfilter.IPv4, "")+" -w 5 -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA")
	run(t, toolName(netfilter.VariantNFT, netfilter.IPv6, "")+" -w 5 -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA")
	s.readers[0].save.path, s.limit = endlessSave(t), 3*time.Second
	c, err := s.Sync(t.Context(), rs, true)
	if err == nil || !strings.Contains(err.Error(), "reading the rules took more than 3s") || c.Verified {
		t.Errorf("%+v, %v: want it not verified, and an error that says why", c, err)
	}
	if now := s.Differences(); len(now) != len(found)+1 || now[0].Family != netfilter.IPv4 || now[len(now)-1].Family != netfilter.IPv6 {
		t.Errorf("%d differences were found, now %d are reported; want those of IPv4 as they were and one more of IPv6:\n%s", len(found), len(now), unified(t, now))
	}
}

// Tools that never end do not keep a start waiting: without an answer no variant is guessed, and a
// warning says that the other variant is unknown.
func TestStartHasALimit(t *testing.T) {
	for _, table := range []string{"mangle", "nat"} {
		t.Run(table, func(t *testing.T) {
			private(t)
			tools := t.TempDir()
			script := "#!/bin/sh\n[ \"$2\" = " + table + " ] || exit 0\nexec tail -f /dev/null\n"
			if err := os.WriteFile(filepath.Join(tools, "iptables-nft-save"), []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", tools+":"+os.Getenv("PATH"))
			ctx, cancel := inTime(t.Context(), 3*time.Second)
			defer cancel()
			if v, err := DetectVariant(ctx); err == nil || !strings.Contains(err.Error(), "reading the rules took more than 3s") {
				t.Errorf("%q, %v: want an error that says why", v, err)
			}
			if table != "nat" {
				return
			}
			var log strings.Builder
			b := &Backend{variant: netfilter.VariantLegacy, syncers: []*openFamily{{familySyncer: &familySyncer{kernel: &kernel{family: netfilter.IPv4}, log: slog.New(slog.NewTextHandler(&log, nil))}}}}
			b.warnOfOtherVariant(t.Context(), b.syncers, 50*time.Millisecond)
			if !strings.Contains(log.String(), "reading the rules took more than 50ms") {
				t.Errorf("of the other variant it is said: %q", log.String())
			}
		})
	}
}
