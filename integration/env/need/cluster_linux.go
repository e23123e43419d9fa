package need

import (
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
	return missingGroup("machines")
}
