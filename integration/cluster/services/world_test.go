package services

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/util/retry"
)

const namespace = "echo"

// The machines, each in a zone of its own.
const (
	bj = "bj-1"
	gz = "gz-1"
)

// world is what one scenario has: the cluster of its arm, and a name for all that it makes.
type world struct {
	testing.TB
	*arm
	id   string // of the scenario: begins the name of each object, and labels the Pods of its Services
	made int
}

// must ends the scenario if something went wrong that is no finding.
func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// service makes a Service of both families, port 80 to 8080 of TCP, for the Pods that have joined the
// scenario, once some changes are made to it.
func (w *world) service(changes ...func(*corev1.Service)) *corev1.Service {
	w.Helper()
	w.made++
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", w.id, w.made), Namespace: namespace},
		Spec: corev1.ServiceSpec{
			IPFamilyPolicy: new(corev1.IPFamilyPolicyPreferDualStack),
			Selector:       map[string]string{w.id: "joined"},
			Ports:          []corev1.ServicePort{port("http", corev1.ProtocolTCP, 80, 8080)},
		},
	}
	for _, change := range changes {
		change(s)
	}
	return w.create(s)
}

func (w *world) create(s *corev1.Service) *corev1.Service {
	w.Helper()
	made, err := w.Client.CoreV1().Services(namespace).Create(w.Context(), s, metav1.CreateOptions{})
	w.must(err)
	return made
}

func (w *world) update(s *corev1.Service, change func(*corev1.Service)) *corev1.Service {
	w.Helper()
	return w.write(s, change, func(now *corev1.Service) (*corev1.Service, error) {
		return w.Client.CoreV1().Services(namespace).Update(w.Context(), now, metav1.UpdateOptions{})
	})
}

// balance gives a Service of type LoadBalancer its addresses, as a cloud does.
func (w *world) balance(s *corev1.Service, addrs ...string) *corev1.Service {
	w.Helper()
	set := func(s *corev1.Service) {
		s.Status.LoadBalancer.Ingress = nil
		for _, a := range addrs {
			s.Status.LoadBalancer.Ingress = append(s.Status.LoadBalancer.Ingress, corev1.LoadBalancerIngress{IP: a})
		}
	}
	return w.write(s, set, func(now *corev1.Service) (*corev1.Service, error) {
		return w.Client.CoreV1().Services(namespace).UpdateStatus(w.Context(), now, metav1.UpdateOptions{})
	})
}

// write reads a Service, changes it and writes it back, and again when another writer was faster.
func (w *world) write(s *corev1.Service, change func(*corev1.Service), back func(*corev1.Service) (*corev1.Service, error)) *corev1.Service {
	w.Helper()
	var made *corev1.Service
	w.must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		now, err := w.Client.CoreV1().Services(namespace).Get(w.Context(), s.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(now)
		made, err = back(now)
		return err
	}))
	return made
}

func (w *world) deleteService(s *corev1.Service) {
	w.Helper()
	w.must(w.Client.CoreV1().Services(namespace).Delete(w.Context(), s.Name, metav1.DeleteOptions{}))
}

// slice makes an EndpointSlice by hand for a Service without a selector: some ports of some Pods.
func (w *world) slice(s *corev1.Service, f netns.Family, ports []corev1.ServicePort, pods ...string) *discoveryv1.EndpointSlice {
	w.Helper()
	w.made++
	made := &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("%s-%d", w.id, w.made), Namespace: namespace,
			Labels: map[string]string{discoveryv1.LabelServiceName: s.Name, discoveryv1.LabelManagedBy: "scenarios"},
		},
		AddressType: discoveryv1.AddressType(f),
	}
	for _, name := range pods {
		pod := w.running(name)
		made.Endpoints = append(made.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{addrOf(pod, f).String()}, NodeName: &pod.Spec.NodeName,
			Conditions: discoveryv1.EndpointConditions{Ready: new(true)},
		})
	}
	for _, p := range ports {
		made.Ports = append(made.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &p.TargetPort.IntVal})
	}
	made, err := w.Client.DiscoveryV1().EndpointSlices(namespace).Create(w.Context(), made, metav1.CreateOptions{})
	w.must(err)
	return made
}

// join makes shared Pods endpoints of the scenario's Services; leave undoes that.
func (w *world) join(pods ...string) {
	w.Helper()
	w.label(fmt.Sprintf("%q", "joined"), pods)
}

func (w *world) leave(pods ...string) {
	w.Helper()
	w.label("null", pods)
}

