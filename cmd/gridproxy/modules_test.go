package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/need"
)

// TestModulesOfLegacy: on a node that has never used iptables-legacy, the daemon cannot use it, nor
// can `run --init-only` without the modules of the node. With the modules it can. Then the daemon
// can too, because it retries at each sync.
func TestModulesOfLegacy(t *testing.T) {
	if os.Getenv("GRIDPROXY_GUEST") == "" {
		t.Skip("SKIPPED: this unloads modules of the kernel, in a virtual machine only: run `make test SUITES='ipvs-*'`")
	}
	need.IPTables(t)
	unload(t, "iptable_filter", "iptable_mangle", "iptable_nat", "iptable_raw", "ip_tables")
	unload(t, "ip6table_filter", "ip6table_mangle", "ip6table_nat", "ip6table_raw", "ip6_tables")
	manifests := clusterFile(t)
	args := []string{"run", "--iptables-variant=legacy", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests=" + manifests}
	ns, run := newNamespace(t), t.TempDir()

	daemon := startCommand(t, ns, unprivileged(run, args...))
	daemon.until(t, "both families to fail", func() bool { return daemon.logged("cannot read table nat") >= 2 })
	daemon.until(t, "not ready", func() bool { return daemon.get("/readyz", 10256).code == 503 })
	blind := gridproxy(append(args, "--init-only")...)
	blind.Args = append([]string{"sh", "-c", `mount -t tmpfs none /lib/modules && exec "$0" "$@"`, blind.Path}, blind.Args[1:]...)
	blind.Path, blind.SysProcAttr = "/bin/sh", &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if p := startCommand(t, ns, blind); p.wait(t) != command.Failure || p.logged("Module ip_tables not found in directory /lib/modules/") < 1 {
		t.Errorf("--init-only without /lib/modules:\n%s", p.output)
	}
	if init := startCommand(t, ns, gridproxy(append(args, "--init-only")...)); init.wait(t) != 0 {
		t.Errorf("--init-only with /lib/modules:\n%s", init.output)
	}
	daemon.ready(t)
	for _, name := range []string{"iptable_filter", "ip6table_filter", "iptable_nat", "ip6table_nat"} {
		if !loaded(t, name) {
			t.Errorf("module %s is not loaded, so this kernel has it built in, and the test shows nothing", name)
		}
	}
}

// unload removes those of the modules that are loaded, in this order.
func unload(t *testing.T, modules ...string) {
	t.Helper()
	for _, m := range modules {
		if !loaded(t, m) {
			continue
		}
		if text, err := exec.Command("rmmod", m).CombinedOutput(); err != nil {
			t.Fatalf("unloading %s: %v: %s", m, err, text)
		}
	}
}

func loaded(t *testing.T, module string) bool {
	t.Helper()
	text, err := os.ReadFile("/proc/modules")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains("\n"+string(text), "\n"+module+" ")
}
