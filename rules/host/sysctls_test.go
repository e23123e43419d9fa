package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
)

// machine makes /proc and /sys of its own with these values.
func machine(t *testing.T, values map[string]string) Machine {
	t.Helper()
	m := Machine{Root: t.TempDir()}
	for name, value := range values {
		path := m.path(name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must(t, os.WriteFile(path, []byte(value+"\n"), 0o644))
	}
	return m
}

func (m Machine) expect(t *testing.T, want map[string]string) {
	t.Helper()
	for name, value := range want {
		got, err := os.ReadFile(m.path(name))
		if err != nil || strings.TrimSpace(string(got)) != value {
			t.Errorf("%s = %q, %v; want %s", name, got, err, value)
		}
	}
}

func TestConntrackMax(t *testing.T) {
	for _, test := range []struct{ perCore, least, cpus, want int }{
		{0, 131072, 8, 0},
		{-1, 131072, 8, 0},
		{32768, 131072, 2, 131072},
		{32768, 131072, 8, 262144},
		{32768, 131072, 128, 1048576},
		{32768, 2097152, 128, 2097152},
	} {
		if got := ConntrackMax(test.perCore, test.least, test.cpus); got != test.want {
			t.Errorf("ConntrackMax(%d, %d, %d) = %d, want %d", test.perCore, test.least, test.cpus, got, test.want)
		}
	}
}

func TestConntrackMaxIsOnlyRaised(t *testing.T) {
	for _, test := range []struct{ name, max, hash, wantMax, wantHash string }{
		{"both too small", "65536", "16384", "400000", "100000"},
		{"the administrator's is larger", "900000", "225000", "900000", "225000"},
		{"only the hash table is too small", "900000", "16384", "900000", "100000"},
		{"equal", "400000", "100000", "400000", "100000"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := machine(t, map[string]string{conntrackMaxFile: test.max, hashsizeFile: test.hash})
			if warnings := m.Apply(t.Context(), Sysctls{MaxPerCore: 1, Min: 400000}); warnings != nil {
				t.Error(warnings)
			}
			m.expect(t, map[string]string{conntrackMaxFile: test.wantMax, hashsizeFile: test.wantHash})
		})
	}
}

// TestConntrackMaxCountsOnlineCPUs: the table is the whole machine's, so neither the CPUs that this
// process may use nor those that are offline count.
func TestConntrackMaxCountsOnlineCPUs(t *testing.T) {
	fallback := strconv.Itoa(runtime.NumCPU() * 1000)
	for online, want := range map[string]string{
		"0": "1000", "0-3": "4000", "0-3,8,10-11": "7000", "5": "1000", "0-127": "128000", "2-2": "1000",
		"": fallback, "none": fallback, "3-1": fallback, "0-3,2": fallback, "0,,1": fallback, "0-": fallback,
		"0-99999999999": fallback, "-1": fallback,
	} {
		m := machine(t, map[string]string{conntrackMaxFile: "1", hashsizeFile: "1", onlineCPUsFile: online})
		if warnings := m.Apply(t.Context(), Sysctls{MaxPerCore: 1000}); warnings != nil {
			t.Error(warnings)
		}
		t.Logf("online CPUs %q", online)
		m.expect(t, map[string]string{conntrackMaxFile: want})
	}
	m := machine(t, map[string]string{conntrackMaxFile: "1", hashsizeFile: "1"})
	m.Apply(t.Context(), Sysctls{MaxPerCore: 1000})
	m.expect(t, map[string]string{conntrackMaxFile: fallback})
}

