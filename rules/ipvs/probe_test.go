package ipvs

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/rules"
	"gridproxy/rules/netfilter"

	"golang.org/x/sys/unix"
)

// TestProbeNamesWhatIsMissing on a kernel without IPVS, where moby/ipvs itself would report
// success for everything. It is the guard of this package against that.
func TestProbeNamesWhatIsMissing(t *testing.T) {
	need.IPTables(t)
	if need.MissingIPVS() == "" {
		t.Skip("this kernel has IPVS; `make test` runs this test on one that has not")
	}
	need.Namespace(t)
	_, err := New(t.Context(), BackendConfig{Tables: newTables(t, netfilter.VariantNFT)})
	if err == nil {
		t.Fatal("New works without IPVS")
	}
	t.Log(err)
	for _, part := range []string{"ip_vs", "ip_vs_rr", "modprobe -a ip_vs", "--proxy-mode=iptables"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the message does not say %q:\n%v", part, err)
		}
	}
	nothingLeft(t)
}

func TestProbe(t *testing.T) {
	for _, variant := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		enter(t)
		for _, scheduler := range []string{"rr", "mh", "wlc"} {
			b, err := New(t.Context(), BackendConfig{
				Config: Config{Scheduler: scheduler},
				Tables: newTables(t, variant),
			})
			if err != nil {
				t.Fatalf("%s, %s: %v", variant, scheduler, err)
			}
			b.kernel.close()
		}
		nothingLeft(t)
	}
}

// TestProbeScheduler: the kernel does not have every scheduler that there is; and a name that is no
// scheduler never gets to its module loader.
func TestProbeScheduler(t *testing.T) {
	enter(t)
	k := open(t)
	if err := (&prober{kernel: k, families: bothFamilies()}).run(t.Context(), "nothing"); err == nil ||
		!strings.Contains(err.Error(), "ip_vs_nothing") {
		t.Errorf("a scheduler that is not there: %v", err)
	}
	if _, err := New(t.Context(), BackendConfig{Config: Config{Scheduler: "ftp"}, Tables: emptyTables{}}); err == nil ||
		!strings.Contains(err.Error(), "wrr") || !strings.Contains(err.Error(), `"ftp"`) {
		t.Errorf("scheduler ftp: %v", err)
	}
	if loaded, err := os.ReadFile("/proc/modules"); err != nil || strings.Contains(string(loaded), "ip_vs_ftp") {
		t.Errorf("module ip_vs_ftp was loaded, or %v", err)
	}
	nothingLeft(t)
}

func TestSchedulersAreAskedOnce(t *testing.T) {
	services := []*rules.Service{{}, {Scheduler: "wlc"}, {Scheduler: "twos"}, {Scheduler: "ftp"}, {Scheduler: "wlc"}}
	var asked []string
	try := func(name string) error {
		asked = append(asked, name)
		if name == "twos" {
			return unix.ENOENT // as the kernel says
		}
		return nil
	}
	var s probedSchedulers
	for range 3 {
		must(t, s.look(services, try))
	}
	if !slices.Equal(asked, []string{"wlc", "twos"}) || !slices.Equal(s.lacks, []string{"ftp", "twos"}) {
		t.Errorf("asked for %v, lacks %v", asked, s.lacks)
	}
	s.forget()
	must(t, s.look(services, try))
	if !slices.Equal(asked, []string{"wlc", "twos", "twos"}) {
		t.Errorf("after forget: asked for %v", asked)
	}
}

// leaveTries leaves what a process leaves that is killed while it probes, at its worst.
func leaveTries(t *testing.T, variant netfilter.Variant) {
	t.Helper()
	for _, f := range []struct{ set, tool, family string }{
		{"KUBE-IPVS-TRY", "iptables", "inet"}, {"KUBE-6-IPVS-TRY", "ip6tables", "inet6"},
	} {
		run(t, "create "+f.set+" hash:ip,port family "+f.family+"\n", "ipset", "restore")
		run(t, "*nat\n:KUBE-IPVS-TRY - [0:0]\n-A KUBE-IPVS-TRY -m set --match-set "+f.set+" dst,dst -j RETURN\nCOMMIT\n",
			f.tool+"-"+string(variant)+"-restore", "--noflush")
	}
	if need.MissingIPVS() == "" {
		run(t, "-A -t 198.51.100.0:20000 -s rr\n", "ipvsadm", "-R")
		run(t, "", "ip", "link", "add", "kube-ipvs-try", "type", "dummy")
	}
}

// TestProbeAfterKill: what a killed process left is in the way of nothing, and is removed.
func TestProbeAfterKill(t *testing.T) {
	need.IPTables(t)
	need.Tools(t, "run `apt-get install ipset`", "ipset")
	for _, variant := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		need.Namespace(t)
		leaveTries(t, variant)
		tables := newTables(t, variant)
		p := prober{kernel: open(t), chains: tables, families: bothFamilies()}
		for _, try := range []func() error{
			func() error { return p.removeLeftovers(t.Context()) }, p.trySets, func() error { return p.tryMatches(t.Context()) },
		} {
			must(t, try())
		}
		if slices.Contains(p.missing, "xt_set") || slices.Contains(p.missing, "ip_set") {
			t.Errorf("%s: the kernel is said to lack %v: %v", variant, p.missing, p.why)
		}
		must(t, p.kernel.removeTries())
		nothingLeft(t)

		leaveTries(t, variant)
		b, err := New(t.Context(), BackendConfig{Config: Config{Retire: true}, Tables: tables})
		must(t, err)
		must(t, b.Cleanup(t.Context()))
		b.kernel.close()
		nothingLeft(t)
		if need.MissingIPVS() != "" {
			continue
		}
		leaveTries(t, variant)
		b, err = New(t.Context(), BackendConfig{Tables: tables})
		if err != nil {
			t.Fatalf("%s: %v", variant, err)
		}
		b.kernel.close()
		nothingLeft(t)
	}
}

// TestProbeWithoutLock: a rule that was not even tried says nothing about the kernel.
func TestProbeWithoutLock(t *testing.T) {
	need.IPTables(t)
	need.Namespace(t)
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	must(t, err)
	defer lock.Close()
	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_EX))
	t.Setenv("XTABLES_LOCKFILE", lock.Name())
	p := prober{kernel: open(t), chains: onlyRestoring(netfilter.VariantLegacy), families: bothFamilies()}
	if err := p.tryMatches(t.Context()); !errors.Is(err, errLocked) || len(p.missing) > 0 {
		t.Errorf("while others hold the lock: %v, and the kernel is said to lack %v", err, p.missing)
	}
	nothingLeft(t)

	must(t, unix.Flock(int(lock.Fd()), unix.LOCK_UN))
	if err := p.tryMatches(t.Context()); err != nil || slices.Contains(p.missing, "xt_set") {
		t.Errorf("once they do not: %v, and the kernel is said to lack %v", err, p.missing)
	}
}
