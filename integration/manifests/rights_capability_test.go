package main

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
)

// TestCapabilities: with the capabilities of the manifest the daemon writes its rules in both variants of iptables, and
// without each of them it does not, in the variants that need it: NET_RAW is for iptables-legacy alone.
func TestCapabilities(t *testing.T) {
	need.IPTables(t)
	need.Tools(t, "apt-get install util-linux", "setpriv")
	var given []corev1.Capability
	_, spec := podOf(t, "../../deploy/gridproxy.yaml")
	for _, c := range spec.Containers {
		given = c.SecurityContext.Capabilities.Add
	}
	binary := program.ForTest(t, program.Gridproxy)
	missed := map[corev1.Capability]bool{}
	for _, variant := range []string{"nft", "legacy"} {
		t.Run(variant, func(t *testing.T) {
			if err := writesRules(t, binary, variant, given); err != nil {
				t.Errorf("with %v: %v", given, err)
			}
		})
		for _, lacks := range given {
			rest := slices.DeleteFunc(slices.Clone(given), func(c corev1.Capability) bool { return c == lacks })
			wanted := lacks != "NET_RAW" || variant == "legacy"
			t.Run(fmt.Sprintf("%s without %s", variant, lacks), func(t *testing.T) {
				err := writesRules(t, binary, variant, rest)
				lacking := errors.Is(err, errDenied)
				missed[lacks] = missed[lacks] || lacking
				if lacking != wanted || !lacking && err != nil {
					t.Errorf("it is needed: %t; the daemon: %v", wanted, err)
				}
			})
		}
	}
	t.Run("auto without NET_RAW", func(t *testing.T) { noGuess(t, binary) })
	for _, c := range given {
		if !missed[c] {
			t.Errorf("nothing needs %s: take it out of the chart", c)
		}
	}
}

// noGuess: a daemon that may not read the legacy tables, and finds no sign of the kubelet in the others, does not take one
// of the variants: the rules of both would be in force.
func noGuess(t *testing.T, binary string) {
	err := writesRules(t, binary, "auto", []corev1.Capability{"NET_ADMIN"}, func(n *netns.Namespace) error {
		_, err := n.Run(t.Context(), nil, "iptables-legacy", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "--iptables-variant") || !strings.Contains(err.Error(), "NET_RAW") {
		t.Errorf("it says %v", err)
	}
}

// errDenied is what a daemon lacks a capability by, in its own words or in those of iptables.
var errDenied = errors.New("it says that it is not permitted")

// denied finds these words in its log.
func denied(log string) error {
	for line := range strings.Lines(log) {
		if strings.Contains(line, "Permission denied") || strings.Contains(line, "operation not permitted") {
			return fmt.Errorf("%w: %s", errDenied, line)
		}
	}
	return nil
}

// writesRules runs the daemon with some capabilities in a network namespace of its own, until its rules are written,
// it says that they cannot be, or it ends.
func writesRules(t *testing.T, binary, variant string, capabilities []corev1.Capability, before ...func(*netns.Namespace) error) error {
	t.Helper()
	n, err := netns.NewNamespace("capabilities")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}()
	for _, f := range before {
		if err := f(n); err != nil {
			t.Fatal(err)
		}
	}
	daemon := confined(t, n, binary, variant, capabilities)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := written(ctx, n, daemon); err != nil {
		return err
	}
	if err := has(daemon.PID(), len(capabilities)); err != nil {
		return err
	}
	save, err := n.Run(ctx, nil, "iptables-"+variant+"-save", "-t", "nat")
	return errors.Join(err, wait.Check(strings.Contains(string(save), "KUBE-SERVICES"), "it is ready, and there are no rules: %s", save))
}

// confined starts the daemon for one Service, with these capabilities and no others.
func confined(t *testing.T, n *netns.Namespace, binary, variant string, capabilities []corev1.Capability) *netns.Process {
	t.Helper()
	dir := t.TempDir()
	n.Env = append(n.Env, "XTABLES_LOCKFILE="+filepath.Join(dir, "xtables.lock"))
	manifests := netns.NewManifests(dir, netns.Manual())
	manifests.Serve(netns.NewService("web", netip.MustParseAddr("10.96.0.10")))
	if err := manifests.Write(); err != nil {
		t.Fatal(err)
	}
	set := "-all"
	for _, c := range capabilities {
		set += ",+" + strings.ToLower(string(c))
	}
	daemon, err := n.Start("setpriv", "--no-new-privs", "--inh-caps=-all", "--bounding-set="+set, binary,
		"run", "--node-name=bj-1", "--manifests="+dir, "--conntrack-max-per-core=0", "--status-socket=", "--iptables-variant="+variant)
	if err != nil {
		t.Fatal(err)
	}
	return daemon
}

// written waits until the daemon is ready. The error says why it is not: what it lacks, what it ended with, or that it
// did neither in time.
func written(ctx context.Context, n *netns.Namespace, daemon *netns.Process) error {
	return wait.For(ctx, func(ctx context.Context) error {
		var ended error
		select {
		case <-daemon.Done(): // and its log is whole
			ended = fmt.Errorf("it ended with code %d: %s", daemon.ExitCode(), daemon.Log())
		default:
		}
		if failed := errors.Join(denied(daemon.Log().String()), ended); failed != nil {
			return wait.Stop(failed)
		}
		return n.Readyz(ctx)
	})
}

// has checks that a process has so many capabilities.
func has(pid, want int) error {
	file := fmt.Sprintf("/proc/%d/status", pid)
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		var set uint64
		if _, err := fmt.Sscanf(line, "CapEff:\t%x", &set); err == nil {
			got := bits.OnesCount64(set)
			return wait.Check(got == want, "the daemon has %d capabilities, want %d", got, want)
		}
	}
	return fmt.Errorf("%s has no CapEff: %s", file, text)
}
