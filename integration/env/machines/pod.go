package machines

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"gridproxy/integration/env/netns"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var errNotRunning = errors.New("the Pod does not run on a machine of this cluster")

// Pod is the network namespace of a running Pod: for one with hostNetwork its machine's, opened once more. It
// stays usable until Close, though it is cut off when the Pod ends.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (*netns.Namespace, error) {
	pod, err := c.Client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading pod %s/%s: %w", namespace, name, err)
	}
	m := c.Machine(pod.Spec.NodeName)
	if m == nil || len(pod.Status.ContainerStatuses) == 0 {
		return nil, fmt.Errorf("%w: %s/%s", errNotRunning, namespace, name)
	}
	id := strings.TrimPrefix(pod.Status.ContainerStatuses[0].ContainerID, "containerd://")
	pid, err := m.task(ctx, id)
	if err != nil {
		return nil, fmt.Errorf("finding pod %s/%s on %s: %w", namespace, name, m.Name, err)
	}
	// The machine's own /proc knows the container by the machine's number for it.
	ns, err := netns.OpenNamespace(name, fmt.Sprintf("/proc/%d/root/proc/%d/ns/net", m.PID(), pid))
	if err != nil {
		return nil, err
	}
	for _, ip := range pod.Status.PodIPs {
		addr, err := netip.ParseAddr(ip.IP)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("reading the addresses of pod %s/%s: %w", namespace, name, err), ns.Close())
		}
		ns.Addrs = append(ns.Addrs, addr)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pods = append(c.pods, ns)
	return ns, nil
}

// task is the process of a container, by the machine's numbers.
func (m *Machine) task(ctx context.Context, container string) (int, error) {
	out, err := m.Run(ctx, nil, m.cluster.runtime.Path("ctr"), "--address="+socket, "--namespace=k8s.io", "tasks", "ls")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(out)) {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == container && f[2] == "RUNNING" {
			return strconv.Atoi(f[1])
		}
	}
	return 0, fmt.Errorf("%w: container %q", errNotRunning, container)
}

// Exec runs a command in a Pod's first container, as kubectl exec does, and returns what it printed.
func (c *Cluster) Exec(ctx context.Context, namespace, pod string, command ...string) (string, error) {
	return c.KubectlIn(ctx, nil, append([]string{"exec", "--namespace=" + namespace, pod, "--"}, command...)...)
}
