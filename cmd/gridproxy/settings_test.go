package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
)

const (
	loopbackRouting = "net/ipv4/conf/all/route_localnet"
	closeWait       = "net/netfilter/nf_conntrack_tcp_timeout_close_wait"
)

// TestTrialLeavesSettings: neither a daemon beside another proxy nor its --init-only changes
// settings that the other proxy decides. It logs that NodePorts do not answer on loopback.
func TestTrialLeavesSettings(t *testing.T) {
	need.IPTables(t)
	manifests := clusterFile(t)
	args := []string{"run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--conntrack-tcp-timeout-close-wait=59m", "--node-name=bj-3", "--manifests=" + manifests, "--service-proxy-name=trial"}
	ns := newNamespace(t)
	init := startCommand(t, ns, gridproxy(append(args, "--init-only")...))
	if code := init.wait(t); code != 0 || init.savedBy(t, "nft") != "" {
		t.Errorf("--init-only of a trial: code %d, rules\n%s", code, init.savedBy(t, "nft"))
	}
	d := startCommand(t, ns, gridproxy(args...))
	const told = "NodePorts do not answer on 127.0.0.1: sysctl net.ipv4.conf.all.route_localnet is not 1"
	d.until(t, "ready", func() bool { return d.get("/readyz", 10256).code == 200 && d.logged(told) == 1 })
	if got := d.sysctl(t, loopbackRouting) + " " + d.sysctl(t, closeWait); got != "0 60" {
		t.Errorf("a trial set %s and %s to %s", loopbackRouting, closeWait, got)
	}
}

// TestUnguardedLoopback: without IPv4 there is no guard of loopback addresses, so they are not
// routed.
func TestUnguardedLoopback(t *testing.T) {
	need.IPTables(t)
	tools := t.TempDir()
	for _, tool := range []string{"ip6tables-nft", "ip6tables-nft-save", "ip6tables-nft-restore"} {
		path, err := exec.LookPath(tool)
		if err == nil {
			err = os.Symlink(path, filepath.Join(tools, tool))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	manifests := clusterFile(t)
	ns := newNamespace(t)
	run := func(more ...string) *process {
		cmd := gridproxy(append([]string{"run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests=" + manifests}, more...)...)
		cmd.Env = append(cmd.Env, "PATH="+tools)
		return startCommand(t, ns, cmd)
	}
	const told = "NodePorts do not answer on 127.0.0.1: iptables-nft does not work for IPv4 here"
	init := run("--init-only")
	if code := init.wait(t); code != 0 || init.logged(told) != 1 || init.logged("prepared but for the settings above") != 1 {
		t.Errorf("--init-only without IPv4: code %d", code)
	}
	d := run()
	d.until(t, "ready", func() bool { return d.get("/readyz", 10256).code == 200 && d.logged(told) == 1 })
	if got := d.sysctl(t, loopbackRouting); got != "0" {
		t.Errorf("loopback addresses are routed without a guard: %s is %s", loopbackRouting, got)
	}
}

// TestPreparedButFor: a setting that fails for another reason than privilege does not fail
// --init-only, but is logged. The size of the table can be set only in the first network namespace.
func TestPreparedButFor(t *testing.T) {
	need.IPTables(t)
	text, err := os.ReadFile("/proc/sys/net/netfilter/nf_conntrack_max")
	need.That(t, err == nil, "the kernel module nf_conntrack is not loaded: run `modprobe nf_conntrack`")
	size, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	init := startCommand(t, newNamespace(t), gridproxy("run", "--init-only", "--iptables-variant=nft", "--node-name=bj-3", "--conntrack-max-per-core=1", fmt.Sprintf("--conntrack-min=%d", size+1)))
	if code := init.wait(t); code != 0 || init.logged("sysctl net.netfilter.nf_conntrack_max is") != 1 || init.logged("prepared but for the settings above") != 1 || init.logged("this machine is prepared;") != 0 {
		t.Errorf("code %d", code)
	}
}
