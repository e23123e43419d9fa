package iptables

import (
	"strings"
	"testing"

	"gridproxy/rules/iptables/render"
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

// TestChainMadeMeanwhile: two daemons of a machine, or one and the kubelet, may make KUBE-FIREWALL at
// once. The second is as content as the first.
func TestChainMadeMeanwhile(t *testing.T) {
	eachVariant(t, func(t *testing.T, v netfilter.Variant) {
		b, _ := newBackend(t, v, netfilter.IPv4)
		for range 2 {
			if err := b.syncers[0].kernel.command.newChain(t.Context(), render.ChainID{Table: netfilter.Filter, Chain: netfilter.ChainFirewall}); err != nil {
				t.Error(err)
			}
		}
	})
}

// TestGuardWithSurplusJumps: another program may have inserted a jump to KUBE-FIREWALL twice. The
// guard is in place all the same.
func TestGuardWithSurplusJumps(t *testing.T) {
	private(t)
	b, _ := newBackend(t, netfilter.VariantNFT, netfilter.IPv4)
	run(t, "iptables-nft -N KUBE-FIREWALL; iptables-nft -I INPUT -j KUBE-FIREWALL; iptables-nft -I INPUT -j KUBE-FIREWALL")
	if err := b.Guard(t.Context()); err != nil {
		t.Error(err)
	}
	text := run(t, "iptables-nft-save -t filter")
	if strings.Count(text, "-A INPUT -j KUBE-FIREWALL\n") != 2 || !strings.Contains(text, "-A OUTPUT -j KUBE-FIREWALL\n") {
		t.Errorf("want both jumps in INPUT, and one in OUTPUT:\n%s", text)
	}
}
