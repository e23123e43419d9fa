package iptables

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os/exec"
	"slices"
	"strings"
	"time"

	"gridproxy/rules/netfilter"
)

func otherVariant(v netfilter.Variant) netfilter.Variant {
	if v == netfilter.VariantLegacy {
		return netfilter.VariantNFT
	}
	return netfilter.VariantLegacy
}

// The kubelet's chains in mangle, which show its variant (KEP-3178). The second is the older one.
const (
	kubeletHint   = "KUBE-IPTABLES-HINT"
	kubeletCanary = "KUBE-KUBELET-CANARY"
)

// DetectVariant finds the variant that the kubelet of this node uses: the one whose mangle table
// has KUBE-IPTABLES-HINT, else the one with KUBE-KUBELET-CANARY. A kubelet without iptables writes
// neither. Then it is the only variant with rules of a service proxy, which are to be taken over,
// else nft.
//
// Detection creates no table: it asks the legacy tool only for the tables that exist. Tables
// without read permission are an error, unless the other variant has a chain of the kubelet. A
// wrong guess would put the rules of both variants in force. A tool that fails is run again before
// its family is ignored.
func DetectVariant(ctx context.Context) (netfilter.Variant, error) {
	canary, denied := netfilter.Variant(""), error(nil)
	for _, v := range []netfilter.Variant{netfilter.VariantNFT, netfilter.VariantLegacy} {
		for _, f := range []netfilter.Family{netfilter.IPv4, netfilter.IPv6} {
			var hint, old bool
			err := persistent(ctx, func() (err error) {
				hint, old, err = kubeletChains(ctx, v, f)
				return err
			})
			switch {
			case ctx.Err() != nil:
				return "", fmt.Errorf("detecting the iptables variant: %w", context.Cause(ctx))
			case err != nil && strings.Contains(err.Error(), "Permission denied"):
				denied = err
			case err != nil: // a family that does not work here is ignored
			case hint:
				return v, nil
			case old && canary == "":
				canary = v
			}
		}
	}
	if canary != "" {
		return canary, nil
	}
	if denied != nil {
		return "", fmt.Errorf("detecting the iptables variant (give --iptables-variant, or the capabilities NET_ADMIN and NET_RAW): %w", denied)
	}
	v, only := onlyWithServiceRules(ctx)
	if ctx.Err() != nil {
		return "", fmt.Errorf("detecting the iptables variant: %w", context.Cause(ctx))
	}
	if only {
		return v, nil
	}
	_, missing := findTool(toolName(netfilter.VariantNFT, netfilter.IPv4, ""))
	if missing == nil {
		return netfilter.VariantNFT, nil
	}
	if _, err := findTool(toolName(netfilter.VariantLegacy, netfilter.IPv4, "")); err == nil {
		return netfilter.VariantLegacy, nil
	}
	return "", fmt.Errorf("detecting the iptables variant: %w", missing)
}

// Attempts of persistent, and the pause between them.
const (
	detectAttempts = 3
	detectPause    = 500 * time.Millisecond
)

// persistent retries a failed look, so that a passing failure such as short memory does not decide
// on the variant. It does not retry what cannot pass.
func persistent(ctx context.Context, look func() error) error {
	return retried(ctx, detectAttempts, detectPause, func(err error) bool {
		return !isHopeless(err) && !errors.As(whetherMissing(err), new(missingTableError))
	}, look)
}

// kubeletChains reports which of the kubelet's two chains are in mangle.
func kubeletChains(ctx context.Context, v netfilter.Variant, f netfilter.Family) (hint, canary bool, err error) {
	for chain, err := range existingChains(ctx, v, f, netfilter.Mangle) {
		if err != nil || chain == kubeletHint {
			return err == nil, canary, err
		}
		canary = canary || chain == kubeletCanary
	}
	return false, canary, nil
}

// onlyWithServiceRules returns the variant that alone has rules of a service proxy; false = both
// have, or neither. Those of a trial do not count: they belong beside kube-proxy's.
func onlyWithServiceRules(ctx context.Context) (netfilter.Variant, bool) {
	has := func(v netfilter.Variant) bool {
		return slices.ContainsFunc([]netfilter.Family{netfilter.IPv4, netfilter.IPv6}, func(f netfilter.Family) bool {
			var chain string
			err := persistent(ctx, func() (err error) {
				chain, err = ServiceRulesIn(ctx, v, f, netfilter.KubeNames)
				return err
			})
			return err == nil && chain != "" // a family that does not work here is ignored
		})
	}
	nft, legacy := has(netfilter.VariantNFT), has(netfilter.VariantLegacy)
	if legacy {
		return netfilter.VariantLegacy, !nft
	}
	return netfilter.VariantNFT, nft
}

// ServiceRulesIn returns a chain of a service proxy with names of n that one variant holds;
// "" = none. It reveals a change of variant: the rules of the old one would stay in force.
func ServiceRulesIn(ctx context.Context, v netfilter.Variant, f netfilter.Family, n netfilter.Naming) (string, error) {
	for chain, err := range existingChains(ctx, v, f, netfilter.NAT) {
		if err != nil {
			return "", err
		}
		if chain != netfilter.ChainMarkMasq && chain != netfilter.ChainPostrouting && n.IsOurs(netfilter.NAT, chain) {
			return chain, nil // older kubelets write these two as well
		}
	}
	return "", nil
}

// existingChains yields the chains of a table without creating it; none if the tool is missing.
func existingChains(ctx context.Context, v netfilter.Variant, f netfilter.Family, t netfilter.Table) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		path, err := exec.LookPath(toolName(v, f, "-save"))
		if err != nil {
			return
		}
		only := t.String()
		if v == netfilter.VariantLegacy {
			only = "" // asking legacy for one table would create it
		}
		for line, err := range (saver{path: path, variant: v, family: f}).lines(ctx, only, t) {
			if isUnreadable(err) && v == netfilter.VariantNFT {
				yieldNames(f, t, yield)
				return
			}
			if err != nil {
				yield("", fmt.Errorf("looking for chains in %s: %w", t, err))
				return
			}
			if line.Kind == netfilter.LineChain && line.Table == t && !yield(strings.Clone(line.Chain), nil) {
				return
			}
		}
	}
}

// yieldNames yields the chains of a table of iptables-nft as the kernel lists them:
// iptables-nft-save does not print a table with native rules.
func yieldNames(f netfilter.Family, t netfilter.Table, yield func(string, error) bool) {
	names, err := nftChains(f, t.String())
	if err != nil {
		yield("", fmt.Errorf("looking for chains in %s: %w", t, err))
		return
	}
	for _, name := range names {
		if !yield(name, nil) {
			return
		}
	}
}
