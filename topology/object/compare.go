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

// Compare orders objects by namespace and name.
func Compare(a, b topology.Object) int {
	return CompareNames(a.GetNamespace(), a.GetName(), b.GetNamespace(), b.GetName())
}

// CompareNames orders objects as Compare does, if only their names are known.
func CompareNames(namespace, name, otherNamespace, otherName string) int {
	return cmp.Or(cmp.Compare(namespace, otherNamespace), cmp.Compare(name, otherName))
}
