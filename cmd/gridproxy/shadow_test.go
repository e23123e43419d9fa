package main

import (
	"bytes"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"

	"github.com/vishvananda/netns"
)

// TestShadow: a shadow in an empty namespace reports what it would write, and writes nothing.
func TestShadow(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	manifests := clusterFile(t)
	ns := newNamespace(t)
	before := everythingIn(t, ns)
	args := []string{"--node-name=bj-3", "--manifests=" + manifests, "--cluster-cidr=10.0.0.0/16"}
	d := startIn(t, ns, append(args, "--shadow", "--verify-period=1s", "--conntrack-tcp-be-liberal", "--conntrack-udp-timeout=7s")...).ready(t)
	const different = `gridproxy_shadow_chains_different{ip_family="IPv4",table="nat"} `
	d.until(t, "the difference to be reported", func() bool {
		m := d.get("/metrics", 10249).body
		return strings.Contains(m, different) && !strings.Contains(m, different+"0\n") && strings.Contains(m, "gridproxy_shadow_services_different 1\n") &&
			d.logged("the kernel differs from what gridproxy would write") == 1 && d.logged("default/servicegrid-demo-svc") == 1
	})
	if after := everythingIn(t, ns); after != before {
		t.Errorf("the shadow changed the namespace:\n%s\nbefore:\n%s", after, before)
	}

	real := startIn(t, ns, append(args, "--healthz-bind-address=", "--metrics-bind-address=")...)
	d.until(t, "the same to be reported", func() bool {
		return strings.Contains(d.get("/metrics", 10249).body, different+"0\n") && d.logged("the kernel holds what gridproxy would write") == 1
	})
	real.stop(t, syscall.SIGKILL)
	write(t, manifests, cluster("10.0.0.99", "beijing"))
	d.until(t, "a change to be logged once", func() bool { return d.logged("the kernel differs from what gridproxy would write") == 2 })
	if text := d.rules(t); !strings.Contains(text, "10.0.0.70:8080") || strings.Contains(text, "10.0.0.99") {
		t.Errorf("the shadow wrote:\n%s", text)
	}
}

// TestShadowSeesAnotherModeCome: in mode iptables a shadow reports what mode ipvs leaves after the
// shadow has started.
func TestShadowSeesAnotherModeCome(t *testing.T) {
	manifests := clusterFile(t)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--cluster-cidr=10.0.0.0/16", "--shadow", "--verify-period=1s")
	const different = `gridproxy_shadow_chains_different{ip_family="IPv4",table="addresses"} `
	d.until(t, "nothing of mode ipvs to be reported", func() bool { return strings.Contains(d.get("/metrics", 10249).body, different+"0\n") })
	within(t, d.ns, func() error { // any type will do
		return exec.Command("ip", "link", "add", serversLink, "type", "veth").Run()
	})
	d.until(t, "its link to be reported", func() bool { return strings.Contains(d.get("/metrics", 10249).body, different+"1\n") })
}

// everythingIn is what a shadow must not change: the rules of both variants, the sysctls, the links
// with their addresses, and the listening sockets, without its own two ports. Reading creates no
// table.
func everythingIn(t *testing.T, ns netns.NsHandle) string {
	t.Helper()
	var out bytes.Buffer
	within(t, ns, func() error {
		cmd := exec.Command("sh", "-c", `set -e
nft list ruleset
for save in iptables-legacy-save ip6tables-legacy-save; do $save | sed '/^#/d'; done
for f in /proc/sys/net/netfilter/nf_conntrack_* /proc/sys/net/ipv4/vs/* /proc/sys/net/ipv4/conf/*/*; do
	case $f in */nf_conntrack_count) continue ;; esac
	if [ -f "$f" ]; then echo "$f $(cat "$f" 2>/dev/null)"; fi
done
ip address
ss -Hlntu | sed '/:10249 /d; /:10256 /d'`)
		cmd.Stdout, cmd.Stderr = &out, &out
		return cmd.Run()
	})
	return out.String()
}
