package netfilter

import "fmt"

// Variant is the kernel interface of the iptables tools. Packets traverse the rules of both, so all
// programs on a node must use the same one.
type Variant string

// The variants of --iptables-variant. The zero value is VariantAuto.
const (
	VariantAuto   Variant = "auto"
	VariantNFT    Variant = "nft"
	VariantLegacy Variant = "legacy"
)

// ParseVariant reads --iptables-variant.
func ParseVariant(s string) (Variant, error) {
	switch v := Variant(s); v {
	case "":
		return VariantAuto, nil
	case VariantAuto, VariantNFT, VariantLegacy:
		return v, nil
	default:
		return "", fmt.Errorf("iptables variant %q is unknown: use auto, nft or legacy", s)
	}
}
