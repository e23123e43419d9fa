package netfilter

import (
	"slices"
	"strings"
)

// Naming is the prefix of all our chain names. The name alone tells who owns a chain, so everything
// that creates, reads, repairs or removes chains follows one Naming. KUBE-FIREWALL has the
// kubelet's name under every Naming.
type Naming uint8

// The Namings.
const (
	// KubeNames are kube-proxy's: we take over its chains, and it takes over ours.
	KubeNames Naming = iota
	// GridNames begin with GRID-: these chains exist beside kube-proxy's, and neither proxy touches
	// the other's.
	GridNames
)

const (
	kubePrefix = "KUBE-"
	gridPrefix = "GRID-"
)

var allNamings = [...]Naming{KubeNames, GridNames}

// Namings returns all Namings.
func Namings() []Naming { return slices.Clone(allNamings[:]) }

// Prefix returns what the names begin with: "KUBE-" or "GRID-".
func (n Naming) Prefix() string {
	if n == GridNames {
		return gridPrefix
	}
	return kubePrefix
}

// Chain returns the name of a chain, or the prefix of one. kube is kube-proxy's name for it.
func (n Naming) Chain(kube string) string {
	if n == GridNames {
		return gridPrefix + kube[len(kubePrefix):]
	}
	return kube
}

// Kube returns kube-proxy's name of a chain, as the inverse of Chain. It returns false if the
// name lacks our prefix.
func (n Naming) Kube(chain string) (string, bool) {
	if n == KubeNames {
		return chain, strings.HasPrefix(chain, kubePrefix)
	}
	rest, ok := strings.CutPrefix(chain, gridPrefix)
	return kubePrefix + rest, ok
}

// IsOurs reports whether we, or another program with these names, own a chain alone: it may be
// rewritten, and cleaning up removes it. ChainFirewall and the kubelet's canary and hint are not
// ours.
func (n Naming) IsOurs(t Table, chain string) bool {
	kube, ok := n.Kube(chain)
	return ok && isServiceProxys(t, kube)
}

// IsServiceChain reports whether a chain belongs to one Service: it may be deleted when no Service
// needs it.
func (n Naming) IsServiceChain(t Table, chain string) bool {
	kube, ok := n.Kube(chain)
	return ok && isServices(t, kube)
}

// isAnybodys reports whether a chain is ours under some Naming.
func isAnybodys(t Table, chain string) bool {
	return slices.ContainsFunc(allNamings[:], func(n Naming) bool { return n.IsOurs(t, chain) })
}
