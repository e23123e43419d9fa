package nodes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sync does for one Pod what its Node's kubelet would do next.
func (k *Kubelets) sync(ctx context.Context, name types.NamespacedName) error {
	k.mu.Lock()
	pod := k.pods[name]
	var m *machine
	if pod != nil {
		m = k.nodes[pod.Spec.NodeName]
	}
	idle := m == nil || m.off
	k.mu.Unlock()
	switch {
	case idle:
		return nil
	case pod.DeletionTimestamp != nil:
		return k.end(ctx, pod)
	case pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
		return nil
	case slices.ContainsFunc(pod.Spec.Containers, broken):
		return k.stall(ctx, pod)
	case ready(pod):
		return nil
	}
	return k.start(ctx, pod, m)
}

func broken(c corev1.Container) bool { return strings.HasPrefix(c.Image, BrokenImages) }

func ready(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodRunning && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// end is what a kubelet does when the last container has ended: the object goes.
func (k *Kubelets) end(ctx context.Context, pod *corev1.Pod) error {
	now := int64(0)
	options := metav1.DeleteOptions{GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}
	err := k.client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, options)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it, or it and a follower of its name, came before us
	}
	return err
}

func (k *Kubelets) start(ctx context.Context, pod *corev1.Pod, m *machine) error {
	addrs, err := k.addrsOf(pod, m)
	if err != nil {
		return fmt.Errorf("giving pod %s/%s an address: %w", pod.Namespace, pod.Name, err)
	}
	now := metav1.Now()
	yes := true
	status := corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now, PodIP: addrs[0].String(), HostIP: m.addrs[0].String()}
	for _, a := range addrs {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	for _, a := range m.addrs {
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: a.String()})
	}
	for _, c := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.ContainersReady, corev1.PodReady,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, LastTransitionTime: now})
	}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image, Ready: true, Started: &yes,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	return k.report(ctx, pod, status)
}

// stall reports the Pod as waiting for images that cannot be pulled.
func (k *Kubelets) stall(ctx context.Context, pod *corev1.Pod) error {
	if len(pod.Status.ContainerStatuses) > 0 {
		return nil
	}
	status := corev1.PodStatus{Phase: corev1.PodPending}
	for _, c := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image,
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "no such image"}},
		})
	}
	return k.report(ctx, pod, status)
}

func (k *Kubelets) addrsOf(pod *corev1.Pod, m *machine) ([]netip.Addr, error) {
	if pod.Spec.HostNetwork {
		return m.addrs, nil
	}
	if k.podAddrs != nil {
		if addrs := k.podAddrs(pod); len(addrs) > 0 {
			return addrs, nil
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return m.addresses.take(pod.UID)
}

// report writes a status over the Pod's, unless the name has meanwhile passed to another Pod.
func (k *Kubelets) report(ctx context.Context, pod *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	_, err = k.client.CoreV1().Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
