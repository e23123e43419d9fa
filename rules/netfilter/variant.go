package netfilter

import "fmt"

// Variant is which of the two kernel interfaces the iptables tools speak to. Rules of
// both are met by every packet, so all of a node must use the same one.
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
