package iptables

import (
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
)

// TestGuardNeedsIPv4: without IPv4 there is no guard, which must be an error.
func TestGuardNeedsIPv4(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv6)
	if err := b.Guard(t.Context()); err == nil || !strings.Contains(err.Error(), "does not work for IPv4") {
		t.Errorf("a guard without IPv4: %v", err)
	}
	b, _ = newBackend(t, netfilter.VariantNFT, netfilter.IPv4, netfilter.IPv6)
	if err := b.Guard(t.Context()); err != nil {
		t.Error(err)
	}
}
