package main

import (
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeAddressChanges: rules follow the addresses of the Node object, and its deletion, while
// the same process goes on. kube-proxy 1.36 keeps the addresses of its start; 1.37 exits, to be
// started again.
func TestNodeAddressChanges(t *testing.T) {
	t.Parallel()
	need.IPTables(t)
	ns := newNamespace(t)
	within(t, ns, func() error {
		for _, address := range []string{"192.0.2.1/32", "192.0.2.2/32"} {
			lo, err := netlink.LinkByName("lo")
			if err != nil {
				return err
			}
			addr, err := netlink.ParseAddr(address)
			if err != nil {
				return err
			}
			if err := netlink.AddrAdd(lo, addr); err != nil {
				return err
			}
		}
		return nil
	})
	api, address, _ := serveIn(t, ns, "127.0.0.1:0")
	web := clusterIP("web", "10.96.0.2", 80)
	web.Spec.Type, web.Spec.Ports[0].NodePort = corev1.ServiceTypeNodePort, 30080
	node := func(ip string) *corev1.Node {
		return &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "bj-3"},
			Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: ip}}},
		}
	}
	put(t, api, clusterIP("kubernetes", "10.96.0.1", 443), readyAt("kubernetes", "192.0.2.7"), web, readyAt("web", "10.0.0.1"), node("192.0.2.1"))
	d := startIn(t, ns, "--node-name=bj-3", "--kubeconfig="+kubeconfigOf(t, address), "--verify-period=1s", "--nodeport-addresses=primary,127.0.0.0/8")
	answersOn := func(want, not string) func() bool {
		return func() bool {
			rules := d.rules(t)
			return strings.Contains(rules, "-A KUBE-SERVICES -d "+want+" ") && !strings.Contains(rules, "-A KUBE-SERVICES -d "+not+" ")
		}
	}
	d.until(t, "NodePorts on the first address", answersOn("192.0.2.1/32", "192.0.2.2/32"))
	put(t, api, node("192.0.2.2"))
	d.until(t, "NodePorts on the second address", answersOn("192.0.2.2/32", "192.0.2.1/32"))
	remove(t, api, node("192.0.2.2"))
	d.until(t, "NodePorts on listed loopback addresses alone", answersOn("127.0.0.1/32", "192.0.2.2/32"))
	put(t, api, node("192.0.2.1"))
	d.until(t, "NodePorts on the first address again", answersOn("192.0.2.1/32", "192.0.2.2/32"))
	if code := d.stop(t, syscall.SIGTERM); code != 0 {
		t.Errorf("the process of the first address ended with code %d", code)
	}
}
