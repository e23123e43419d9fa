package iptables

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/rules/netfilter"
)

// The kubelet's chains decide, then those of a service proxy. Detection creates no table.
func TestDetectVariant(t *testing.T) {
	for _, tc := range []struct {
		name, do string
		want     netfilter.Variant
	}{
		{"nothing", "true", netfilter.VariantNFT},
		{"hint in nft", "iptables-nft -t mangle -N KUBE-IPTABLES-HINT", netfilter.VariantNFT},
		{"hint in nft, IPv6 only", "ip6tables-nft -t mangle -N KUBE-IPTABLES-HINT; iptables-legacy -t mangle -N KUBE-KUBELET-CANARY", netfilter.VariantNFT},
		{"hint in legacy", "iptables-legacy -t mangle -N KUBE-IPTABLES-HINT", netfilter.VariantLegacy},
		{"hint before canary", "iptables-nft -t mangle -N KUBE-KUBELET-CANARY; ip6tables-legacy -t mangle -N KUBE-IPTABLES-HINT", netfilter.VariantLegacy},
		{"canary in legacy", "iptables-legacy -t mangle -N KUBE-KUBELET-CANARY", netfilter.VariantLegacy},
		{"canary in both", "iptables-legacy -t mangle -N KUBE-KUBELET-CANARY; iptables-nft -t mangle -N KUBE-KUBELET-CANARY", netfilter.VariantNFT},
		{"not in mangle", "iptables-legacy -t nat -N KUBE-IPTABLES-HINT", netfilter.VariantNFT},
		{"a proxy in legacy", "iptables-legacy -t nat -N KUBE-SERVICES", netfilter.VariantLegacy},
		{"a proxy in legacy, IPv6 only", "ip6tables-legacy -t nat -N KUBE-SVC-ERIFXISQEP7F7OF4", netfilter.VariantLegacy},
		{"a proxy in nft", "iptables-nft -t nat -N KUBE-SERVICES", netfilter.VariantNFT},
		{"a proxy in both", "iptables-nft -t nat -N KUBE-SERVICES; iptables-legacy -t nat -N KUBE-SERVICES", netfilter.VariantNFT},
		{"hint before a proxy", "iptables-nft -t mangle -N KUBE-IPTABLES-HINT; iptables-legacy -t nat -N KUBE-SERVICES", netfilter.VariantNFT},
		{"canary before a proxy", "iptables-nft -t mangle -N KUBE-KUBELET-CANARY; iptables-legacy -t nat -N KUBE-SERVICES", netfilter.VariantNFT},
		{"chains of older kubelets", "iptables-legacy -t nat -N KUBE-MARK-MASQ; iptables-legacy -t nat -N KUBE-POSTROUTING; iptables-legacy -t nat -N KUBE-MARK-DROP",
			netfilter.VariantNFT},
		{"a trial beside a proxy", "iptables-nft -t nat -N GRID-SERVICES; iptables-legacy -t nat -N KUBE-SERVICES", netfilter.VariantLegacy},
	} {
		t.Run(tc.name, func(t *testing.T) {
			private(t)
			run(t, tc.do)
			before := legacyTables(t)
			got, err := DetectVariant(t.Context())
			if err != nil || got != tc.want {
				t.Errorf("got %q, %v; want %q", got, err, tc.want)
			}
			if after := legacyTables(t); after != before {
				t.Errorf("looking made legacy tables: before %q, after %q", before, after)
			}
		})
	}
}

// TestDetectVariantAsksAgain: a tool that fails once hides neither the kubelet's chains nor the
// rules of a proxy.
func TestDetectVariantAsksAgain(t *testing.T) {
	for _, do := range []string{"iptables-legacy -t mangle -N KUBE-IPTABLES-HINT", "iptables-legacy -t nat -N KUBE-SERVICES"} {
		t.Run(do, func(t *testing.T) {
			private(t)
			run(t, do)
			p, failed := newToolPackage(t), filepath.Join(t.TempDir(), "failed")
			p.put(t, "iptables-legacy-save", "[ -e "+failed+" ] || { : >"+failed+"; echo Cannot allocate memory >&2; exit 4; }\n"+p.script(t, "iptables-legacy-save"))
			if got, err := DetectVariant(t.Context()); err != nil || got != netfilter.VariantLegacy {
				t.Errorf("got %q, %v; want legacy", got, err)
			}
			if _, err := os.Stat(failed); err != nil {
				t.Errorf("the tool was not asked: %v", err)
			}
		})
	}
}

func legacyTables(t *testing.T) string {
	t.Helper()
	var all string
	for _, file := range []string{"ip_tables_names", "ip6_tables_names"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		all += string(b) + "|"
	}
	return all
}

func TestNoToolsInstalled(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, v := range []netfilter.Variant{netfilter.VariantAuto, netfilter.VariantNFT, netfilter.VariantLegacy} {
		_, err := New(t.Context(), Config{Variant: v, MasqueradeBit: 14})
		if err == nil || !strings.Contains(err.Error(), "apt-get install iptables") {
			t.Errorf("%s: error %v, want one that names the package", v, err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	if _, err := New(t.Context(), Config{MasqueradeBit: 32}); err == nil || !strings.Contains(err.Error(), "32") {
		t.Errorf("masquerade bit 32: %v", err)
	}
}
