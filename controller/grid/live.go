package grid

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The field managers of everything that is written to children.
const (
	// Manager applies children, and writes what is not applied.
	Manager = "grid-controller"
	// ReplicasManager holds spec.replicas of children whose template leaves it out, until they are
	// scaled.
	ReplicasManager = "grid-controller-replicas"
)

// live returns what expand reads of a Deployment, StatefulSet or Service; else an error.
func live(o client.Object) (expand.Live, error) {
	l := expand.Live{
		Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		Deleting: o.GetDeletionTimestamp() != nil, Created: o.GetCreationTimestamp().Time,
		Labels: superEdge(o.GetLabels()), Fingerprint: o.GetLabels()[v1.LabelFingerprint], Annotations: superEdge(o.GetAnnotations()),
		Owned: owned(o.GetManagedFields()), Predecessors: predecessors(o.GetManagedFields()), Generation: o.GetGeneration(),
	}
	if owner := metav1.GetControllerOfNoCopy(o); owner != nil {
		l.Owner, l.OwnerName = owner.UID, owner.Kind+"/"+owner.Name
	}
	var err error
	switch o := o.(type) {
	case *appsv1.Deployment:
		readDeployment(&l, o)
		l.State, err = sortedJSON(deploymentState(o.Status))
	case *appsv1.StatefulSet:
		readStatefulSet(&l, o)
		l.State, err = sortedJSON(o.Status)
	case *corev1.Service:
		l.ClusterIP = o.Spec.ClusterIP
		l.State, err = sortedJSON(o.Status.LoadBalancer)
	default:
		return l, fmt.Errorf("reading a child: %T is no kind of child", o)
	}
	if err != nil {
		return l, fmt.Errorf("reading the status of %s %s/%s: %w", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace(), o.GetName(), err)
	}
	return l, nil
}

// superEdge returns the labels or annotations that are read of a child: those in SuperEdge's
// domain, without the fingerprint.
func superEdge(m map[string]string) expand.Pairs {
	m = maps.Clone(m)
	maps.DeleteFunc(m, func(name, _ string) bool {
		return !strings.HasPrefix(name, v1.Group+"/") || name == v1.LabelFingerprint
	})
	return expand.MakePairs(m)
}

// sortedJSON encodes a status with its fields in the order in which an API server returns what
// it stores, so that the bytes can be compared.
func sortedJSON(status any) ([]byte, error) {
	text, err := json.Marshal(status)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

func readDeployment(l *expand.Live, d *appsv1.Deployment) {
	l.NodeSelector = expand.MakePairs(d.Spec.Template.Spec.NodeSelector)
	l.TemplateHash = d.Spec.Template.Labels[v1.LabelTemplateHash]
	l.Selects = matchLabels(d.Spec.Selector)
	l.Replicas = d.Spec.Replicas
	l.Paused = d.Spec.Paused
	l.ObservedGeneration = d.Status.ObservedGeneration
	l.StatusReplicas, l.ReadyReplicas = d.Status.Replicas, d.Status.ReadyReplicas
	l.UpdatedReplicas, l.Available = d.Status.UpdatedReplicas, d.Status.AvailableReplicas
	l.Stalled, l.StalledAt = stalled(d.Status.Conditions)
	l.Completed = slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentProgressing && c.Reason == "NewReplicaSetAvailable"
	})
}

// progressDeadline is the reason that the Deployment controller gives when it has waited long
// enough.
const progressDeadline = "ProgressDeadlineExceeded"

// stalled returns the message of the condition that says why a Deployment is stuck, "" without
// one. since is when its progress deadline was exceeded; zero for another cause. What keeps its
// Pods from being made has nothing to do with Nodes, so it comes first.
func stalled(conditions []appsv1.DeploymentCondition) (message string, since time.Time) {
	for _, c := range conditions {
		switch {
		case c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue:
			return c.Message, time.Time{}
		case c.Type == appsv1.DeploymentProgressing && c.Status == corev1.ConditionFalse && c.Reason == progressDeadline:
			message, since = c.Message, c.LastUpdateTime.Time
		}
	}
	return message, since
}

func readStatefulSet(l *expand.Live, s *appsv1.StatefulSet) {
	l.NodeSelector = expand.MakePairs(s.Spec.Template.Spec.NodeSelector)
	l.TemplateHash = s.Spec.Template.Labels[v1.LabelTemplateHash]
	l.Selects = matchLabels(s.Spec.Selector)
	l.Volumes = len(s.Spec.VolumeClaimTemplates) > 0
	l.Replicas = s.Spec.Replicas
	l.ObservedGeneration = s.Status.ObservedGeneration
	l.StatusReplicas, l.ReadyReplicas = s.Status.Replicas, s.Status.ReadyReplicas
	l.UpdatedReplicas, l.Available = s.Status.UpdatedReplicas, s.Status.AvailableReplicas
}

func matchLabels(s *metav1.LabelSelector) expand.Pairs {
	if s == nil {
		return expand.Pairs{}
	}
	return expand.MakePairs(s.MatchLabels)
}

// deploymentState returns what SuperEdge shows of a Deployment: a part, so that a status does
// not change with every Pod.
func deploymentState(s appsv1.DeploymentStatus) appsv1.DeploymentStatus {
	state := appsv1.DeploymentStatus{Replicas: s.Replicas, ReadyReplicas: s.ReadyReplicas}
	for _, c := range s.Conditions {
		if c.Type == appsv1.DeploymentAvailable {
			state.Conditions = []appsv1.DeploymentCondition{c}
		}
	}
	return state
}

// owned returns the fields that Manager owns by server-side apply, as fieldsV1, "" if it owns
// none.
func owned(entries []metav1.ManagedFieldsEntry) string {
	for _, e := range entries {
		if e.Manager == Manager && e.Operation == metav1.ManagedFieldsOperationApply && e.Subresource == "" && e.FieldsV1 != nil {
			return e.FieldsV1.GetRawString()
		}
	}
	return ""
}

// predecessors returns the field managers that kept an object as a child before this controller.
func predecessors(entries []metav1.ManagedFieldsEntry) []expand.Predecessor {
	var found []expand.Predecessor
	for _, e := range entries {
		if e.Operation != metav1.ManagedFieldsOperationUpdate || e.Subresource != "" || e.Manager == Manager || e.FieldsV1 == nil {
			continue
		}
		if raw := e.FieldsV1.GetRawString(); expand.IsPredecessor(e.Manager, raw) {
			found = append(found, expand.Predecessor{Manager: e.Manager, Owned: raw})
		}
	}
	return found
}

// gridName returns the name of the Grid that an object without an owner reference names, "" if
// it names none. The name is in the annotation if the label cannot hold it.
func gridName(o client.Object) string {
	if name := o.GetAnnotations()[v1.AnnotationGrid]; name != "" {
		return name
	}
	return o.GetLabels()[v1.LabelSelector]
}

// ReadLive returns a Deployment, StatefulSet or Service as expand.Decide reads it, and an error
// for another type. It is for callers that want to know what the controller would decide.
func ReadLive(o client.Object) (expand.Live, error) {
	if c, is := o.(child); is {
		return c.read(), nil
	}
	return live(o)
}

func compareLive(a, b expand.Live) int { return cmp.Compare(a.Name, b.Name) }
