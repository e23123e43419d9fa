package netfilter

// Variant is the kernel interface of the iptables tools. Packets traverse the rules of both, so all
// programs on a node must use the same one.
type Variant string

// The variants of --iptables-variant. The zero value is VariantAuto.
const (
	VariantAuto   Variant = "auto"
	VariantNFT    Variant = "nft"
	VariantLegacy Variant = "legacy"
)
