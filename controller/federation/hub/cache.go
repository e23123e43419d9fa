package hub

import (
	"strconv"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/federation/archive"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationSize is on a GridBundle in the cache, in the place of its archive: the archive's bytes.
// No name without a prefix is ever written by others to a GridBundle of ours.
const annotationSize = "archive-size"

// ByObject returns options for the manager's cache: it keeps GridBundles without their archives,
// reads only the Leases of the fleet, and keeps of these and of Namespaces only what is used. An
// archive must be read from the API server. GridReports are not among these options.
func ByObject() map[client.Object]cache.ByObject {
	ofFleet := labels.NewSelector()
	if r, err := labels.NewRequirement(v1alpha1.LabelCluster, selection.Exists, nil); err == nil { // the key is valid
		ofFleet = ofFleet.Add(*r)
	}
	everywhere := map[string]cache.Config{cache.AllNamespaces: {}} // however few namespaces of Grids are watched
	return map[client.Object]cache.ByObject{
		&v1alpha1.GridBundle{}:  {Namespaces: everywhere, Transform: trimBundle},
		&coordinationv1.Lease{}: {Namespaces: everywhere, Label: ofFleet, Transform: trimLease},
		newNamespace():          {Transform: trimNamespace},
	}
}

// newNamespace returns an empty Namespace to read only its metadata.
func newNamespace() *metav1.PartialObjectMetadata {
	return newMetadata(metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, "", "")
}

// identity returns the metadata by which an object is known.
func identity(o metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, UID: o.UID, ResourceVersion: o.ResourceVersion, DeletionTimestamp: o.DeletionTimestamp,
	}
}

func trimBundle(o any) (any, error) {
	b, ok := o.(*v1alpha1.GridBundle)
	if !ok || b.Annotations[annotationSize] != "" && b.Spec.Archive == nil { // trimmed before
		return o, nil
	}
	kept := identity(b.ObjectMeta)
	kept.Labels = map[string]string{v1alpha1.LabelCluster: b.Labels[v1alpha1.LabelCluster]}
	kept.Annotations = map[string]string{
		v1alpha1.AnnotationRevision: b.Annotations[v1alpha1.AnnotationRevision],
		annotationSize:              strconv.Itoa(len(b.Spec.Archive)),
	}
	b.ObjectMeta, b.Spec.Archive = kept, nil
	return b, nil
}

func trimLease(o any) (any, error) {
	l, ok := o.(*coordinationv1.Lease)
	if !ok {
		return o, nil
	}
	kept := identity(l.ObjectMeta)
	// One that is too long cannot be read: see readHeartbeat.
	if text, found := l.Annotations[v1alpha1.AnnotationHeartbeat]; found && len(text) <= heartbeatMax {
		kept.Annotations = map[string]string{v1alpha1.AnnotationHeartbeat: text}
	}
	l.ObjectMeta, l.Spec = kept, coordinationv1.LeaseSpec{RenewTime: l.Spec.RenewTime}
	return l, nil
}

func trimNamespace(o any) (any, error) {
	if n, ok := o.(*metav1.PartialObjectMetadata); ok {
		labels := archive.PodSecurity(n.Labels)
		if of, joined := n.Labels[v1alpha1.LabelCluster]; joined {
			labels = map[string]string{v1alpha1.LabelCluster: of} // Grids are not put into it
		}
		n.ObjectMeta = identity(n.ObjectMeta)
		n.Labels = labels
	}
	return o, nil
}
