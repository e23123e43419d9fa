package grid

import (
	v1 "gridproxy/controller/api/v1"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// CacheOptions are the options of a manager's cache for Add. Every object is reduced to the few
// fields that are read: of a Pod template its nodeSelector and SuperEdge's label, of a Node its
// labels and whether it is ready. A manager that has other controllers which read more of Nodes
// overrides what is left of these. Nothing is watched outside the namespaces; none: all are
// watched.
func CacheOptions(namespaces []string) cache.Options {
	o := cache.Options{DefaultTransform: trim}
	for _, name := range namespaces {
		if o.DefaultNamespaces == nil {
			o.DefaultNamespaces = map[string]cache.Config{}
		}
		o.DefaultNamespaces[name] = cache.Config{}
	}
	return o
}

func trim(o any) (any, error) {
	switch o := o.(type) {
	case *appsv1.Deployment:
		trimMeta(o)
		o.Spec = appsv1.DeploymentSpec{Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Template: trimTemplate(o.Spec.Template)}
	case *appsv1.StatefulSet:
		trimMeta(o)
		o.Spec = appsv1.StatefulSetSpec{
			Replicas: o.Spec.Replicas, Selector: o.Spec.Selector, Template: trimTemplate(o.Spec.Template),
			// Only whether there are any is asked.
			VolumeClaimTemplates: make([]corev1.PersistentVolumeClaim, min(1, len(o.Spec.VolumeClaimTemplates))),
		}
	case *corev1.Service:
		trimMeta(o)
		o.Spec = corev1.ServiceSpec{ClusterIP: o.Spec.ClusterIP}
		o.Status = corev1.ServiceStatus{LoadBalancer: o.Status.LoadBalancer}
	case *corev1.Node:
		trimNode(o)
	case client.Object:
		o.SetManagedFields(nil)
	}
	return o, nil
}

func trimNode(n *corev1.Node) {
	n.ManagedFields, n.Annotations, n.OwnerReferences = nil, nil, nil
	var ready []corev1.NodeCondition
	if c := readiness(n); c.Type != "" {
		ready = []corev1.NodeCondition{{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime}}
	}
	n.Spec, n.Status = corev1.NodeSpec{}, corev1.NodeStatus{Conditions: ready}
}

func trimTemplate(t corev1.PodTemplateSpec) corev1.PodTemplateSpec {
	trimmed := corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeSelector: t.Spec.NodeSelector}}
	if hash := t.Labels[v1.LabelTemplateHash]; hash != "" {
		trimmed.Labels = map[string]string{v1.LabelTemplateHash: hash}
	}
	return trimmed
}

func trimMeta(o client.Object) {
	var kept []metav1.ManagedFieldsEntry
	for _, e := range o.GetManagedFields() {
		if ours(e) || precedes(e) {
			kept = append(kept, e)
		}
	}
	o.SetManagedFields(kept)
	if a := o.GetAnnotations(); a[corev1.LastAppliedConfigAnnotation] != "" {
		delete(a, corev1.LastAppliedConfigAnnotation)
	}
}
