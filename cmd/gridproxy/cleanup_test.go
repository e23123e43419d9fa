package main

import (
	"strings"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/integration/env/need"
)

// TestCleanupSparesTheProxyBeside: in the container of a trial or a shadow, whose process 1 is the
// daemon, cleanup removes no rules of the proxy that serves the node.
func TestCleanupSparesTheProxyBeside(t *testing.T) {
	need.IPTables(t)
	manifests := clusterFile(t)
	for _, beside := range []string{"--shadow", "--service-proxy-name=trial"} {
		t.Run(beside, func(t *testing.T) {
			ns := newNamespace(t)
			for _, jump := range []string{"-N KUBE-SERVICES", "-A OUTPUT -j KUBE-SERVICES"} {
				output(t, ns, "", strings.Fields("iptables-nft -t nat "+jump)...)
			}
			d := startContainer(t, ns, beside, "--verify-period=1h", "--iptables-variant=nft", "--conntrack-max-per-core=0", "--node-name=bj-3", "--manifests="+manifests)
			code, text := d.run(t, "cleanup", "--iptables-variant=nft")
			if code != command.Usage || !strings.Contains(text, strings.ReplaceAll(beside, "=", " ")) || !strings.Contains(d.rules(t), "-j KUBE-SERVICES") {
				t.Errorf("cleanup: code %d\n%s\n%s", code, text, d.rules(t))
			}
			if code, text := d.run(t, "cleanup", "--iptables-variant=nft", "--service-proxy-name=trial"); code != 0 || strings.Contains(d.rules(t), "GRID-SERVICES") || !strings.Contains(d.rules(t), "-j KUBE-SERVICES") {
				t.Errorf("cleanup of the trial: code %d\n%s\n%s", code, text, d.rules(t))
			}
		})
	}
}

func TestBesideAnother(t *testing.T) {
	for _, c := range []struct {
		given  options.Options
		daemon string
		refuse bool
	}{
		{options.Options{}, "", false},
		{options.Options{}, "--node-name=a -v 4", false},
		{options.Options{}, "--shadow=false", false},
		{options.Options{}, "--shadow", true},
		{options.Options{}, "-v 4 --service-proxy-name trial", true},
		{options.Options{ServiceProxyName: "trial"}, "--service-proxy-name trial", false},
		{options.Options{ServiceProxyName: "trial"}, "--shadow", false},
		{options.Options{Shadow: true}, "", true},
		{options.Options{}, "--no-such-flag", true},
	} {
		if err := besideAnother(c.given, runningDaemon{1, strings.Fields(c.daemon)}); (err != nil) != c.refuse {
			t.Errorf("process 1 has %q: %v", c.daemon, err)
		}
	}
}
