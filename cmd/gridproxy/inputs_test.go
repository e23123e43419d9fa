package main

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// TestConfigIsCheckedWithFlags: a daemon goes on with its old configuration if the flags that it
// was started with and the new file would be refused together.
func TestConfigIsCheckedWithFlags(t *testing.T) {
	file := tempFile(t, configHead)
	in := &inputs{warn: func(string) {}}
	cmd := &cobra.Command{}
	in.declare(cmd)
	if err := cmd.ParseFlags([]string{"--config=" + file, "--local-dns", "--dns-address=10.244.0.12", "--iptables-min-sync-period=2s", "--feature-gates=AllAlpha=true"}); err != nil {
		t.Fatal(err)
	}
	if err := in.read(cmd, nil); err != nil {
		t.Fatal(err)
	}
	for field, wrong := range map[string]string{
		"clusterCIDR: 10.245.0.0/16":                                "",
		"iptables: {minSyncPeriod: 1h, syncPeriod: 3s}":             "", // the flag wins
		"clusterCIDR: 10.244.0.0/16":                                "--dns-address 10.244.0.12 is inside of --cluster-cidr 10.244.0.0/16",
		"iptables: {syncPeriod: 1s}":                                "--iptables-sync-period 1s is shorter than --iptables-min-sync-period 2s",
		"conntrack: {tcpEstablishedTimeout: 87600h}":                "field conntrack.tcpEstablishedTimeout: \"87600h0m0s\": want at most 5965h13m56s",
		"featureGates: {AllBeta: true}\niptables: {syncPeriod: 2s}": "",
	} {
		err := in.acceptConfig([]byte(configHead + field + "\n"))
		if (err == nil) != (wrong == "") || err != nil && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v, want %q", field, err, wrong)
		}
	}
}
