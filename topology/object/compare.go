package object

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Pointer is a pointer to an API object.
type Pointer[T any] interface {
	*T
	metav1.Object
	runtime.Object
}

// Compare orders objects by namespace and name.
func Compare(a, b metav1.Object) int {
	return CompareNames(a.GetNamespace(), a.GetName(), b.GetNamespace(), b.GetName())
}

// CompareNames is Compare for those whose names alone are known.
func CompareNames(namespace, name, otherNamespace, otherName string) int {
	return cmp.Or(cmp.Compare(namespace, otherNamespace), cmp.Compare(name, otherName))
}
