// Package need is all that tests of the product may use of integration. It skips tests that miss
// something on this machine, and says how to get it; it knows the Debian packages of each program
// that tests, demos and builds start (Group), and installs them. It has two fakes, for what no
// machine shows when it should: a kernel that refuses rules (Refusal) and an API server that loses
// its objects (FakeAPI). With REQUIRE=all, as in CI, such a test fails instead. What no
// installation can give, a feature of the kernel, is not asked for here: such a test skips, and the
// table of integration/suites expects it.
package need

import (
	"cmp"
	"os"
	"os/exec"
	"testing"
)

// That skips the test unless ok. missing says what is missing and how to get it.
func That(t testing.TB, ok bool, missing string) {
	t.Helper()
	switch {
	case ok:
	case os.Getenv("REQUIRE") == "all":
		t.Fatal("MISSING: " + missing)
	default:
		t.Skip("SKIPPED: " + missing)
	}
}

// Root skips a test that makes network namespaces unless it runs as root.
func Root(t testing.TB) {
	t.Helper()
	missing := missingRoot()
	That(t, missing == "", missing)
}

// Tools skips a test unless all programs are in PATH. remedy says how to get them.
func Tools(t testing.TB, remedy string, programs ...string) {
	t.Helper()
	for _, p := range programs {
		_, err := exec.LookPath(p)
		That(t, err == nil, p+" is not installed: "+remedy)
	}
}

// IPTables skips a test that needs root and both variants of iptables for both families.
func IPTables(t testing.TB) {
	t.Helper()
	missing := MissingIPTables()
	That(t, missing == "", missing)
}

// Strace skips a test that needs strace.
func Strace(t testing.TB) {
	t.Helper()
	missing := missingGroup("strace")
	That(t, missing == "", missing)
}

// Systemd skips a test that verifies units.
func Systemd(t testing.TB) {
	t.Helper()
	missing := missingGroup("systemd")
	That(t, missing == "", missing)
}

// MissingIPTables is what IPTables would say; "" = nothing is missing. It is for a TestMain,
// which has no test to skip.
func MissingIPTables() string {
	return cmp.Or(missingGroup("iptables"), missingRoot())
}

// missingGroup is what this machine lacks of a group of Debian packages; "" = nothing.
func missingGroup(name string) string {
	group, err := FindGroup(name)
	if err != nil {
		return err.Error()
	}
	return group.Remedy()
}

// Prometheus skips a test that needs Prometheus and promtool.
func Prometheus(t testing.TB) {
	t.Helper()
	missing := missingGroup("prometheus")
	That(t, missing == "", missing)
}

func missingRoot() string {
	if os.Geteuid() != 0 {
		return "network namespaces need root: run `sudo make test`"
	}
	return ""
}

// IPVS skips a test that needs a kernel with IPVS. What a kernel lacks cannot be installed, so
// on a machine without it even REQUIRE=all does not ask for it; in a guest of
// integration/env/vm, which is there for such tests, it must be available.
func IPVS(t testing.TB) {
	t.Helper()
	Root(t)
	missing := MissingIPVS()
	switch {
	case missing == "":
	case os.Getenv("GRIDPROXY_GUEST") != "":
		t.Fatal("MISSING: " + missing)
	default:
		t.Skip("SKIPPED: " + missing)
	}
}

// MissingIPVS is what IPVS would say; "" = nothing is missing.
func MissingIPVS() string {
	const list = "/proc/thread-self/net/ip_vs"
	if _, err := os.Stat(list); err != nil {
		_ = exec.Command("modprobe", "ip_vs").Run()
	}
	if _, err := os.Stat(list); err != nil {
		return "this kernel has no IPVS: run `make test SUITES='ipvs-*'`, which boots one that has"
	}
	return ""
}
