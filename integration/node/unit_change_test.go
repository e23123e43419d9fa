package node

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNodeChangesUnit moves a node between units while a client sends requests without a pause.
// None is refused, and each is answered from the unit of before or, once one is, from the unit of
// now.
func TestNodeChangesUnit(t *testing.T) {
	w := newOperatedNode(t)
	w.addServiceOf("web", "10.96.0.20", "beijing-v9zdr", "guangzhou-hhmt2")
	w.start("--cluster-cidr", netns.ClusterCIDRs())
	web := netip.MustParseAddrPort("10.96.0.20:80")
	client := w.Client(here)
	wait.Until(w.t, "web answers from Beijing", func() error { return w.wantAnswer(client, web, "bj-3") })
	for _, move := range []struct{ unit, before, after string }{
		{netns.Guangzhou, "bj-3", "gz-2"}, {netns.Beijing, "gz-2", "bj-3"},
	} {
		ctx, cancel := context.WithCancel(w.ctx)
		var answers []string
		var asking sync.WaitGroup
		begun := make(chan struct{})
		begin := sync.OnceFunc(func() { close(begun) })
		asking.Go(func() {
			defer begin()
			for ctx.Err() == nil {
				answer, err := client.Fetch(w.ctx, web)
				if err != nil {
					t.Errorf("while this node moves to %s: %v", move.unit, err)
					return
				}
				answers = append(answers, answer.Node)
				begin()
			}
		})
		<-begun
		w.patch("node", here, map[string]any{"metadata": map[string]any{"labels": map[string]string{netns.UnitKey: move.unit}}})
		wait.Until(w.t, "web answers from "+move.unit, func() error { return w.wantAnswer(client, web, move.after) })
		cancel()
		asking.Wait()
		if changed := slices.Compact(slices.Clone(answers)); !slices.Equal(changed, []string{move.before, move.after}) &&
			!slices.Equal(changed, []string{move.before}) {
			t.Errorf("while this node moves to %s, %d requests are answered from %v in turn", move.unit, len(answers), changed)
		}
		t.Logf("%d requests while this node moves to %s", len(answers), move.unit)
	}
}

// wantAnswer asks several times: another endpoint would be found.
func (w *operatedNode) wantAnswer(client *netns.Pod, to netip.AddrPort, node string) error {
	for range 10 {
		answer, err := client.Fetch(w.ctx, to)
		if err != nil {
			return err
		}
		if answer.Node != node {
			return fmt.Errorf("%s answers, not %s", answer.Node, node)
		}
	}
	return nil
}

// addServiceOf makes a closed Service of Pods of the lab.
func (w *operatedNode) addServiceOf(name, address string, pods ...string) {
	w.t.Helper()
	_, err := w.api.CoreV1().Services("default").Create(w.ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"topologyKeys": fmt.Sprintf("[%q]", netns.UnitKey)}},
		Spec:       corev1.ServiceSpec{ClusterIP: address, Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	must(w.t, err)
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: name, Labels: map[string]string{discoveryv1.LabelServiceName: name}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new(""), Port: new(int32(8080))}},
	}
	for _, name := range pods {
		pod := w.Pod(name)
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{pod.Addrs[0].String()}, NodeName: &pod.Node.Name})
	}
	_, err = w.api.DiscoveryV1().EndpointSlices("default").Create(w.ctx, slice, metav1.CreateOptions{})
	must(w.t, err)
}
