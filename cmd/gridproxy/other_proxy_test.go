package main

import (
	"errors"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestOtherProxy runs a second daemon in the network namespace of the first. Leftovers of a proxy,
// a shadow and a trial do not count as one. A daemon that writes other rules does: both report it,
// with one log line and a gauge.
func TestOtherProxy(t *testing.T) {
	t.Parallel()
	manifests := clusterFile(t)
	args := []string{"--manifests=" + manifests, "--verify-period=1s", "--other-proxy-after=4s"}
	first := start(t, append(args, "--node-name=bj-3")...).ready(t)
	within(t, first.ns, func() error {
		return errors.Join(
			exec.Command("iptables-nft", "-w", "-t", "nat", "-N", "KUBE-PROXY-CANARY").Run(),
			exec.Command("iptables-nft", "-w", "-t", "nat", "-N", "KUBE-SVC-LEFTOVER").Run(),
			exec.Command("iptables-nft", "-w", "-t", "nat", "-A", "KUBE-SVC-LEFTOVER", "-j", "RETURN").Run(),
		)
	})
	elsewhere := append(args, "--node-name=gz-3", "--healthz-bind-address=127.0.0.1:10356", "--metrics-bind-address=127.0.0.1:10349")
	for _, flag := range []string{"--shadow", "--service-proxy-name=trial"} {
		harmless := startIn(t, first.ns, append(elsewhere, flag)...)
		runs := first.metric(t, verifyRuns, 10249)
		first.until(t, "many verifies beside "+flag, func() bool { return first.metric(t, verifyRuns, 10249) >= runs+8 })
		if n := first.metric(t, otherSuspected, 10249); n != 0 || first.logged("another service proxy") != 0 {
			t.Errorf("beside %s: %s is %v", flag, otherSuspected, n)
		}
		if n := harmless.metric(t, otherSuspected, 10349); n > 0 {
			t.Errorf("%s suspects the daemon beside it", flag)
		}
		harmless.stop(t, syscall.SIGTERM)
	}

	// It sees another /run/gridproxy, as a Pod without that mount, so no lock refuses it.
	container := gridproxy(append([]string{"run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "-v=4"}, elsewhere...)...)
	container.Path, container.Args = "/bin/sh", append([]string{"sh", "-c", `mount --make-rprivate / && mkdir -p /run/gridproxy && mount -t tmpfs none /run/gridproxy && exec "$0" "$@"`}, container.Args...)
	container.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	second := startCommand(t, first.ns, container)
	first.until(t, "the first daemon to suspect the second", func() bool { return first.metric(t, otherSuspected, 10249) == 1 })
	second.until(t, "the second daemon to suspect the first", func() bool { return second.metric(t, otherSuspected, 10349) == 1 })
	runs := first.metric(t, verifyRuns, 10249)
	first.until(t, "more verifies", func() bool { return first.metric(t, verifyRuns, 10249) >= runs+3 })
	for name, d := range map[string]*process{"first": first, "second": second} {
		if n := d.logged("another service proxy"); n != 1 {
			t.Errorf("the %s daemon says so %d times, want once", name, n)
		}
		if !strings.Contains(d.output.String(), "IPv4 nat/KUBE-S") {
			t.Errorf("the %s daemon names no chain", name)
		}
	}
}

const (
	otherSuspected = "gridproxy_other_proxy_suspected"
	verifyRuns     = "gridproxy_sync_full_proxy_rules_duration_seconds_count"
)

// metric is the value of a metric without labels; -1 = it is not there.
func (p *process) metric(t *testing.T, name string, port int) float64 {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(p.get("/metrics", port).body)
	if found == nil {
		return -1
	}
	value, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		t.Fatal(err)
	}
	return value
}
