package event

import (
	"gridproxy/cmd/gridproxy/explain"
	"gridproxy/topology"

	"k8s.io/apimachinery/pkg/types"
)

// Told is what was last told of each Service, in words. nil is before the first View, or
// nothing.
type Told map[types.NamespacedName]string

// byService groups what concerns ports by their Service.
func byService[T any](list []T, port func(T) topology.ServicePortName) map[types.NamespacedName][]T {
	groups := map[types.NamespacedName][]T{}
	for _, t := range list {
		name := port(t).NamespacedName
		groups[name] = append(groups[name], t)
	}
	return groups
}

// news returns what there is to say of the Services of a View, and those of which it is not what
// was said before, with their ports. say returns "" where there is nothing to say.
func news(prev Told, v topology.View, say func(ports []*topology.ServicePort) string) (next Told, changed [][]*topology.ServicePort) {
	next = Told{}
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
