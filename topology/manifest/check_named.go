package manifest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// checkNamespace checks a Namespace, of which only the name is read.
func checkNamespace(f *findings, n *metav1.PartialObjectMetadata) bool {
	checkMeta(f, n, false, validation.IsDNS1123Label)
	return true
}

// checkGrid checks a StatefulSetGrid, of which only the name is read.
func checkGrid(f *findings, g *metav1.PartialObjectMetadata) bool {
	checkMeta(f, g, true, validation.IsDNS1123Subdomain)
	return true
}
