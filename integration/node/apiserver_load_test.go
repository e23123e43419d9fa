package node

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// load changes objects of every kind at random, and knows which of them exist.
type load struct {
	ctx context.Context
	t   *testing.T
	api kubernetes.Interface
	rnd *rand.Rand

	next                    int
	services, slices, nodes []string
}

func newLoad(ctx context.Context, t *testing.T, api kubernetes.Interface) *load {
	seed := rand.Uint64()
	t.Logf("seed of the random changes: %d", seed)
	return &load{ctx: ctx, t: t, api: api, rnd: rand.New(rand.NewPCG(seed, 0))}
}

// on writes through another API server from now on.
func (l *load) on(api kubernetes.Interface) { l.api = api }

func (l *load) name(kind string) string {
	l.next++
	return fmt.Sprintf("%s-%d", kind, l.next)
}

// fill makes a cluster of some objects of each kind, with this node among them.
func (l *load) fill(services int) {
	l.t.Helper()
	l.addNode(self)
	for range 3 {
		l.addNode(l.name("node"))
	}
	for range services {
		l.addSlice(l.addService())
	}
}

// change does so many random things, deletions among them.
func (l *load) change(times int) {
	l.t.Helper()
	for range times {
		switch l.rnd.IntN(8) {
		case 0, 1:
			l.addSlice(l.addService())
		case 2:
			l.editService()
		case 3, 4:
			l.editSlice()
		case 5:
			l.removeService()
		case 6:
			l.removeSlice()
		default:
			l.editNodes()
		}
	}
}

func (l *load) addService() string {
	l.t.Helper()
	name := l.name("svc")
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: l.keys()},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": name},
			Ports:    []corev1.ServicePort{{Name: "web", Port: 80}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}},
		},
	}
	switch l.rnd.IntN(6) {
	case 0:
		s.Spec.Type = corev1.ServiceTypeNodePort
	case 1:
		s.Spec.ClusterIP = corev1.ClusterIPNone
	case 2:
		s.Labels = map[string]string{"service.kubernetes.io/service-proxy-name": "somebody-else"}
	case 3:
		s.Labels = map[string]string{"service.kubernetes.io/headless": ""} // means nothing on a Service
	}
	_, err := l.api.CoreV1().Services("default").Create(l.ctx, s, metav1.CreateOptions{})
	must(l.t, err)
	l.services = append(l.services, name)
	return name
}

// addKept makes a Service that no change touches.
func (l *load) addKept() string {
	l.t.Helper()
	name := l.name("kept")
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}
	_, err := l.api.CoreV1().Services("default").Create(l.ctx, s, metav1.CreateOptions{})
	must(l.t, err)
	return name
}

func (l *load) keys() map[string]string {
	return [...]map[string]string{
		nil, {"topologyKeys": `["location"]`}, {"topologyKeys": `["zone","location"]`}, {"topologyKeys": `broken`},
	}[l.rnd.IntN(4)]
}

func (l *load) editService() {
	l.t.Helper()
	if len(l.services) == 0 {
		return
	}
	s, err := l.api.CoreV1().Services("default").Get(l.ctx, l.services[l.rnd.IntN(len(l.services))], metav1.GetOptions{})
	must(l.t, err)
	s.Annotations = l.keys()
	s.Spec.Ports[0].Port = int32(1000 + l.rnd.IntN(1000))
	_, err = l.api.CoreV1().Services("default").Update(l.ctx, s, metav1.UpdateOptions{})
	must(l.t, err)
}

func (l *load) removeService() {
	l.t.Helper()
	if name := l.take(&l.services); name != "" {
		must(l.t, l.api.CoreV1().Services("default").Delete(l.ctx, name, metav1.DeleteOptions{}))
	}
}

