package manifest

import (
	"fmt"
	"maps"
	"slices"

	"gridproxy/topology"
	"gridproxy/topology/excerpt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// checkNode gives a Node the API server's defaults, and adds to f what is wrong with it. Labels
// count most: units are made of them. It returns true.
func checkNode(f *findings, n *corev1.Node) bool {
	checkMeta(f, n, false, validation.IsDNS1123Subdomain)
	for _, key := range slices.Sorted(maps.Keys(n.Labels)) {
		path := metadataPath.Child("labels").Key(key)
		f.valid(path, key, validation.IsQualifiedName)
		f.valid(path, n.Labels[key], validation.IsValidLabelValue)
	}
	checkPodCIDRs(f, &n.Spec)
	for i := range n.Status.Addresses {
		a := &n.Status.Addresses[i]
		if a.Type != corev1.NodeInternalIP && a.Type != corev1.NodeExternalIP {
			continue
		}
		if addr, err := topology.ParseAddr(a.Address); err == nil {
			a.Address = addr.String()
		} else { // an API server stores any text
			f.warn(field.NewPath("status", "addresses").Index(i).Child("address"), fmt.Sprintf("%v; it is ignored", err))
		}
	}
	return true
}

// checkPodCIDRs completes podCIDR and podCIDRs from each other. As in an API server, podCIDR counts
// where they differ.
func checkPodCIDRs(f *findings, spec *corev1.NodeSpec) {
	switch {
	case len(spec.PodCIDRs) == 0 && spec.PodCIDR != "":
		spec.PodCIDRs = []string{spec.PodCIDR}
	case len(spec.PodCIDRs) > 0 && spec.PodCIDR == "":
		spec.PodCIDR = spec.PodCIDRs[0]
	case len(spec.PodCIDRs) > 0 && spec.PodCIDR != spec.PodCIDRs[0]:
		f.warn(specPath.Child("podCIDRs"), fmt.Sprintf("are ignored, because spec.podCIDRs[0] is %s and spec.podCIDR %s; make them equal",
			excerpt.Quoted(spec.PodCIDRs[0]), excerpt.Quoted(spec.PodCIDR)))
		spec.PodCIDRs = []string{spec.PodCIDR}
	}
	for i := range spec.PodCIDRs {
		f.prefix(specPath.Child("podCIDRs").Index(i), &spec.PodCIDRs[i])
	}
	if len(spec.PodCIDRs) > 0 {
		spec.PodCIDR = spec.PodCIDRs[0]
	}
}
