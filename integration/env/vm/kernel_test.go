package main

import (
	"slices"
	"testing"
)

func TestDependency(t *testing.T) {
	for shown, want := range map[string]string{
		"Package: p\nDepends: linux-image-6.1.0-56-cloud-amd64 (= 6.1.192-2), x\nVersion: 1\n": "linux-image-6.1.0-56-cloud-amd64",
		"Depends: a|b\n":          "a",
		"Depends:\n":              "",
		"Pre-Depends: a\nSize: 1": "",
	} {
		if got := dependency(shown); got != want {
			t.Errorf("%q: got %q, want %q", shown, got, want)
		}
	}
}

// TestNeeded: a wanted module brings what it depends on, from wherever, and nothing else comes.
func TestNeeded(t *testing.T) {
	got := neededModules(`kernel/net/netfilter/ipvs/ip_vs.ko: kernel/lib/libcrc32c.ko kernel/net/netfilter/nf_conntrack.ko
kernel/net/netfilter/nf_conntrack.ko: kernel/lib/libcrc32c.ko
kernel/lib/libcrc32c.ko:
kernel/fs/ext4/ext4.ko: kernel/fs/jbd2/jbd2.ko
kernel/drivers/net/vxlan/vxlan.ko: kernel/net/ipv4/udp_tunnel.ko
`)
	want := []string{
		"kernel/drivers/net/vxlan/vxlan.ko", "kernel/lib/libcrc32c.ko", "kernel/net/ipv4/udp_tunnel.ko",
		"kernel/net/netfilter/ipvs/ip_vs.ko", "kernel/net/netfilter/nf_conntrack.ko",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