func (l *load) addSlice(service string) {
	l.t.Helper()
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: l.name("slice"), Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Endpoints:   l.endpoints(),
		Ports:       []discoveryv1.EndpointPort{{Name: new("web"), Port: new(int32(8080))}},
	}
	switch l.rnd.IntN(8) {
	case 0:
		s.Labels["service.kubernetes.io/headless"] = ""
	case 1:
		s.Labels["service.kubernetes.io/service-proxy-name"] = "somebody-else" // means nothing on a slice
	}
	_, err := l.api.DiscoveryV1().EndpointSlices("default").Create(l.ctx, s, metav1.CreateOptions{})
	must(l.t, err)
	l.slices = append(l.slices, s.Name)
}

func (l *load) endpoints() []discoveryv1.Endpoint {
	var all []discoveryv1.Endpoint
	for i := range 1 + l.rnd.IntN(3) {
		e := discoveryv1.Endpoint{
			Addresses:  []string{fmt.Sprintf("10.244.%d.%d", l.rnd.IntN(256), 10*i+l.rnd.IntN(10))},
			Conditions: discoveryv1.EndpointConditions{Ready: new(l.rnd.IntN(4) > 0)},
		}
		if len(l.nodes) > 0 {
			e.NodeName = &l.nodes[l.rnd.IntN(len(l.nodes))]
		}
		all = append(all, e)
	}
	return all
}

func (l *load) editSlice() {
	l.t.Helper()
	if len(l.slices) == 0 {
		return
	}
	s, err := l.api.DiscoveryV1().EndpointSlices("default").Get(l.ctx, l.slices[l.rnd.IntN(len(l.slices))], metav1.GetOptions{})
	must(l.t, err)
	s.Endpoints = l.endpoints()
	_, err = l.api.DiscoveryV1().EndpointSlices("default").Update(l.ctx, s, metav1.UpdateOptions{})
	must(l.t, err)
}

func (l *load) removeSlice() {
	l.t.Helper()
	if name := l.take(&l.slices); name != "" {
		must(l.t, l.api.DiscoveryV1().EndpointSlices("default").Delete(l.ctx, name, metav1.DeleteOptions{}))
	}
}

func (l *load) addNode(name string) {
	l.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: l.unit()}}
	n, err := l.api.CoreV1().Nodes().Create(l.ctx, n, metav1.CreateOptions{})
	must(l.t, err)
	n.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("172.18.0.%d", l.next+1)}}
	_, err = l.api.CoreV1().Nodes().UpdateStatus(l.ctx, n, metav1.UpdateOptions{})
	must(l.t, err)
	l.nodes = append(l.nodes, name)
}

func (l *load) unit() map[string]string {
	return map[string]string{"location": []string{"beijing", "guangzhou", ""}[l.rnd.IntN(3)]}
}

// editNodes moves a node to another unit, or replaces one that is not this node.
func (l *load) editNodes() {
	l.t.Helper()
	if at := l.rnd.IntN(len(l.nodes)); l.nodes[at] != self && l.rnd.IntN(2) == 0 {
		must(l.t, l.api.CoreV1().Nodes().Delete(l.ctx, l.nodes[at], metav1.DeleteOptions{}))
		l.nodes = append(l.nodes[:at:at], l.nodes[at+1:]...)
		l.addNode(l.name("node"))
		return
	}
	n, err := l.api.CoreV1().Nodes().Get(l.ctx, l.nodes[l.rnd.IntN(len(l.nodes))], metav1.GetOptions{})
	must(l.t, err)
	n.Labels = l.unit()
	_, err = l.api.CoreV1().Nodes().Update(l.ctx, n, metav1.UpdateOptions{})
	must(l.t, err)
}

// take removes a random name from a list; "" if the list is empty.
func (l *load) take(names *[]string) string {
	if len(*names) == 0 {
		return ""
	}
	at := l.rnd.IntN(len(*names))
	name := (*names)[at]
	*names = append((*names)[:at:at], (*names)[at+1:]...)
	return name
}
