package services

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// echoImage is package machines' own: a server on several ports.
const echoImage = "superedge/echoserver:2.2"

// hostPort is where a server on a machine's own network listens.
const hostPort = 10180

func hostPod(node string) string   { return "host-" + node }
func clientPod(node string) string { return "client-" + node }

func tcp80() corev1.ServicePort { return port("http", corev1.ProtocolTCP, 80, 8080) }
func udp80() corev1.ServicePort { return port("datagrams", corev1.ProtocolUDP, 80, 8080) }

func portOf(network string) corev1.ServicePort {
	if network == "udp" {
		return udp80()
	}
	return tcp80()
}

func ports(all ...corev1.ServicePort) func(*corev1.Service) {
	return func(s *corev1.Service) { s.Spec.Ports = slices.Clone(all) }
}

func nodePort(s *corev1.Service) { s.Spec.Type = corev1.ServiceTypeNodePort }

func setEnv(p *corev1.Pod, name, value string) {
	c := &p.Spec.Containers[0]
	c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(e corev1.EnvVar) bool { return e.Name == name })
	c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: value})
}

// probe makes a Pod ready only when its server says so.
func probe(p *corev1.Pod) {
	p.Spec.Containers[0].ReadinessProbe = &corev1.Probe{
		PeriodSeconds: 1, FailureThreshold: 1,
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(8080)}},
	}
}
