package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
)

// healthChecked is a Service with a health-check node port and an endpoint on a node.
func healthChecked(node string, port int) string {
	return fmt.Sprintf(`---
apiVersion: v1
kind: Service
metadata: {name: checked}
spec: {type: LoadBalancer, clusterIP: 172.16.33.240, externalTrafficPolicy: Local, healthCheckNodePort: %d, ports: [{port: 80, nodePort: 30082}]}
status: {loadBalancer: {ingress: [{ip: 192.0.2.240}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: checked, labels: {kubernetes.io/service-name: checked}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: [10.0.0.71], nodeName: %s}]
`, port, node)
}

// TestBrokenFamilyBesideHealthy: a broken ip6tables is reported and does not stop IPv4. IPv6 is
// written once the tool works.
func TestBrokenFamilyBesideHealthy(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	const tool, port = "ip6tables-nft-restore", 30112
	good, err := exec.LookPath(tool)
	if err != nil {
		t.Fatal(err)
	}
	broken := filepath.Join(t.TempDir(), tool)
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho out of order >&2\nexit 4\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	manifests := tempFile(t, cluster("10.0.0.70", "beijing")+healthChecked("bj-3", port))
	cmd := gridproxy("run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests="+manifests, "--verify-period=1s", "--iptables-sync-period=2s")
	cmd.Env = append(cmd.Env, "PATH="+filepath.Dir(broken)+":"+os.Getenv("PATH"))
	d := startCommand(t, newNamespace(t), cmd)
	metrics := func(want string) func() bool {
		return func() bool { return strings.Contains(d.get("/metrics", 10249).body, want+"\n") }
	}
	d.until(t, "IPv6 to fail", metrics(`gridproxy_family_state{ip_family="IPv6",state="failed"} 1`))
	if !metrics(`gridproxy_family_state{ip_family="IPv4",state="synced"} 1`)() {
		t.Errorf("IPv4 is not synced:\n%s", d.get("/metrics", 10249).body)
	}
	if rules := d.rules(t); !strings.Contains(rules, "-d 172.16.33.231/32") {
		t.Errorf("IPv4 is not written:\n%s", rules)
	}
	if got := d.sysctl(t, loopbackRouting); got != "1" {
		t.Errorf("loopback addresses are not routed, although IPv4 guards them: %s is %s", loopbackRouting, got)
	}
	if a := d.get("/", port); a.code != 200 || !strings.Contains(a.body, `"localEndpoints":1`) {
		t.Errorf("the health-check node port of IPv4: %d %s", a.code, a.body)
	}
	if a := d.get("/readyz", 10256); a.code != 503 {
		t.Errorf("/readyz while IPv6 has never synced: %d %s", a.code, a.body)
	}
	d.until(t, "IPv6 to be unhealthy", func() bool { return d.get("/healthz", 10256).code == 503 })
	if a := d.get("/livez", 10256); a.code != 200 || !strings.Contains(a.body, `"IPv4":{"lastUpdated":`) {
		t.Errorf("/livez while IPv4 is well: %d %s", a.code, a.body)
	}
	if a := d.get("/", port); a.code != 200 {
		t.Errorf("the health-check node port of IPv4 while IPv6 is unhealthy: %d %s", a.code, a.body)
	}

	err = os.Symlink(good, broken+".new")
	if err == nil {
		err = os.Rename(broken+".new", broken)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.ready(t)
	d.until(t, "IPv6 to be synced", metrics(`gridproxy_family_state{ip_family="IPv6",state="synced"} 1`))
	d.until(t, "healthy", func() bool { return d.get("/healthz", 10256).code == 200 })
}

// TestIPv6EnabledLater: IPv6 is left out while it is disabled, and written once it is enabled.
func TestIPv6EnabledLater(t *testing.T) {
	need.IPTables(t)
	ns := newNamespace(t)
	setSysctl(t, ns, "net/ipv6/conf/all/disable_ipv6", "1")
	manifests := clusterFile(t)
	d := startIn(t, ns, "--node-name=bj-3", "--manifests="+manifests).ready(t)
	if a := d.get("/healthz", 10256); strings.Contains(a.body, "IPv6") || !strings.Contains(a.body, "IPv4") {
		t.Errorf("/healthz while IPv6 is disabled: %s", a.body)
	}
	setSysctl(t, ns, "net/ipv6/conf/all/disable_ipv6", "0")
	d.until(t, "IPv6 to be written", func() bool {
		return strings.Contains(output(t, ns, "", "ip6tables-nft-save"), "KUBE-SERVICES") && strings.Contains(d.get("/healthz", 10256).body, `"IPv6":{`)
	})
}
