package machines

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// join lets the kubelet start, waits until the Node is Ready, and tells everybody the way to its Pods.
func (m *Machine) join(ctx context.Context) error {
	c := m.cluster
	user, err := c.User(c.API.Addr, "system:node:"+m.Name, "system:nodes")
	if err != nil {
		return err
	}
	for _, file := range []string{m.Disk(Kubernetes + "/kubelet.conf"), m.kubeconfig()} { // the kubelet waits for the second
		if _, err := apiserver.WriteKubeconfig(filepath.Dir(file), filepath.Base(file), user); err != nil {
			return err
		}
	}
	if err := m.ready(ctx, time.Time{}); err != nil {
		return err
	}
	for _, other := range c.everybody() {
		if other == m.Namespace {
			continue
		}
		if err := c.showWay(ctx, other, m); err != nil {
			return err
		}
	}
	return nil
}

// everybody is whoever may send to Pods.
func (c *Cluster) everybody() []*netns.Namespace {
	all := []*netns.Namespace{c.fabric.Namespace, c.outside}
	for _, m := range c.machines {
		if m.Namespace != nil {
			all = append(all, m.Namespace)
		}
	}
	return all
}

// teach tells a namespace the ways to the Pods of all machines but its own.
func (c *Cluster) teach(ctx context.Context, ns *netns.Namespace) error {
	for _, m := range c.machines {
		if m.Namespace == ns {
			continue
		}
		if err := c.showWay(ctx, ns, m); err != nil {
			return err
		}
	}
	return nil
}

// showWay routes a machine's Pods through it.
func (c *Cluster) showWay(ctx context.Context, ns *netns.Namespace, m *Machine) error {
	node, err := c.Client.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("reading the ranges of %s: %w", m.Name, err)
	}
	for _, cidr := range node.Spec.PodCIDRs {
		pods, err := netip.ParsePrefix(cidr)
		if err != nil {
			return fmt.Errorf("reading the ranges of %s: %w", m.Name, err)
		}
		via := m.Addrs[0]
		if pods.Addr().Is6() {
			via = m.Addrs[1]
		}
		if err := route(ns, pods, via); err != nil {
			return err
		}
	}
	return nil
}

var (
	errNotReady = errors.New("the Node is not Ready")
	errStale    = errors.New("the Node's status is from before")
)

// ready waits until the kubelet says that the Node is Ready, after a moment.
func (m *Machine) ready(ctx context.Context, after time.Time) error {
	after = after.Truncate(time.Second) // a heartbeat has no fractions
	ctx, cancel := context.WithTimeout(ctx, apiserver.StartTimeout)
	defer cancel()
	err := m.init.WaitFor(ctx, func(ctx context.Context) error {
		node, err := m.cluster.Client.CoreV1().Nodes().Get(ctx, m.Name, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading the Node: %w", err)
		}
		for _, condition := range node.Status.Conditions {
			switch {
			case condition.Type != corev1.NodeReady:
			case condition.LastHeartbeatTime.Time.Before(after):
				return errStale
			case condition.Status != corev1.ConditionTrue:
				return fmt.Errorf("%w: %s", errNotReady, condition.Message)
			case len(node.Spec.PodCIDRs) > 0:
				return nil
			}
		}
		return errNotReady
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w; the end of its kubelet's log:\n%s", m.Name, err, apiserver.Tail(m.log("kubelet"), 20))
	}
	return nil
}