func (w *world) label(value string, pods []string) {
	w.Helper()
	for _, name := range pods {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, w.id, value)
		_, err := w.Client.CoreV1().Pods(namespace).Patch(w.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
		w.must(err)
	}
}

// pod makes a Pod of the scenario's own, which has joined it, and returns its name. It may not run yet.
func (w *world) pod(name, node string, changes ...func(*corev1.Pod)) string {
	w.Helper()
	p := echoPod(w.id+"-"+name, node)
	p.Labels = map[string]string{w.id: "joined"}
	for _, change := range changes {
		change(p)
	}
	_, err := w.Client.CoreV1().Pods(namespace).Create(w.Context(), p, metav1.CreateOptions{})
	w.must(err)
	return p.Name
}

// running waits until a Pod has addresses and its containers run. It may not be ready.
func (w *world) running(name string) *corev1.Pod {
	w.Helper()
	return w.podWhen(name, "runs", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" })
}

func (w *world) podWhen(name, what string, holds func(*corev1.Pod) bool) *corev1.Pod {
	w.Helper()
	var pod *corev1.Pod
	wait.Until(w.TB, "pod "+name+" "+what, func() (err error) {
		if pod, err = w.Client.CoreV1().Pods(namespace).Get(w.Context(), name, metav1.GetOptions{}); err != nil {
			return err
		}
		return wait.Check(holds(pod), "its phase is %s, its conditions are %v", pod.Status.Phase, pod.Status.Conditions)
	})
	return pod
}

// terminate deletes a Pod with the grace period that it has: it may go on serving.
func (w *world) terminate(name string) {
	w.Helper()
	w.must(w.Client.CoreV1().Pods(namespace).Delete(w.Context(), name, metav1.DeleteOptions{}))
}

// kill deletes a Pod without any grace.
func (w *world) kill(name string) {
	w.Helper()
	w.must(w.Client.CoreV1().Pods(namespace).Delete(w.Context(), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
}

func (w *world) inside(name string) *netns.Namespace {
	w.Helper()
	w.running(name)
	ns, err := w.Cluster.Pod(w.Context(), namespace, name)
	w.must(err)
	return ns
}

func (w *world) host(node string) *netns.Namespace { return w.Machine(node).Namespace }

// tidy removes what the scenario made, and waits for nothing.
func (w *world) tidy(ctx context.Context) {
	mine := metav1.ListOptions{LabelSelector: w.id}
	_ = w.Client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}, metav1.ListOptions{
		LabelSelector: w.id + ",!shared",
	})
	shared, err := w.Client.CoreV1().Pods(namespace).List(ctx, mine)
	if err != nil {
		return // the cluster ends soon, and the objects with it
	}
	for _, p := range shared.Items {
		patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, w.id)
		_, _ = w.Client.CoreV1().Pods(namespace).Patch(ctx, p.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	}
	for i := range w.made {
		_ = w.Client.CoreV1().Services(namespace).Delete(ctx, fmt.Sprintf("%s-%d", w.id, i+1), metav1.DeleteOptions{})
	}
}

func port(name string, p corev1.Protocol, number, target int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: p, Port: number, TargetPort: intstr.FromInt32(target)}
}

func addrOf(p *corev1.Pod, f netns.Family) netip.Addr {
	for _, ip := range p.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && f.Has(a) {
			return a
		}
	}
	return netip.Addr{}
}

// echoPod answers on 8080 and 9090 of TCP and UDP. A node is given, not chosen by the scheduler, so that
// scenarios do not depend on where others have put theirs.
func echoPod(name, node string, labels ...map[string]string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: map[string]string{}},
		Spec: corev1.PodSpec{
			NodeName:                      node,
			TerminationGracePeriodSeconds: new(int64(1)),
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			Containers: []corev1.Container{{
				Name: "echo", Image: echoImage, ImagePullPolicy: corev1.PullIfNotPresent,
				Env: append(identity(), corev1.EnvVar{Name: "PORTS", Value: "8080/tcp 8080/udp 9090/tcp 9090/udp"}),
			}},
		},
	}
	for _, l := range labels {
		maps.Copy(p.Labels, l)
	}
	return p
}

// identity tells the server who and where it is.
func identity() []corev1.EnvVar {
	field := func(name, path string) corev1.EnvVar {
		return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
	}
	return []corev1.EnvVar{field("POD_NAME", "metadata.name"), field("NODE_NAME", "spec.nodeName")}
}
