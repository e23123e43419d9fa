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

// otherVariant is the variant that v is not.
func otherVariant(v netfilter.Variant) netfilter.Variant {
	if v == netfilter.VariantLegacy {
		return netfilter.VariantNFT
	}
	return netfilter.VariantLegacy
}

// The kubelet's chains in mangle, by which it shows the variant that it uses
// (KEP-3178). The second is the older one.
const (
	kubeletHint   = "KUBE-IPTABLES-HINT"
	kubeletCanary = "KUBE-KUBELET-CANARY"
)

// DetectVariant finds the variant that the kubelet of this node uses: the one whose mangle table
// has KUBE-IPTABLES-HINT, else the one with KUBE-KUBELET-CANARY. A kubelet without iptables leaves
// neither: then it is the one that alone has rules of a service proxy, which are to be taken over,
// else nft. It creates no table: the legacy tool is asked only for the tables that exist. Tables
// that it may not read are an error, unless the other variant has the kubelet's sign: anything
// else would be a guess, and the rules of both would be in force. A tool that fails is asked again
// before its family tells nothing.
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
			case err != nil: // a family that does not work here tells nothing
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

// detectAttempts is how often a tool is asked for chains that fails at it, and detectPause is the
// time between: what passes, such as memory that is short, must not decide on the variant.
const (
	detectAttempts = 3
	detectPause    = 500 * time.Millisecond
)

// persistent is what look fails at time and again; at once what no second look can change.
func persistent(ctx context.Context, look func() error) error {
	return retried(ctx, detectAttempts, detectPause, func(err error) bool {
		return !isHopeless(err) && !errors.As(whetherMissing(err), new(missingTableError))
	}, look)
}

// kubeletChains reports which of the kubelet's two chains are in mangle.
func kubeletChains(ctx context.Context, v netfilter.Variant, f netfilter.Family) (hint, canary bool, err error) {
	for chain, err := range existingChains(ctx, v, f, netfilter.Mangle) {
		if err != nil {
			return hint, canary, err
		}
		hint = hint || chain == kubeletHint
		canary = canary || chain == kubeletCanary
		if hint {
			break
		}
	}
	return hint, canary, nil
}

// onlyWithServiceRules is the variant that has rules of a service proxy while the other has
// none. Those of a trial do not count: they are to stand beside kube-proxy's.
func onlyWithServiceRules(ctx context.Context) (netfilter.Variant, bool) {
	has := func(v netfilter.Variant) bool {
		return slices.ContainsFunc([]netfilter.Family{netfilter.IPv4, netfilter.IPv6}, func(f netfilter.Family) bool {
			var chain string
			err := persistent(ctx, func() (err error) {
				chain, err = ServiceRulesIn(ctx, v, f, netfilter.KubeNames)
				return err
			})
			return err == nil && chain != "" // a family that does not work here tells nothing
		})
	}
	nft, legacy := has(netfilter.VariantNFT), has(netfilter.VariantLegacy)
	if legacy {
		return netfilter.VariantLegacy, !nft
	}
	return netfilter.VariantNFT, nft
}

// ServiceRulesIn is a chain of a service proxy with names of n that one variant holds, ""
// if there is none. It is how a change of variant is noticed: the rules of the one before would go on
// deciding.
func ServiceRulesIn(ctx context.Context, v netfilter.Variant, f netfilter.Family, n netfilter.Naming) (string, error) {
	for chain, err := range existingChains(ctx, v, f, netfilter.NAT) {
		if err != nil {
			return "", err
		}
		if chain != netfilter.ChainMarkMasq && chain != netfilter.ChainPostrouting && n.IsOurs(netfilter.NAT, chain) {
			return chain, nil // these two are older kubelets' as well
		}
	}
	return "", nil
}

// existingChains yields the chains of a table without creating the table. A variant whose
// tool is missing has none that it could show.
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

// yieldNames yields the chains of a table of iptables-nft by the kernel's own word: a table with
// native rules has no text, but its chains have names.
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
