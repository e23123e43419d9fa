package iptables

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"golang.org/x/sys/unix"
)

// toolsIn makes a folder in front of PATH whose programs of one family fail with a message. They
// answer --version if version is set. Removing the folder repairs them.
func toolsIn(t *testing.T, v netfilter.Variant, f netfilter.Family, version, message string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	script := "cat >&2 <<'END'\n" + message + "\nEND\nexit 3"
	if version != "" {
		script = "[ \"$1\" = --version ] && echo '" + version + "' && exit\n" + script
	}
	for _, suffix := range toolSuffixes {
		program(t, dir, toolName(v, f, suffix), script)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// linksTo makes a PATH of one folder that only has links to the tools of one family.
func linksTo(t *testing.T, v netfilter.Variant, f netfilter.Family) (link func(netfilter.Family)) {
	t.Helper()
	dir, path := t.TempDir(), os.Getenv("PATH")
	link = func(f netfilter.Family) {
		for _, suffix := range toolSuffixes {
			t.Setenv("PATH", path)
			tool, err := findTool(toolName(v, f, suffix))
			if err == nil {
				err = os.Symlink(tool, filepath.Join(dir, toolName(v, f, suffix)))
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir)
		}
	}
	link(f)
	return link
}

// TestFailedFamilyIsRetried: a family whose tool fails at the start is not left out. The other
// family is written, and this one as soon as its tool works.
func TestFailedFamilyIsRetried(t *testing.T) {
	for _, broken := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
		t.Run(broken.String(), func(t *testing.T) {
			private(t)
			healthy := netfilter.IPv4 + netfilter.IPv6 - broken
			dir := toolsIn(t, netfilter.VariantNFT, broken, "iptables v1.8.9", "iptables v1.8.9 (nf_tables): table `nat' is incompatible, use 'nft' tool.")
			b, _ := newBackend(t, netfilter.VariantNFT)
			rs := ruleset(services(2, 1))
			c, err := trySync(t, b, rs, true)
			if err == nil || c.Families[broken].Err == nil || !strings.Contains(c.Families[broken].Err.Error(), "native nftables rules") {
				t.Errorf("%s is broken: outcome %+v, error %v", broken, c.Families[broken], err)
			}
			if !c.Families[healthy].Synced() {
				t.Errorf("%s is healthy: outcome %+v", healthy, c.Families[healthy])
			}
			wantEqual(t, t, b, rs) // of the families that are open
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if c, err := trySync(t, b, rs, false); err == nil || c.Families[broken].Err == nil || !c.Families[healthy].Synced() {
				t.Errorf("a sync that does not verify: %+v, %v; want it to leave %s alone", c.Families, err, broken)
			}
			if c := mustSync(t, b, rs, true); c.Families != (rules.Outcomes{}) {
				t.Errorf("both work: %+v", c.Families)
			}
			wantEqual(t, t, b, rs)
		})
	}
}

// TestHealthyFamilyDoesNotWait: after a family has failed, changes of the other one are written
// without starting the tools of the failed one, until a sync that verifies.
func TestHealthyFamilyDoesNotWait(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT)
	mustSync(t, b, ruleset(services(2, 1)), true)
	broken, good := b.syncers[1], b.syncers[1].kernel.restore.path
	calls := filepath.Join(t.TempDir(), "calls")
	broken.kernel.restore.path = program(t, t.TempDir(), "restore", "echo call >>"+calls+"\necho Cannot allocate memory >&2\nexit 3")
	fails := func(n int) {
		t.Helper()
		c, err := trySync(t, b, ruleset(services(n, 1)), false)
		if err == nil || c.Families[netfilter.IPv6].Err == nil || !c.Families[netfilter.IPv4].Synced() {
			t.Errorf("%d Services: %+v, %v", n, c.Families, err)
		}
		if got := len(b.syncers[0].last.Rules.Services); got != n {
			t.Errorf("the healthy family has %d Services, want %d", got, n)
		}
	}
	fails(3)
	before, err := os.ReadFile(calls)
	if err != nil {
		t.Fatal("the broken tool was not tried at all: ", err)
	}
	broken.kernel.restore.path = good
	fails(4)
	if after, err := os.ReadFile(calls); err != nil || len(after) != len(before) {
		t.Errorf("the broken tool was started again: %q, %v", after, err)
	}
	mustSync(t, b, ruleset(services(4, 1)), true)
	wantEqual(t, t, b, ruleset(services(4, 1)))
}

