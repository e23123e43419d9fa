package services

import (
	"fmt"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func bare(s *corev1.Service) { s.Spec.Selector = nil }

func portsInSeveralSlices(w *world) {
	first, second := port("first", corev1.ProtocolTCP, 80, 8080), port("second", corev1.ProtocolTCP, 81, 9090)
	s := w.service(bare, ports(first, second))
	for _, f := range netns.Families() {
		w.slice(s, f, []corev1.ServicePort{first}, bjA)
		w.slice(s, f, []corev1.ServicePort{second}, gzA)
	}
	w.reaches("tcp", w.client(bj), vips(s, 80), bjA)
	w.reaches("tcp", w.client(bj), vips(s, 81), gzA)
}

func addressesInSeveralSlices(w *world) {
	first, second := port("first", corev1.ProtocolTCP, 80, 8080), port("second", corev1.ProtocolTCP, 81, 9090)
	s := w.service(bare, ports(first, second))
	for _, f := range netns.Families() {
		w.slice(s, f, s.Spec.Ports, bjA, gzB)
		w.slice(s, f, s.Spec.Ports, gzA)
	}
	for _, port := range []int32{80, 81} {
		w.reaches("tcp", w.client(bj), vips(s, port), bjA, gzA, gzB)
	}
}

// severalServices: one set of Pods, two Services, and one of them goes.
func severalServices(w *world) {
	w.join(shared()...)
	one, two := w.service(), w.service()
	w.reaches("tcp", w.client(bj), append(vips(one, 80), vips(two, 80)...), shared()...)
	w.deleteService(one)
	w.down("tcp", w.client(bj), vips(one, 80))
	w.reaches("tcp", w.client(bj), vips(two, 80), shared()...)
}

// otherServiceCIDR: cluster IPs of a range that the control plane was not started with.
func otherServiceCIDR(w *world) {
	w.join(shared()...)
	const addr = "10.168.0.10"
	_, err := w.Client.NetworkingV1().ServiceCIDRs().Create(w.Context(), &networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: w.id}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.168.0.0/24"}},
	}, metav1.CreateOptions{})
	w.must(err)
	w.made++
	var s *corev1.Service
	wait.Until(w.TB, "a Service at "+addr, func() (err error) {
		s, err = w.Client.CoreV1().Services(namespace).Create(w.Context(), &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.id, w.made)},
			Spec: corev1.ServiceSpec{
				ClusterIP: addr, Selector: map[string]string{w.id: "joined"}, Ports: []corev1.ServicePort{tcp80()},
			},
		}, metav1.CreateOptions{})
		return err
	})
	for _, from := range []*netns.Namespace{w.client(bj), w.client(gz), w.host(bj)} {
		w.reaches("tcp", from, vips(s, 80), shared()...)
	}
}

// sctp must be told in the table even where it cannot be run: most kernels here have no such sockets.
func sctp(w *world) {
	if err := sctpSocket(); err != nil {
		w.Skipf("SKIPPED: this kernel has no SCTP sockets (%v): run `modprobe sctp`", err)
	}
	one := w.pod("one", gz, func(p *corev1.Pod) { setEnv(p, "PORTS", "8080/tcp 8080/sctp") })
	s := w.service(ports(port("stream", corev1.ProtocolSCTP, 80, 8080)))
	w.reaches("sctp", w.client(bj), vips(s, 80), one)
}

// Traffic distribution. Each machine is a zone of its own.

func distribution(how string) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.TrafficDistribution = &how }
}

func preferSameZone(how string) func(*world) {
	return func(w *world) {
		w.join(shared()...)
		s := w.service(distribution(how))
		w.reaches("tcp", w.client(bj), vips(s, 80), bjA, bjB)
		w.reaches("tcp", w.client(gz), vips(s, 80), gzA, gzB)
		w.reaches("tcp", w.host(gz), vips(s, 80), gzA, gzB)
		w.leave(bjA)
		w.reaches("tcp", w.client(bj), vips(s, 80), bjB)
		w.leave(bjB)
		w.reaches("tcp", w.client(bj), vips(s, 80), gzA, gzB)
	}
}

func preferSameNode(w *world) {
	w.join(bjA, gzA)
	s := w.service(distribution(corev1.ServiceTrafficDistributionPreferSameNode))
	w.reaches("tcp", w.client(bj), vips(s, 80), bjA)
	w.reaches("tcp", w.client(gz), vips(s, 80), gzA)
}

func preferSameNodeFallsBack(w *world) {
	one := w.pod("one", bj)
	w.join(gzA)
	s := w.service(distribution(corev1.ServiceTrafficDistributionPreferSameNode))
	w.reaches("tcp", w.client(bj), vips(s, 80), one)
	w.kill(one)
	w.reaches("tcp", w.client(bj), vips(s, 80), gzA)
	w.pod("two", bj)
	w.reaches("tcp", w.client(bj), vips(s, 80), w.id+"-two")
}

// topologyHints: Kubernetes' older way, chosen by an annotation, which needs a share of endpoints for
// each zone that is like its share of CPUs.
func topologyHints(w *world) {
	w.join(shared()...)
	s := w.service(func(s *corev1.Service) {
		s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
	})
	wait.Until(w.TB, "the slices of "+s.Name+" have hints", func() error {
		slices, err := w.Client.DiscoveryV1().EndpointSlices(namespace).List(w.Context(), metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=" + s.Name,
		})
		if err != nil {
			return err
		}
		hints := 0
		for _, slice := range slices.Items {
			for _, e := range slice.Endpoints {
				if e.Hints != nil {
					hints++
				}
			}
		}
		want := 2 * len(shared())
		return wait.Check(hints == want, "%d of %d endpoints have hints", hints, want)
	})
	w.reaches("tcp", w.client(bj), vips(s, 80), bjA, bjB)
	w.reaches("tcp", w.client(gz), vips(s, 80), gzA, gzB)
}
