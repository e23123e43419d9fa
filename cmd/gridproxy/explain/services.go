package explain

import (
	"iter"

	"gridproxy/topology"
)

// ByService yields the ports of a View, one Service at a time. A View is sorted by Service.
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
