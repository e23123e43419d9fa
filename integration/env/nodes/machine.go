package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Node is what can be said about a Node before it is made. Only Name is needed.
type Node struct {
	Name   string
	Labels map[string]string // beside kubernetes.io/hostname and kubernetes.io/os
	// Addrs are its own addresses; none: some of the ranges for benchmarks and documentation.
	Addrs []netip.Addr
	// PodCIDRs are its Pods' ranges; none: the controller manager chooses.
	PodCIDRs []netip.Prefix
}

type machine struct {
	addrs     []netip.Addr
	addresses *pool
	off       bool
}

// Add makes Nodes that are Ready, with Leases, and returns when each has its Pod ranges.
func (k *Kubelets) Add(ctx context.Context, nodes ...Node) error {
	return wait.Each(nodes, func(n Node) error {
		if err := k.add(ctx, n); err != nil {
			return fmt.Errorf("adding node %s: %w", n.Name, err)
		}
		return nil
	})
}

func (k *Kubelets) add(ctx context.Context, n Node) error {
	if len(n.Addrs) == 0 {
		n.Addrs = k.nextAddrs()
	}
	node, err := k.client.CoreV1().Nodes().Create(ctx, n.object(), metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating the Node: %w", err)
	}
	if err := k.createLease(ctx, node); err != nil {
		return err
	}
	err = wait.For(ctx, func(ctx context.Context) error {
		if len(node.Spec.PodCIDRs) > 0 {
			return nil
		}
		if now, err := k.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("reading the Node: %w", err)
		} else if node = now; len(node.Spec.PodCIDRs) == 0 {
			return errNoRanges
		}
		return nil
	})
	if err != nil {
		return err
	}
	addresses, err := newPool(node.Spec.PodCIDRs)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.nodes[n.Name] = &machine{addrs: n.Addrs, addresses: addresses}
	k.lookAt(n.Name)
	return nil
}

var errNoRanges = errors.New("the controller manager has not given it Pod ranges")

// lookAt has all Pods of a Node looked at. The caller holds the lock.
func (k *Kubelets) lookAt(node string) {
	for name, pod := range k.pods {
		if pod.Spec.NodeName == node {
			k.queue.Add(name)
		}
	}
}

// nextAddrs are of 198.18.0.0/15 (RFC 2544) and 2001:db8::/32 (RFC 3849), which no machine has.
func (k *Kubelets) nextAddrs() []netip.Addr {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.made++
	high, low := byte(k.made>>8), byte(k.made)
	return []netip.Addr{
		netip.AddrFrom4([4]byte{198, 18, high, low}),
		netip.AddrFrom16([16]byte{0x20, 0x01, 0x0d, 0xb8, 14: high, 15: low}),
	}
}

func (n Node) object() *corev1.Node {
	labels := map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux"}
	maps.Copy(labels, n.Labels)
	room := corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("32"),
		corev1.ResourceMemory: resource.MustParse("64Gi"),
		corev1.ResourcePods:   resource.MustParse("110"),
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: labels},
		Status: corev1.NodeStatus{
			Capacity: room, Allocatable: room, Conditions: []corev1.NodeCondition{readyNode()},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: apiserver.Version, OperatingSystem: "linux"},
		},
	}
	for _, p := range n.PodCIDRs {
		node.Spec.PodCIDRs = append(node.Spec.PodCIDRs, p.String())
	}
	if len(n.PodCIDRs) > 0 {
		node.Spec.PodCIDR = node.Spec.PodCIDRs[0]
	}
	for _, a := range n.Addrs {
		node.Status.Addresses = append(node.Status.Addresses, corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	return node
}

func readyNode() corev1.NodeCondition {
	now := metav1.Now()
	return corev1.NodeCondition{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		LastHeartbeatTime: now, LastTransitionTime: now,
	}
}

func (k *Kubelets) createLease(ctx context.Context, node *corev1.Node) error {
	seconds, now := int32(40), metav1.NowMicro()
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID},
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &node.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	leases := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	return wait.For(ctx, func(ctx context.Context) error {
		// Until the garbage collector is done, an earlier Node of the name may still have its Lease.
		if err := leases.Delete(ctx, node.Name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("deleting an old Lease: %w", err)
		}
		if _, err := leases.Create(ctx, lease, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating the Lease: %w", err)
		}
		return nil
	})
}

// renewLeases is done once a period. What fails is done the next time.
func (k *Kubelets) renewLeases(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, k.period)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": metav1.NowMicro()}})
	if err != nil {
		return // a time can always be encoded
	}
	_ = wait.Each(k.alive(), func(node string) error {
		_, err := k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).
			Patch(ctx, node, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func (k *Kubelets) alive() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var names []string
	for name, m := range k.nodes {
		if !m.off {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Remove deletes a Node; its kubelet is gone too. Kubernetes itself deletes the Pods that were bound
// to it, after about 40 s.
func (k *Kubelets) Remove(ctx context.Context, node string) error {
	k.mu.Lock()
	delete(k.nodes, node)
	k.mu.Unlock()
	if err := k.client.CoreV1().Nodes().Delete(ctx, node, metav1.DeleteOptions{}); err != nil {
		return fmt.Errorf("deleting node %s: %w", node, err)
	}
	return nil
}

// PowerOff cuts a Node off: its Lease is not renewed and its Pods are left as they are, so that it is
// NotReady after Options.NodeGrace.
func (k *Kubelets) PowerOff(node string) error { return k.power(node, false) }

// PowerOn ends PowerOff.
func (k *Kubelets) PowerOn(ctx context.Context, node string) error {
	if err := k.power(node, true); err != nil {
		return err
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{readyNode()}}})
	if err != nil {
		return fmt.Errorf("encoding the status of node %s: %w", node, err)
	}
	k.renewLeases(ctx)
	_, err = k.client.CoreV1().Nodes().Patch(ctx, node, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("reporting node %s as ready: %w", node, err)
	}
	return nil
}

func (k *Kubelets) power(node string, on bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	m := k.nodes[node]
	if m == nil {
		return fmt.Errorf("%w: %s", errNoNode, node)
	}
	m.off = !on
	k.lookAt(node)
	return nil
}

var errNoNode = errors.New("the kubelets have no such node")
