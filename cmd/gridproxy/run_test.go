package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
)

// TestRun starts the daemon as a process of its own in a network namespace of its own.
func TestRun(t *testing.T) {
	t.Parallel()
	manifests := clusterFile(t)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--cluster-cidr=10.0.0.0/16")

	d.ready(t)
	if rules := d.rules(t); !strings.Contains(rules, "-d 172.16.33.231/32") || !strings.Contains(rules, "--to-destination 10.0.0.70:8080") || strings.Contains(rules, "10.0.1.8") {
		t.Errorf("rules of bj-3:\n%s", rules)
	}
	for path, want := range map[string]string{"/healthz": `"nodeEligible":true`, "/livez": `"IPv4":{"lastUpdated":`} {
		if a := d.get(path, 10256); a.code != 200 || !strings.Contains(a.body, want) {
			t.Errorf("%s: %d %s", path, a.code, a.body)
		}
	}
	if a := d.get("/proxyMode", 10249); a.body != "iptables" {
		t.Errorf("/proxyMode: %q", a.body)
	}
	if a := d.get("/debug/pprof/", 10249); a.code != 404 {
		t.Errorf("profiling without --profiling: code %d", a.code)
	}
	var metrics string
	d.until(t, "the run to be counted", func() bool { // which is after it is ready
		metrics = d.get("/metrics", 10249).body
		return strings.Contains(metrics, "gridproxy_closed_services 1\n")
	})
	for _, want := range []string{
		`gridproxy_endpoints_left_out{reason="other unit"} 1`, `gridproxy_proxy_healthz_total{code="200"} 1`,
		`gridproxy_sync_proxy_rules_iptables_total{ip_family="IPv4",table="nat"} `, "go_goroutines ",
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("/metrics lacks %q", want)
		}
	}

	write(t, manifests, cluster("10.0.0.99", "beijing"))
	d.until(t, "the edit to take effect", func() bool {
		rules := d.rules(t)
		return strings.Contains(rules, "10.0.0.99:8080") && !strings.Contains(rules, "10.0.0.70")
	})

	before := d.rules(t)
	write(t, manifests, "half: [")
	d.until(t, "the mistake to be reported", func() bool { return d.logged("the last good rules stay in force") == 1 })
	if after := d.rules(t); after != before {
		t.Errorf("rules after a mistake:\n%s\nbefore:\n%s", after, before)
	}
	write(t, manifests, cluster("10.0.0.98", "beijing"))
	d.until(t, "the repaired manifests to take effect", func() bool { return strings.Contains(d.rules(t), "10.0.0.98:8080") })
	d.until(t, "the recovery to be reported", func() bool { return d.logged("the manifests can be read again") == 1 })

	if code := d.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	if rules := d.rules(t); !strings.Contains(rules, "10.0.0.98:8080") {
		t.Errorf("the rules went with the daemon:\n%s", rules)
	}
	d.cleanup(t)
	if rules := d.rules(t); strings.Contains(rules, "KUBE-SVC") || strings.Contains(rules, "KUBE-SERVICES") {
		t.Errorf("rules after cleanup:\n%s", rules)
	}
}

// TestUnknownNode: without its Node object a node refuses closed Services. It serves them when the
// object appears.
func TestUnknownNode(t *testing.T) {
	manifests := tempFile(t, strings.Replace(cluster("10.0.0.70", "beijing"), "name: bj-3", "name: other", 1))
	d := start(t, "--node-name=bj-3", "--manifests="+manifests).ready(t)
	if rules := d.rules(t); !strings.Contains(rules, "REJECT") || strings.Contains(rules, "10.0.0.70:8080") {
		t.Errorf("rules of an unknown node:\n%s", rules)
	}
	if a := d.get("/healthz", 10256); a.code != 200 {
		t.Errorf("/healthz of a node that the manifests do not have: %d %s", a.code, a.body)
	}
	d.until(t, "the warning", func() bool { return d.logged("there is no Node of this name") == 1 })
	write(t, manifests, cluster("10.0.0.70", "beijing"))
	d.until(t, "the Node to be followed", func() bool { return strings.Contains(d.rules(t), "10.0.0.70:8080") })
	d.until(t, "the note", func() bool { return d.logged("this node's Node has appeared") == 1 })
	if n := d.logged("there is no Node of this name"); n != 1 {
		t.Errorf("warned %d times", n)
	}
	if code := d.stop(t, syscall.SIGINT); code != 0 {
		t.Errorf("exit code %d after SIGINT", code)
	}
}

// TestTakenPort: the daemon works although another process has one of its ports.
func TestTakenPort(t *testing.T) {
	manifests := clusterFile(t)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--healthz-bind-address=127.0.0.1:10249")
	d.until(t, "the failure to be reported", func() bool {
		return d.logged("address already in use; free the port or change --") > 0
	})
	d.until(t, "the rules", func() bool { return strings.Contains(d.rules(t), "10.0.0.70:8080") })
}

// TestFirstReadFails: at the start there are no last good rules to keep.
func TestFirstReadFails(t *testing.T) {
	d := start(t, "--node-name=bj-3", "--manifests=/nonexistent.yaml")
	if code := d.wait(t); code != command.Failure {
		t.Errorf("exit code %d, want %d", code, command.Failure)
	}
	if d.logged("error: ") == 0 || d.logged("/nonexistent.yaml") == 0 {
		t.Errorf("output:\n%s", d.output.String())
	}
}

// cluster is one closed Service with an endpoint at address on bj-1 and one in the other
// unit.
func cluster(address, unit string) string {
	node := func(name, unit string) string {
		return fmt.Sprintf("apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {location: %s}}\n---\n", name, unit)
	}
	return node("bj-1", "beijing") + node("bj-3", unit) + node("gz-3", "guangzhou") + fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: servicegrid-demo-svc, annotations: {topologyKeys: '["location"]'}}
spec: {clusterIP: 172.16.33.231, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a, labels: {kubernetes.io/service-name: servicegrid-demo-svc}}
addressType: IPv4
ports: [{name: "", port: 8080}]
endpoints: [{addresses: [%s], nodeName: bj-1}, {addresses: [10.0.1.8], nodeName: gz-3}]
`, address)
}

// clusterFile writes a cluster with an endpoint in the unit of bj-3, and returns the file.
func clusterFile(t *testing.T) string {
	t.Helper()
	return tempFile(t, cluster("10.0.0.70", "beijing"))
}

func tempFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file.yaml")
	write(t, file, text)
	return file
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}
