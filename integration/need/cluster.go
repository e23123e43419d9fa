package need

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Cluster skips a test that runs machines of package machines, unless this machine can: it takes root,
// control groups that can be written, and a C compiler for runc. With INTEGRATION_REQUIRE=cluster, as in CI,
// such a test fails instead; several words there are separated by commas or spaces.
func Cluster(t testing.TB) {
	t.Helper()
	missing := MissingCluster()
	if missing != "" && Required("cluster") {
		t.Fatal("MISSING: " + missing)
	}
	That(t, missing == "", missing)
}

// MissingCluster is what Cluster would say; "" = nothing is missing.
func MissingCluster() string {
	if missing := MissingIPTables(); missing != "" {
		return missing
	}
	if unix.Access("/sys/fs/cgroup", unix.W_OK) != nil {
		return "/sys/fs/cgroup cannot be written, so no containers can be started: run this outside of a container, or in a privileged one"
	}
	for tool, pkg := range map[string]string{"gcc": "gcc libc6-dev", "pkg-config": "pkg-config", "nsenter": "util-linux", "curl": "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			return tool + " is not installed: run `apt-get install " + pkg + "`"
		}
	}
	if exec.Command("pkg-config", "--exists", "libseccomp").Run() != nil {
		return "the headers of libseccomp are not installed: run `apt-get install libseccomp-dev`"
	}
	return ""
}

// Asked skips a test that costs more than people who run all tests expect, unless INTEGRATION_REQUIRE names its kind.
// GRIDPROXY_REQUIRE=all does not ask for it. command is what does.
func Asked(t testing.TB, what, costs, command string) {
	t.Helper()
	if !Required(what) {
		t.Skip("SKIPPED: it " + costs + ", so it is run only where it is asked for: `" + command + "`")
	}
}

// Required says whether INTEGRATION_REQUIRE names one kind of tests, vm, cluster or image, that must not be skipped.
func Required(what string) bool {
	words := strings.FieldsFunc(os.Getenv("INTEGRATION_REQUIRE"), func(r rune) bool { return r == ',' || r == ' ' })
	return slices.Contains(words, what)
}