func TestApplyTimeouts(t *testing.T) {
	const tcp, wait, udp, stream, liberal = conntrackDir + "nf_conntrack_tcp_timeout_established",
		conntrackDir + "nf_conntrack_tcp_timeout_close_wait", conntrackDir + "nf_conntrack_udp_timeout",
		conntrackDir + "nf_conntrack_udp_timeout_stream", conntrackDir + "nf_conntrack_tcp_be_liberal"
	before := map[string]string{tcp: "432000", wait: "60", udp: "30", stream: "120", liberal: "0"}

	m := machine(t, before)
	if warnings := m.Apply(t.Context(), Sysctls{}); warnings != nil {
		t.Errorf("nothing asked for, yet: %v", warnings)
	}
	m.expect(t, before)
	if m.BeLiberal() {
		t.Error("BeLiberal with the setting 0")
	}

	all := Sysctls{TCPTimeoutEstablished: 24 * time.Hour, TCPTimeoutCloseWait: time.Hour, TCPBeLiberal: true}
	all.UDPTimeout, all.UDPTimeoutStream = 10*time.Second, time.Minute
	if warnings := m.Apply(t.Context(), all); warnings != nil {
		t.Error(warnings)
	}
	m.expect(t, map[string]string{tcp: "86400", wait: "3600", udp: "10", stream: "60", liberal: "1"})
	if !m.BeLiberal() {
		t.Error("not BeLiberal with the setting 1")
	}
}

// TestEqualValueIsNotWritten: a read-only /proc/sys is no reason to warn about settings
// that are right already.
func TestEqualValueIsNotWritten(t *testing.T) {
	m := machine(t, map[string]string{routeLocalnetFile: "1"})
	old := time.Unix(1, 0)
	must(t, os.Chtimes(m.path(routeLocalnetFile), old, old))
	must(t, m.RouteLocalnet())
	info, err := os.Stat(m.path(routeLocalnetFile))
	must(t, err)
	if !info.ModTime().Equal(old) {
		t.Error("the value that was there is written again")
	}
	m = machine(t, map[string]string{routeLocalnetFile: "0"})
	must(t, m.RouteLocalnet())
	m.expect(t, map[string]string{routeLocalnetFile: "1"})
}

func TestAbsentSettingsAreWarnings(t *testing.T) {
	const udp = conntrackDir + "nf_conntrack_udp_timeout"
	m := machine(t, map[string]string{udp: "30"})
	warnings := m.Apply(t.Context(), Sysctls{MaxPerCore: 32768, Min: 131072, TCPTimeoutEstablished: time.Hour, UDPTimeout: time.Minute})
	if len(warnings) != 2 {
		t.Fatalf("warnings: %v; want one about the table's size and one about the TCP timeout", warnings)
	}
	for i, words := range [][]string{
		{"sysctl net.netfilter.nf_conntrack_max", "load the kernel module nf_conntrack", "--conntrack-max-per-core=0"},
		{"sysctl net.netfilter.nf_conntrack_tcp_timeout_established", "3600", "--conntrack-tcp-timeout-established=0s"},
	} {
		for _, word := range words {
			if !errors.Is(warnings[i], fs.ErrNotExist) || !strings.Contains(warnings[i].Error(), word) {
				t.Errorf("warning %q does not say %q", warnings[i], word)
			}
		}
	}
	m.expect(t, map[string]string{udp: "60"}) // the others' absence did not stop it
	if _, err := os.Stat(m.path(conntrackMaxFile)); err == nil {
		t.Error("a setting that the kernel does not have was created")
	}
}

// TestKernelSettings: in a network namespace the timeouts can be set, and the size of the
// table, which belongs to the whole machine, cannot.
func TestKernelSettings(t *testing.T) {
	need.Namespace(t)
	m := Machine{}
	size, err := m.readInt(conntrackMaxFile)
	need.That(t, err == nil, "the kernel module nf_conntrack is not loaded: run `modprobe nf_conntrack`")
	const udp = conntrackDir + "nf_conntrack_udp_timeout"
	warnings := m.Apply(t.Context(), Sysctls{MaxPerCore: 1, Min: int(size) + 1, UDPTimeout: 17 * time.Second, TCPBeLiberal: true})
	if len(warnings) != 1 || !errors.Is(warnings[0], fs.ErrPermission) || !strings.Contains(warnings[0].Error(), "set it on the host") {
		t.Errorf("warnings: %v; want one about nf_conntrack_max, which may only be read here", warnings)
	}
	m.expect(t, map[string]string{udp: "17"})
	if !m.BeLiberal() {
		t.Error("not BeLiberal after it was set")
	}
	must(t, m.RouteLocalnet())
	m.expect(t, map[string]string{routeLocalnetFile: "1"})
}
