package main

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/need"

	"github.com/vishvananda/netns"
)

// diff runs `gridproxy diff` in a namespace.
func diff(t *testing.T, ns netns.NsHandle, args ...string) (code int, text string) {
	t.Helper()
	code, text, problems := diffSaying(t, ns, args...)
	if problems != "" {
		t.Logf("gridproxy diff said: %s", problems)
	}
	return code, text
}

// diffSaying is diff with its standard error.
func diffSaying(t *testing.T, ns netns.NsHandle, args ...string) (code int, text, said string) {
	t.Helper()
	within(t, ns, func() (err error) {
		code, text, said, err = finish(gridproxy(append([]string{"diff", "--iptables-variant=nft"}, args...)...))
		return err
	})
	return code, text, said
}

// TestDiff: after a sync nothing differs. Changes by another process are shown.
func TestDiff(t *testing.T) {
	manifests := clusterFile(t)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16", "--verify-period=1h", "--conntrack-max-per-core=0"}
	d := start(t, args...).ready(t)
	if code, text, said := diffSaying(t, d.ns, args...); code != command.OK || text != "" || !strings.HasSuffix(said, "no difference\n") {
		t.Errorf("after a sync: code %d\n%s%s", code, text, said)
	}
	for command, want := range map[string]string{
		"iptables-nft -t nat -F KUBE-MARK-MASQ":                 "--- kernel/IPv4/nat/KUBE-MARK-MASQ\n+++ desired/IPv4/nat/KUBE-MARK-MASQ\n@@ -1,1 +1,2 @@\n :KUBE-MARK-MASQ - [0:0]\n+-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000\n",
		"ip6tables-nft -t filter -A KUBE-FORWARD -j ACCEPT":     "+++ desired/IPv6/filter/KUBE-FORWARD\n",
		"iptables-nft -t nat -D OUTPUT 1":                       "\n+-A OUTPUT -m comment --comment \"kubernetes service portals\" -j KUBE-SERVICES\n",
		"iptables-nft -t nat -N KUBE-SVC-AAAAAAAAAAAAAAAA":      "--- kernel/IPv4/nat/KUBE-SVC-AAAAAAAAAAAAAAAA\n+++ /dev/null\n",
		"iptables-nft -t nat -N DOCKER":                         "",
		"iptables-nft -A INPUT -p tcp --dport 22 -j ACCEPT":     "",
		"iptables-nft -t nat -I KUBE-SERVICES -p udp -j RETURN": "\n--A KUBE-SERVICES -p udp -j RETURN\n",
	} {
		_, before := diff(t, d.ns, args...)
		within(t, d.ns, func() error { return exec.Command("sh", "-c", command).Run() })
		code, text := diff(t, d.ns, args...)
		if want == "" && text != before {
			t.Errorf("%s: is no business of ours, yet it is shown:\n%s", command, text)
		}
		if want != "" && (code != 1 || !strings.Contains(text, want)) {
			t.Errorf("%s: code %d, want 1, and\n%s\nin\n%s", command, code, want, text)
		}
	}
}

// TestDiffWarns: diff has the warnings of render, once for each command.
func TestDiffWarns(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	manifests := tempFile(t, strings.Replace(cluster("10.0.0.70", "beijing"), "annotations: {", "annotations: {superedge.io/ipvs-scheduler: wrong, ", 1))
	ns := newNamespace(t)
	for mode, want := range map[string]int{"ipvs": 1, "iptables": 0} {
		_, _, said := diffSaying(t, ns, "--proxy-mode="+mode, "--node-name=bj-3", "--manifests="+manifests, "--cluster-cidr=10.0.0.0/16", "--wait=2s")
		if warned := strings.Count(said, `asks for scheduler "wrong"`); warned != want {
			t.Errorf("mode %s: %d warnings, want %d:\n%s", mode, warned, want, said)
		}
	}
}

// TestDiffWaits: with --wait, a difference that is repaired in time does not count.
func TestDiffWaits(t *testing.T) {
	manifests := clusterFile(t)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16", "--verify-period=1s", "--conntrack-max-per-core=0"}
	d := start(t, args...).ready(t)
	within(t, d.ns, func() error { return exec.Command("iptables-nft", "-t", "nat", "-F", "KUBE-MARK-MASQ").Run() })
	if code, text := diff(t, d.ns, append(args, "--wait="+deadline.String())...); code != 0 || text != "" {
		t.Errorf("code %d\n%s", code, text)
	}
}

// TestDiffReadsAgain: with --wait, a kernel that cannot be read for a moment, as while a daemon
// makes a table, is read again.
func TestDiffReadsAgain(t *testing.T) {
	manifests := clusterFile(t)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16", "--conntrack-max-per-core=0"}
	d := start(t, args...).ready(t)
	const name = "iptables-nft-save"
	program, err := exec.LookPath(name)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nrm %s/once 2>/dev/null || exec %s \"$@\"\necho the table is being made >&2\nexit 1\n", dir, program)
	if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	for wait, want := range map[string]int{"0s": command.Failure, deadline.String(): command.OK} {
		write(t, filepath.Join(dir, "once"), "")
		if code, text := diff(t, d.ns, append(args, "--wait="+wait)...); code != want || text != "" {
			t.Errorf("--wait=%s: code %d, want %d\n%s", wait, code, want, text)
		}
	}
}

// TestDiffListsOnce: diff --wait lists the cluster once, however often it compares.
func TestDiffListsOnce(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	ns := newNamespace(t)
	listen := func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
	outside, err := listen()
	if err != nil {
		t.Fatal(err)
	}
	api := need.ServeFakeAPI(outside)
	t.Cleanup(func() { _ = api.Close() })
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host = "http", outside.Addr().String()
	}}
	var lists atomic.Int32
	server := &http.Server{ReadHeaderTimeout: deadline, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.URL.Path == "/api/v1/services" && (q.Get("watch") == "" || q.Get("sendInitialEvents") != "") {
			lists.Add(1)
		}
		proxy.ServeHTTP(w, r)
	})}
	t.Cleanup(func() { _ = server.Close() })
	var inside net.Listener
	within(t, ns, func() (err error) {
		inside, err = listen()
		return err
	})
	go func() { _ = server.Serve(inside) }()
	kubeconfig := kubeconfigOf(t, inside.Addr().String())
	if code, text := diff(t, ns, "--node-name=bj-3", "--kubeconfig="+kubeconfig, "--cluster-cidr=10.0.0.0/16", "--wait=4s"); code != 1 || lists.Load() != 1 {
		t.Errorf("code %d, want 1; Services were listed %d times, want 1\n%s", code, lists.Load(), text)
	}
}
