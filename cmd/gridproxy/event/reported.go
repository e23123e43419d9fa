package event

import (
	"gridproxy/cmd/inspect/explain"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Reported is the text that was last reported of each Service. nil = nothing was, or there was no
// View yet.
type Reported map[types.NamespacedName]string

// byService groups values that are about ports by their Service.
func byService[T any](list []T, port func(T) topology.ServicePortName) map[types.NamespacedName][]T {
	groups := map[types.NamespacedName][]T{}
	for _, t := range list {
		name := port(t).NamespacedName
		groups[name] = append(groups[name], t)
	}
	return groups
}

// news returns the text about each Service of a View, and the ports of the Services whose text is
// new or has changed. say returns "" for a Service that has nothing to report.
func news(prev Reported, v topology.View, say func(ports []*topology.ServicePort) string) (next Reported, changed [][]*topology.ServicePort) {
	next = Reported{}
	for ports := range explain.ByService(v) {
		text := say(ports)
		if text == "" {
			continue
		}
		name := ports[0].Name.NamespacedName
		next[name] = text
		if prev[name] != text {
			changed = append(changed, ports)
		}
	}
	return next, changed
}
