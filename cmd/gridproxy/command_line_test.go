package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
)

const configHead = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n"

// TestChangedConfigEndsTheDaemon: as failed, as kube-proxy ends, although the file is in a volume
// of a ConfigMap. The rules stay in force.
func TestChangedConfigEndsTheDaemon(t *testing.T) {
	dir := t.TempDir()
	manifests := filepath.Join(dir, "cluster.yaml")
	write(t, manifests, cluster("10.0.0.70", "beijing"))
	// revision makes a version of the ConfigMap as the kubelet does.
	revision := func(name, text string) {
		err := os.Mkdir(filepath.Join(dir, name), 0o700)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name, "config.conf"), []byte(text), 0o600)
		}
		if err == nil {
			err = os.Symlink(name, filepath.Join(dir, "..data_tmp"))
		}
		if err == nil {
			err = os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	revision("..1", configHead+"clusterCIDR: 10.0.0.0/16\n")
	config := filepath.Join(dir, "config.conf")
	if err := os.Symlink("..data/config.conf", config); err != nil {
		t.Fatal(err)
	}
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--config="+config).ready(t)
	revision("..mistyped", configHead+"clusterCIDR: 10.9.0.0-16\n")
	d.until(t, "the mistake to be named", func() bool { return d.logged("its new content would be refused at the start") > 0 })
	if a := d.get("/readyz", 10256); a.code != 200 {
		t.Errorf("/readyz after a mistake in --config: %d", a.code)
	}
	revision("..2", configHead+"clusterCIDR: 10.9.0.0/16\n")
	if err := os.RemoveAll(filepath.Join(dir, "..1")); err != nil {
		t.Fatal(err)
	}
	if code := d.wait(t); code != command.Failure || d.logged("error: --config "+config+" has changed since the start, so this process ends") != 1 {
		t.Errorf("code %d, want %d and the reason", code, command.Failure)
	}
	if rules := d.rules(t); !strings.Contains(rules, "10.0.0.70:8080") || !strings.Contains(rules, "! -s 10.0.0.0/16") {
		t.Errorf("rules of the ended daemon:\n%s", rules)
	}
}

// TestCleanupFlag: run --cleanup does what cleanup does, whatever the mode and the source are.
func TestCleanupFlag(t *testing.T) {
	manifests := clusterFile(t)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests).ready(t)
	d.stop(t, syscall.SIGKILL)
	c := startIn(t, d.ns, "--cleanup", "--proxy-mode=ipvs", "--kubeconfig=/nonexistent")
	if code, rules := c.wait(t), c.rules(t); code != 0 || strings.Contains(rules, "KUBE-SERVICES") || strings.Contains(rules, "KUBE-SVC") {
		t.Errorf("code %d, rules:\n%s", code, rules)
	}
}

// TestServerFlags: --healthz-port=0 switches that server off, and with --bind-address-hard-fail a
// port that is in use ends the daemon. Neither concerns the rules.
func TestServerFlags(t *testing.T) {
	manifests := clusterFile(t)
	d := start(t, "--node-name=bj-3", "--manifests="+manifests, "--healthz-port=0", "--metrics-bind-address=127.0.0.1", "--metrics-port=10256",
		"--oom-score-adj=900", "--vmodule=proxier=4", "--logging_format=json")
	d.until(t, "metrics", func() bool { return d.get("/metrics", 10256).code == 200 })
	if a := d.get("/readyz", 10256); a.code != 404 {
		t.Errorf("/readyz with --healthz-port=0: %d", a.code)
	}
	if score, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", d.cmd.Process.Pid)); err != nil || string(score) != "900\n" {
		t.Errorf("oom_score_adj is %q (%v), want 900", score, err)
	}
	if d.logged(`"msg":"--vmodule proxier=4 has no effect: `) != 1 || d.logged(`"msg":"--detect-local-mode ClusterCIDR without --cluster-cidr: `) != 1 {
		t.Error("the log lacks a warning")
	}
	d.until(t, "the rules", func() bool { return strings.Contains(d.rules(t), "10.0.0.70:8080") })
	beside := startIn(t, d.ns, "--shadow", "--node-name=bj-3", "--manifests="+manifests, "--healthz-port=0", "--metrics-bind-address=127.0.0.1:10256", "--bind-address-hard-fail")
	if code := beside.wait(t); code != command.Failure || beside.logged("error: starting the metrics server: ") != 1 || beside.logged("because of --bind-address-hard-fail") == 0 {
		t.Errorf("code %d of a daemon whose port is in use, want %d", code, command.Failure)
	}
}

// TestMaster: --master replaces the server of the kubeconfig, with its credentials, and no Service
// may take its address.
func TestMaster(t *testing.T) {
	kubeconfig := tempFile(t, `{apiVersion: v1, kind: Config, current-context: a, contexts: [{name: a, context: {cluster: a, user: a}}],
  clusters: [{name: a, cluster: {server: "https://192.0.2.1:6443"}}], users: [{name: a, user: {token: secret}}]}`)
	for _, test := range []struct{ kubeconfig, master, host, token, reserved string }{
		{kubeconfig, "", "https://192.0.2.1:6443", "secret", "192.0.2.1:6443"},
		{kubeconfig, "https://192.0.2.2:443", "https://192.0.2.2:443", "secret", "192.0.2.2:443"},
		{"", "http://192.0.2.3:8080", "http://192.0.2.3:8080", "", "192.0.2.3:8080"},
	} {
		o := options.Defaults()
		o.Kubeconfig, o.Master = test.kubeconfig, test.master
		config, err := apiserver.RestConfig(o, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if config.Host != test.host || config.BearerToken != test.token {
			t.Errorf("--master %q: %s with token %q, want %s with %q", test.master, config.Host, config.BearerToken, test.host, test.token)
		}
		if got := apiserver.RulesConfig(o).APIServers; len(got) != 1 || got[0].String() != test.reserved {
			t.Errorf("--master %q: %v is reserved, want %s", test.master, got, test.reserved)
		}
	}
}

// TestProcessesThatAreNoDaemon: run with a flag that ends it is no daemon whose flags others adopt.
func TestProcessesThatAreNoDaemon(t *testing.T) {
	for flag, daemon := range map[string]bool{
		"--cleanup": false, "--cleanup=true": false, "--cleanup=false": true, "--version": false, "--version=raw": false,
		"--init-only": false, "--init-only=true": false, "--init_only": false, "--init-only=false": true, "--no-such-flag": true,
	} {
		got := flagsOf([]byte("gridproxy\x00run\x00" + flag + "\x00"))
		if (got != nil) != daemon || daemon && !slices.Equal(got, []string{flag}) {
			t.Errorf("%s: flags %q, want a daemon: %t", flag, got, daemon)
		}
	}
}
