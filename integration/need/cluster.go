package need

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// Cluster skips a test that runs machines of package machines, unless this machine can: it takes root,
// control groups that can be written, and a C compiler for runc.
func Cluster(t testing.TB) {
	t.Helper()
	missing := MissingCluster()
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
