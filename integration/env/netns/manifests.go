package netns

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"

	"gridproxy/integration/env/need"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// The files of a folder of manifests.
const (
	NodesFile    = "nodes.yaml"
	ServicesFile = "services.yaml"
	SlicesFile   = "endpointslices.yaml"
)

// Manifests are the objects of a cluster and the folder that they are kept in. Change the
// objects, then Write.
type Manifests struct {
	Dir      string
	Nodes    []*corev1.Node
	Services []*corev1.Service
	Slices   []*discoveryv1.EndpointSlice

	written map[string][]byte // by file
}

// NewManifests describes the nodes of a layout; Services are the caller's.
func NewManifests(dir string, layout Layout) *Manifests {
	m := &Manifests{Dir: dir, written: map[string][]byte{}}
	for _, n := range layout.Nodes {
		m.Nodes = append(m.Nodes, nodeObject(n))
	}
	return m
}

func nodeObject(n NodeSpec) *corev1.Node {
	obj := &corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: map[string]string{}},
	}
	for key, value := range n.Labels {
		obj.Labels[key] = value
	}
	for _, p := range n.PodCIDRs {
		obj.Spec.PodCIDRs = append(obj.Spec.PodCIDRs, p.String())
	}
	if len(obj.Spec.PodCIDRs) > 0 {
		obj.Spec.PodCIDR = obj.Spec.PodCIDRs[0]
	}
	for _, a := range n.Addrs {
		obj.Status.Addresses = append(obj.Status.Addresses,
			corev1.NodeAddress{Type: corev1.NodeInternalIP, Address: a.String()})
	}
	return obj
}

// NewService is a Service in namespace default with one port, 80 over TCP to EchoPort, and
// the given cluster IPs.
func NewService(name string, clusterIPs ...netip.Addr) *corev1.Service {
	s := &corev1.Service{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Service"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Annotations: map[string]string{}},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: []corev1.ServicePort{EchoServicePort("", corev1.ProtocolTCP)}},
	}
	for _, ip := range clusterIPs {
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, ip.String())
	}
	if len(s.Spec.ClusterIPs) > 0 {
		s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	}
	return s
}

// EchoServicePort is port 80 of a Service, to the echo servers.
func EchoServicePort(name string, protocol corev1.Protocol) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: protocol, Port: 80, TargetPort: intstr.FromInt32(EchoPort)}
}

// Confine closes a Service within the units of a topology key; no key opens it again.
func Confine(s *corev1.Service, keys string) {
	if keys == "" {
		delete(s.Annotations, "topologyKeys")
		return
	}
	s.Annotations["topologyKeys"] = keys
}

// Node returns a node by name, or nil.
func (m *Manifests) Node(name string) *corev1.Node {
	return find(m.Nodes, func(n *corev1.Node) bool { return n.Name == name })
}

// Serve makes Pods the ready endpoints of a Service and adds the Service if it is new.
func (m *Manifests) Serve(s *corev1.Service, pods ...*Pod) {
	if !slices.Contains(m.Services, s) {
		m.Services = append(m.Services, s)
	}
	m.Slices = slices.DeleteFunc(m.Slices, func(e *discoveryv1.EndpointSlice) bool {
		return e.Namespace == s.Namespace && e.Labels[discoveryv1.LabelServiceName] == s.Name
	})
	for _, f := range Families() {
		m.Slices = append(m.Slices, sliceOf(s, f, pods))
	}
}

func sliceOf(s *corev1.Service, f Family, pods []*Pod) *discoveryv1.EndpointSlice {
	e := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: s.Namespace,
			Name:      fmt.Sprintf("%s-%c", s.Name, f[len(f)-1]),
			Labels:    map[string]string{discoveryv1.LabelServiceName: s.Name},
		},
		AddressType: discoveryv1.AddressType(f),
	}
	for _, p := range s.Spec.Ports {
		target := p.TargetPort.IntVal
		e.Ports = append(e.Ports, discoveryv1.EndpointPort{Name: &p.Name, Protocol: &p.Protocol, Port: &target})
	}
	for _, p := range pods {
		e.Endpoints = append(e.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{p.Addr(f).String()},
			NodeName:   new(p.Spec.Node),
			Conditions: discoveryv1.EndpointConditions{Ready: new(true), Serving: new(true), Terminating: new(false)},
			TargetRef:  &corev1.ObjectReference{Kind: "Pod", Namespace: s.Namespace, Name: p.Name},
		})
	}
	return e
}

// Write brings the folder up to date. A file whose text did not change is left alone; any
// other is replaced as a whole, so that no reader sees half of it.
func (m *Manifests) Write() error {
	return errors.Join(
		writeFile(m, NodesFile, m.Nodes),
		writeFile(m, ServicesFile, m.Services),
		writeFile(m, SlicesFile, m.Slices),
	)
}

func writeFile[T any](m *Manifests, name string, objects []T) error {
	var text bytes.Buffer
	for _, o := range objects {
		doc, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("printing %s: %w", name, err)
		}
		text.WriteString("---\n")
		text.Write(doc)
	}
	if last, ok := m.written[name]; ok && bytes.Equal(last, text.Bytes()) {
		return nil
	}
	if err := need.Replace(filepath.Join(m.Dir, name), text.Bytes()); err != nil {
		return err
	}
	m.written[name] = text.Bytes()
	return nil
}
