package main

import (
	"fmt"
	"path/filepath"
	"syscall"
	"testing"
)

// TestSecondDaemonWaits: a daemon that starts while another one serves the network namespace writes
// nothing until that has ended, even by a kill, and serves then. --init-only waits for nothing.
func TestSecondDaemonWaits(t *testing.T) {
	t.Parallel()
	manifests := filepath.Join(t.TempDir(), "cluster.yaml")
	write(t, manifests, cluster("10.0.0.70", "beijing"))
	args := []string{"--node-name=bj-3", "--manifests=" + manifests}
	first := start(t, args...)
	first.until(t, "ready", func() bool { return first.get("/readyz", 10256).code == 200 })
	if init := startIn(t, first.ns, append(args, "--init-only")...); init.wait(t) != 0 {
		t.Error("--init-only is refused")
	}
	second := startIn(t, first.ns, args...)
	second.until(t, "it waits", func() bool {
		return second.logged(fmt.Sprintf("waiting for it to end\" holder=\"process %d, version ", first.cmd.Process.Pid)) == 1
	})
	first.stop(t, syscall.SIGKILL)
	second.until(t, "ready", func() bool { return second.get("/readyz", 10256).code == 200 })
	second.stop(t, syscall.SIGTERM)
}
