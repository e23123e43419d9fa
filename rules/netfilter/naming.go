package netfilter

import (
	"slices"
	"strings"
)

// Naming is how the names of all our chains begin. Whose a chain is, is told by its name
// alone, so everything that makes, reads, mends or removes chains follows one Naming.
// KUBE-FIREWALL has the kubelet's name under each of them.
type Naming uint8

// The namings.
const (
	// KubeNames are kube-proxy's: its chains are taken over, and it takes over ours.
	KubeNames Naming = iota
	// GridNames begin with GRID-: what bears them stands beside kube-proxy, and neither
	// touches the other's.
	GridNames
)

const (
	kubePrefix = "KUBE-"
	gridPrefix = "GRID-"
)

// namings are all of them.
var namings = [...]Naming{KubeNames, GridNames}

// Namings are all Namings.
func Namings() []Naming { return slices.Clone(namings[:]) }

// Prefix is what the names begin with.
func (n Naming) Prefix() string {
	if n == GridNames {
		return gridPrefix
	}
	return kubePrefix
}

// Chain is the name of a chain, or the beginning of one, that is given as kube-proxy
// names it.
func (n Naming) Chain(kube string) string {
	if n == GridNames {
		return gridPrefix + kube[len(kubePrefix):]
	}
	return kube
}

// Kube is the inverse of Chain; false for a name of no chain of ours.
func (n Naming) Kube(chain string) (string, bool) {
	if n == KubeNames {
		return chain, strings.HasPrefix(chain, kubePrefix)
	}
	rest, ok := strings.CutPrefix(chain, gridPrefix)
	return kubePrefix + rest, ok
}

// IsOurs reports whether a chain is one that we, or whoever else has these names, own
// alone: what may be rewritten and what cleaning up removes. ChainFirewall is not, nor are
// the kubelet's canary and hint.
func (n Naming) IsOurs(t Table, chain string) bool {
	kube, ok := n.Kube(chain)
	return ok && isServiceProxys(t, kube)
}

// IsServiceChain reports whether a chain belongs to one Service: it may be deleted as soon
// as no Service needs it.
func (n Naming) IsServiceChain(t Table, chain string) bool {
	kube, ok := n.Kube(chain)
	return ok && isServices(t, kube)
}

// isAnybodys reports whether a chain is ours under some Naming.
func isAnybodys(t Table, chain string) bool {
	for _, n := range namings {
		if n.IsOurs(t, chain) {
			return true
		}
	}
	return false
}
