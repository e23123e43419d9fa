package main

import (
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
)

// TestNativeRuleFailsReaders: with a table that iptables-nft-save does not print, diff and cleanup
// fail, and a shadow reports neither equality nor a difference. Each names the table, the rule and
// the remedy. The running daemon writes no jump a second time.
func TestNativeRuleFailsReaders(t *testing.T) {
	manifests := clusterFile(t)
	flags := []string{"--node-name=bj-3", "--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16", "--conntrack-max-per-core=0"}
	args := append(flags, "--verify-period=1s")
	d := start(t, args...).ready(t)
	shell := func(line string) string {
		var out []byte
		within(t, d.ns, func() (err error) {
			out, err = exec.Command("sh", "-c", line).CombinedOutput()
			return err
		})
		return string(out)
	}
	nat := func() string { return shell("nft list table ip nat") }
	jumps := strings.Count(nat(), "jump KUBE-SERVICES")
	shell(`nft add rule ip nat POSTROUTING oifname "eth0" masquerade`)
	told := func(text string) bool {
		return strings.Contains(text, "table nat of IPv4") && strings.Contains(text, "of chain POSTROUTING") && strings.Contains(text, "nft delete rule ip nat POSTROUTING handle")
	}

	d.until(t, "the error to be logged", func() bool { return told(d.output.String()) })
	write(t, manifests, cluster("10.0.0.99", "beijing"))
	d.until(t, "a change to be written", func() bool { return strings.Contains(nat(), "10.0.0.99") })
	if n := strings.Count(nat(), "jump KUBE-SERVICES"); n != jumps || d.logged("repaired rules that another process changed") > 0 {
		t.Errorf("%d jumps to KUBE-SERVICES, there were %d", n, jumps)
	}

	if code, text, said := diffSaying(t, d.ns, flags...); code != command.Failure || text != "" || !told(said) {
		t.Errorf("diff: code %d, want 2\n%s\n%s", code, text, said)
	}
	d.stop(t, syscall.SIGTERM)

	shadow := startIn(t, d.ns, append(args, "--shadow")...)
	shadow.until(t, "the shadow to report the error", func() bool { return told(shadow.output.String()) })
	if shadow.logged("the kernel holds what") > 0 || shadow.logged("the kernel differs") > 0 || shadow.get("/readyz", 10256).code == 200 {
		t.Error("the shadow compared a table that it could not read")
	}
	shadow.stop(t, syscall.SIGTERM)

	clean := func() (int, string) {
		c := startCommand(t, d.ns, gridproxy("cleanup"))
		return c.wait(t), c.output.String()
	}
	if code, text := clean(); code != command.Failure || !told(text) || !strings.Contains(text, "chains of ours are left, nat/KUBE-") {
		t.Errorf("cleanup: code %d, want %d\n%s", code, command.Failure, text)
	}
	if !strings.Contains(nat(), "KUBE-SERVICES") || strings.Contains(shell("nft list table ip filter; nft list table ip6 nat"), "KUBE-SERVICES") {
		t.Error("want nat of IPv4 as it was, and all other tables clean")
	}
	shell("nft flush chain ip nat POSTROUTING")
	if code, text := clean(); code != command.OK || strings.Contains(nat(), "KUBE-") {
		t.Errorf("cleanup without the native rule: code %d\n%s\n%s", code, text, nat())
	}
}
