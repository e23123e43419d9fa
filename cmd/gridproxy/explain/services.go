package explain

import (
	"iter"

	"gridproxy/topology"
)

// ByService yields the ports of a View, which are sorted by Service, one Service at a time.
func ByService(v topology.View) iter.Seq[[]*topology.ServicePort] {
	return func(yield func([]*topology.ServicePort) bool) {
		for rest := v.Ports; len(rest) > 0; {
			n := 1
			for n < len(rest) && rest[n].Name.NamespacedName == rest[0].Name.NamespacedName {
				n++
			}
			if !yield(rest[:n]) {
				return
			}
			rest = rest[n:]
		}
	}
}
