package ipvs

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gridproxy/integration/need"
	"gridproxy/rules"
	"gridproxy/rules/iptables"
)

// newTables is the skeleton's backend.
func newTables(t testing.TB, c iptables.Config) *iptables.Backend {
	t.Helper()
	b, err := iptables.New(c)
	must(t, err)
	return b
}

// TestProbeNamesWhatIsMissing on a kernel without IPVS, where moby/ipvs itself would report
// success for everything. It is the guard of this package against that.
func TestProbeNamesWhatIsMissing(t *testing.T) {
	need.IPTables(t)
	if need.MissingIPVS() == "" {
		t.Skip("this kernel has IPVS; `make test` runs this test on one that has not")
	}
	need.Namespace(t)
	_, err := New(BackendConfig{Tables: newTables(t, iptables.Config{Variant: iptables.VariantNFT, IPVS: true})})
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
	need.IPVS(t)
	for _, variant := range []iptables.Variant{iptables.VariantNFT, iptables.VariantLegacy} {
		enter(t)
		for _, scheduler := range []string{"rr", "mh", "wlc"} {
			b, err := New(BackendConfig{
				Config: Config{Scheduler: scheduler},
				Tables: newTables(t, iptables.Config{Variant: variant, IPVS: true}),
			})
			if err != nil {
				t.Fatalf("%s, %s: %v", variant, scheduler, err)
			}
			b.kernel.close()
		}
		nothingLeft(t)
	}
}

// TestProbeScheduler: the kernel does not have every scheduler that there is; and a name
// that is none never gets to its module loader.
func TestProbeScheduler(t *testing.T) {
	need.IPVS(t)
	enter(t)
	k := open(t)
	if err := (&prober{kernel: k, families: bothFamilies()}).run(t.Context(), "nothing"); err == nil ||
		!strings.Contains(err.Error(), "ip_vs_nothing") {
		t.Errorf("a scheduler that is not there: %v", err)
	}
	if _, err := New(BackendConfig{Config: Config{Scheduler: "ftp"}, Tables: emptyTables{}}); err == nil ||
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
			return errNoScheduler
		}
		return nil
	}
	var s schedulers
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
