package object

import (
	"cmp"

	"gridproxy/topology"
)

// Pointer is a pointer to an object that is held: an API object, or what stands for one.
type Pointer[T any] interface {
	*T
	topology.Object
}

// CompareNames orders objects as topology.CompareObjects does, if only their names are known.
func CompareNames(namespace, name, otherNamespace, otherName string) int {
	return cmp.Or(cmp.Compare(namespace, otherNamespace), cmp.Compare(name, otherName))
}
