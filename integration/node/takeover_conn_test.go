package node

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
)

// hold opens a connection to each endpoint of closed-live, which asks again and again.
func (w *takenNode) hold() []*traffic.Flow {
	w.t.Helper()
	client := &traffic.Client{Who: traffic.OfLab}
	flows, err := client.Hold([]string{"beijing-v9zdr", "guangzhou-hhmt2"}, traffic.Way{From: w.Client(here).Namespace, To: w.vip("closed-live")})
	must(w.t, err)
	w.t.Cleanup(func() { traffic.End(flows) })
	return flows
}

// expectClosed asks often enough that an endpoint outside of the unit would have answered; from the
// Pod of the node unless said otherwise.
func (w *takenNode) expectClosed(from ...*netns.Namespace) {
	w.t.Helper()
	from, to := append(from, w.Client(here).Namespace), w.vip("closed-live")
	for range 30 {
		answer, err := from[0].Fetch(w.ctx, to)
		must(w.t, err)
		if answer.Node != "bj-3" {
			w.t.Fatalf("a new connection left the unit: %v", answer)
		}
	}
}

// vip is a Service's cluster IP and first port.
func (w *takenNode) vip(service string) netip.AddrPort {
	w.t.Helper()
	svc, err := w.api.CoreV1().Services(corev1.NamespaceDefault).Get(w.ctx, service, metav1.GetOptions{})
	must(w.t, err)
	addr, err := netip.ParseAddr(svc.Spec.ClusterIP)
	must(w.t, err)
	return netip.AddrPortFrom(addr, uint16(svc.Spec.Ports[0].Port))
}