// TestLockAtStart: the start survives that another program holds the lock of iptables-legacy for
// longer than the tools wait. The family is written once the lock is free.
func TestLockAtStart(t *testing.T) {
	private(t)
	lock, err := os.OpenFile(os.Getenv("XTABLES_LOCKFILE"), os.O_CREATE|os.O_RDWR, 0o600)
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	b, _ := newBackend(t, netfilter.VariantLegacy, netfilter.IPv4)
	rs := ruleset(services(2, 1))
	c, err := trySync(t, b, rs, true)
	if err == nil || c.Families[netfilter.IPv4].Err == nil || !strings.Contains(err.Error(), "xtables lock") {
		t.Errorf("the lock is held: %+v, %v", c.Families[netfilter.IPv4], err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if c := mustSync(t, b, rs, false); !c.Families[netfilter.IPv4].Synced() {
		t.Errorf("the lock is free: %+v", c.Families[netfilter.IPv4])
	}
	wantEqual(t, t, b, rs)
}

// TestToolInstalledLater: a family without tools is left out until they are installed. That is no
// failure.
func TestToolInstalledLater(t *testing.T) {
	private(t)
	link := linksTo(t, netfilter.VariantNFT, netfilter.IPv4)
	b, _ := newBackend(t, netfilter.VariantNFT)
	rs := ruleset(services(2, 1))
	c := mustSync(t, b, rs, true)
	if c.Families[netfilter.IPv6].LeftOut == nil || !strings.Contains(c.Families[netfilter.IPv6].LeftOut.Error(), "apt-get install iptables") {
		t.Errorf("IPv6 has no tools: %+v", c.Families[netfilter.IPv6])
	}
	link(netfilter.IPv6)
	if c := mustSync(t, b, rs, false); c.Families != (rules.Outcomes{}) {
		t.Errorf("both have tools: %+v", c.Families)
	}
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin:/usr/bin:/bin")
	wantEqual(t, t, b, rs)
}

// TestFamilyEnabledLater: a family that the kernel lacks or does not use is left out until it does.
func TestFamilyEnabledLater(t *testing.T) {
	private(t)
	enabled := false
	b, err := New(t.Context(), Config{
		Variant: netfilter.VariantNFT, MasqueradeBit: 14, Log: slog.New(slog.NewTextHandler(testWriter{t}, nil)),
		HasFamily: func(f netfilter.Family) bool { return f == netfilter.IPv4 || enabled },
	})
	if err != nil {
		t.Fatal(err)
	}
	rs := ruleset(services(2, 1))
	if c := mustSync(t, b, rs, true); c.Families[netfilter.IPv6].LeftOut == nil {
		t.Errorf("IPv6 is disabled: %+v", c.Families[netfilter.IPv6])
	}
	enabled = true
	if c := mustSync(t, b, rs, false); c.Families != (rules.Outcomes{}) {
		t.Errorf("IPv6 is enabled: %+v", c.Families)
	}
	wantEqual(t, t, b, rs)
	enabled = false // an open family stays open: its rules are in the kernel
	if c := mustSync(t, b, rs, false); c.Families != (rules.Outcomes{}) {
		t.Errorf("IPv6 is disabled again: %+v", c.Families)
	}
}

// TestKernelWithoutFamily: a family is left out if the tools print what they print on a kernel
// without its tables. Only a verify looks for it again.
func TestKernelWithoutFamily(t *testing.T) {
	for v, message := range map[netfilter.Variant]string{
		netfilter.VariantLegacy: "ip6tables v1.8.9 (legacy): can't initialize ip6tables table `nat': Table does not exist (do you need to insmod?)",
		netfilter.VariantNFT:    "ip6tables v1.8.9 (nf_tables): Could not fetch rule set generation id: Invalid argument",
	} {
		t.Run(string(v), func(t *testing.T) {
			private(t)
			dir := toolsIn(t, v, netfilter.IPv6, "ip6tables v1.8.9", message)
			b, _ := newBackend(t, v)
			rs := ruleset(services(2, 1))
			if c := mustSync(t, b, rs, true); c.Families[netfilter.IPv6].LeftOut == nil || !c.Families[netfilter.IPv4].Synced() {
				t.Errorf("the kernel has no IPv6: %+v", c.Families)
			}
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if c := mustSync(t, b, rs, false); c.Families[netfilter.IPv6].LeftOut == nil {
				t.Errorf("without a verify the kernel was asked again: %+v", c.Families[netfilter.IPv6])
			}
			if c := mustSync(t, b, rs, true); c.Families != (rules.Outcomes{}) {
				t.Errorf("the kernel has both: %+v", c.Families)
			}
			wantEqual(t, t, b, rs)
		})
	}
}

// TestStartThatCannotHelp: a start fails only where waiting would not help.
func TestStartThatCannotHelp(t *testing.T) {
	locked, denied := errors.New("another app is currently holding the xtables lock"), errors.New("Permission denied (you must be root)")
	missing := missingTableError{errors.New("Table does not exist")}
	for _, tc := range []struct {
		four, six error
		fails     bool
	}{
		{denied, denied, true},
		{missing, missing, true},
		{missing, denied, true},
		{locked, missing, false},
		{denied, locked, false},
		{nil, locked, false},
		{nil, missing, false},
	} {
		c := Config{Families: []netfilter.Family{netfilter.IPv4, netfilter.IPv6}, Log: slog.New(slog.DiscardHandler)}
		fs := newFamilies(c, netfilter.VariantNFT, func(_ context.Context, f netfilter.Family) (netfilter.Family, error) {
			return f, [2]error{tc.four, tc.six}[f]
		})
		if _, err := fs.start(t.Context()); (err != nil) != tc.fails {
			t.Errorf("IPv4 %v, IPv6 %v: start says %v", tc.four, tc.six, err)
		}
	}
}

// TestShadowRetriesFamily: a shadow does not silently compare one family only.
func TestShadowRetriesFamily(t *testing.T) {
	private(t)
	dir := toolsIn(t, netfilter.VariantNFT, netfilter.IPv6, "", "no memory")
	s, err := NewShadow(t.Context(), Config{Variant: netfilter.VariantNFT, MasqueradeBit: 14})
	if err != nil {
		t.Fatal(err)
	}
	c, err := s.Sync(t.Context(), ruleset(nil), true)
	if err == nil || c.Families[netfilter.IPv6].Err == nil || c.Families[netfilter.IPv4].Err != nil || c.Verified {
		t.Errorf("IPv6 cannot be compared: %+v, %v", c, err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if c, err := s.Sync(t.Context(), ruleset(nil), true); err != nil || !c.Verified || len(s.Families()) != 2 {
		t.Errorf("both can be compared: %+v, %v, families %v", c, err, s.Families())
	}
}
