package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"
)

// TestFailedStartChangesNothing: sources are read, and the tools are looked for, before a setting
// or rule is written, with --init-only too, so that a typing mistake leaves the host as it was.
func TestFailedStartChangesNothing(t *testing.T) {
	need.IPTables(t)
	fails := func(t *testing.T, about string, env []string, flags ...string) {
		ns := newNamespace(t)
		setSysctl(t, ns, closeWait, "61")
		setSysctl(t, ns, loopbackRouting, "0")
		setSysctl(t, ns, "net/ipv4/ip_forward", "0")
		cmd := gridproxy(append([]string{"run", "--iptables-variant=nft", "--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-close-wait=59m", "--node-name=bj-3"}, flags...)...)
		cmd.Env = append(cmd.Env, env...)
		d := startCommand(t, ns, cmd)
		if code := d.wait(t); code == 0 || d.logged(about) == 0 {
			t.Errorf("code %d, want an error about %s:\n%s", code, about, d.output.String())
		}
		if got := d.sysctl(t, closeWait) + " " + d.sysctl(t, loopbackRouting) + " " + d.sysctl(t, "net/ipv4/ip_forward"); got != "61 0 0" {
			t.Errorf("settings are %s after a failed start, want 61 0 0", got)
		}
		if rules := d.rules(t); strings.Contains(rules, "KUBE-") {
			t.Errorf("a failed start wrote rules:\n%s", rules)
		}
	}
	malformed, good := filepath.Join(t.TempDir(), "malformed.yaml"), filepath.Join(t.TempDir(), "cluster.yaml")
	write(t, malformed, "{")
	write(t, good, cluster("10.0.0.70", "beijing"))
	for _, source := range []string{"--manifests=/nonexistent.yaml", "--manifests=" + malformed, "--kubeconfig=/nonexistent"} {
		for _, mode := range []string{"--proxy-mode=iptables", "--proxy-mode=ipvs", "--init-only"} {
			t.Run(mode+" "+source[:11], func(t *testing.T) { fails(t, source[strings.Index(source, "=")+1:], nil, mode, source) })
		}
	}
	t.Run("without tools", func(t *testing.T) { fails(t, "iptables-nft", []string{"PATH=/nonexistent"}, "--manifests="+good) })
}

// TestInitOnlyReadsGivenSources: neither a good path nor a missing flag is an error.
func TestInitOnlyReadsGivenSources(t *testing.T) {
	need.IPTables(t)
	manifests := clusterFile(t)
	for _, args := range [][]string{{"--manifests=" + manifests}, nil} {
		ns := newNamespace(t)
		setSysctl(t, ns, closeWait, "61")
		d := startCommand(t, ns, gridproxy(append([]string{"run", "--init-only", "--iptables-variant=nft", "--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-close-wait=59m", "--node-name=bj-3"}, args...)...))
		if code := d.wait(t); code != 0 || d.sysctl(t, closeWait) != "3540" {
			t.Errorf("%q: code %d, %s is %s, want 3540", args, code, closeWait, d.sysctl(t, closeWait))
		}
	}
}

// TestCleanupRestoresSettings: cleanup --sysctls restores the settings that a daemon changed before
// it ended, and prints them.
func TestCleanupRestoresSettings(t *testing.T) {
	need.IPTables(t)
	manifests := clusterFile(t)
	ns := newNamespace(t)
	setSysctl(t, ns, closeWait, "61")
	args := []string{"run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-close-wait=59m", "--node-name=bj-3", "--manifests=" + manifests}
	for range 2 {
		d := startCommand(t, ns, gridproxy(args...)).ready(t)
		d.until(t, "loopback routing", func() bool { return d.sysctl(t, loopbackRouting) == "1" })
		d.stop(t, syscall.SIGKILL)
		if got := d.sysctl(t, closeWait); got != "3540" {
			t.Fatalf("%s is %s, want 3540", closeWait, got)
		}
	}
	for _, told := range []string{"sysctl net.netfilter.nf_conntrack_tcp_timeout_close_wait: 3540 -> 61", "no change of a setting is recorded here"} {
		c := startCommand(t, ns, gridproxy("cleanup", "--sysctls", "--iptables-variant=nft"))
		if code := c.wait(t); code != 0 || c.logged(told) != 1 {
			t.Errorf("cleanup --sysctls: code %d, want 0 and %q", code, told)
		}
		if got := c.sysctl(t, closeWait) + " " + c.sysctl(t, loopbackRouting); got != "61 0" {
			t.Errorf("settings after cleanup --sysctls are %s, want 61 0", got)
		}
	}
}

// TestSecondDaemonWaits: a daemon that starts while another one serves the network namespace writes
// nothing until that has ended, even by a kill, and serves then. --init-only waits for nothing.
func TestSecondDaemonWaits(t *testing.T) {
	t.Parallel()
	manifests := clusterFile(t)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests}
	first := start(t, args...).ready(t)
	if init := startIn(t, first.ns, append(args, "--init-only")...); init.wait(t) != 0 {
		t.Error("--init-only is refused")
	}
	second := startIn(t, first.ns, args...)
	second.until(t, "it waits", func() bool {
		return second.logged(fmt.Sprintf("waiting for it to end\" holder=\"process %d, version ", first.cmd.Process.Pid)) == 1
	})
	first.stop(t, syscall.SIGKILL)
	second.ready(t)
	second.stop(t, syscall.SIGTERM)
}
