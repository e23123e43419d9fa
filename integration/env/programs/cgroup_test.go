package main

import (
	"slices"
	"testing"
)

func TestControllersOf(t *testing.T) {
	for options, want := range map[string][]string{
		"rw,nosuid,nodev,noexec,relatime,cpu,cpuacct":                            {"cpu", "cpuacct"},
		"rw,relatime,net_prio,net_cls":                                           {"net_cls", "net_prio"},
		"rw,xattr,release_agent=/lib/systemd/systemd-cgroups-agent,name=systemd": {"name=systemd"},
	} {
		if got := controllersOf(options); !slices.Equal(got, want) {
			t.Errorf("of %s there are %q, want %q", options, got, want)
		}
	}
}
