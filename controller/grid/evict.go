package grid

import (
	"context"
	"fmt"
	"time"

	"gridproxy/controller/grid/expand"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// evictAgain is the pause after a PodDisruptionBudget has refused an eviction, about kubectl
// drain's.
const evictAgain = 10 * time.Second

// evict asks for the eviction of a misplaced Pod, so that disruption budgets are respected.
func (e *execution) evict(ctx context.Context, s expand.Evict) error {
	meta := metav1.ObjectMeta{Namespace: s.Pod.Namespace, Name: s.Pod.Name}
	eviction := &policyv1.Eviction{
		ObjectMeta:    meta,
		DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &s.Pod.UID}},
	}
	err := e.client.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: meta}, eviction, client.FieldOwner(Manager))
	switch {
	case apierrors.IsTooManyRequests(err):
		e.retry(evictAgain)
		return nil
	case err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err): // gone, or another Pod of that name
		return fmt.Errorf("evicting the misplaced Pod %s/%s from Node %s: %w", s.Pod.Namespace, s.Pod.Name, s.Pod.Node, err)
	case err == nil:
		log.FromContext(ctx).Info("evicted", "pod", s.Pod.Name, "node", s.Pod.Node, "child", s.Pod.Child)
	}
	e.memory.dropMisplaced(e.known, s.Pod.UID)
	e.observed.Misplaced = e.memory.misplacedPods(e.known)
	return nil
}
