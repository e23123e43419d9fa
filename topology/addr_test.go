package topology

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	netutils "k8s.io/utils/net"
)

// addressTexts are spellings that older API servers stored, and texts that none ever took.
var addressTexts = []string{
	"10.0.0.1", "172.30.0.041", "127.010.020.030", "0010.0.00.00001", "1.2.3.4.5", "1.2.3", "1..2.3", "-0.0.0.0", "0.0.0.-3",
	"256.0.0.1", "0256.0.0.1", "1.2.3.4 ", " 1.2.3.4", "0x10.0.0.1", "99999999999.1.1.1", "", ".", ":", "::", "::1", "fd00::1",
	"FD00::00001", "0:0:0:0:000000:ffff:127.1.2.3", "::ffff:10.0.0.1", "::ffff:010.000.0.01", "::ffff:0a00:0001", "::10.0.0.01",
	"fe80::1%eth0", "10.0.0.1%eth0", "1:2:3:4:5:6:7:8:9", "1::2::3", "a1:a2:a3:a4::b1:b2:b3:b4", "12345::", "abc",
}

// TestParseAddrLikeKubeProxy: an address is read if and only if kube-proxy reads it, and as the
// same.
func TestParseAddrLikeKubeProxy(t *testing.T) {
	for _, text := range addressTexts {
		want := "error"
		if ip := netutils.ParseIPSloppy(text); ip != nil {
			want = ip.String()
		}
		got := "error"
		if addr, err := ParseAddr(text); err == nil {
			got = addr.String()
		}
		if got != want {
			t.Errorf("ParseAddr(%q): got %s, want kube-proxy's %s", text, got, want)
		}
	}
}

// TestParsePrefixLikeKubeProxy: a CIDR is read if and only if kube-proxy reads it, and as the same.
func TestParsePrefixLikeKubeProxy(t *testing.T) {
	lengths := []string{"", "0", "00", "8", "08", "025", "24", "32", "33", "64", "90", "096", "104", "0120", "128", "129", "-1", "-0", "+8", "8 ", "255.0.0.0", "99999999"}
	for _, address := range addressTexts {
		for _, length := range lengths {
			text := address + "/" + length
			want := "error"
			// kube-proxy trims in front of its parser, and ParsePrefix does so itself.
			if _, network, err := netutils.ParseCIDRSloppy(strings.TrimSpace(text)); err == nil {
				want = network.String()
			}
			got := "error"
			if p, err := ParsePrefix(text); err == nil {
				got = p.String()
			}
			if got != want {
				t.Errorf("ParsePrefix(%q): got %s, want kube-proxy's %s", text, got, want)
			}
		}
	}
}

// TestUnusableEndpoints: no Service, closed or not, leads to an endpoint in a loopback, link-local,
// multicast or unspecified range, and the reason is known.
func TestUnusableEndpoints(t *testing.T) {
	c := cluster{node: "a", nodes: "a zone=x", endpoints: []string{
		"10.0.0.1@a", "127.0.0.1@a", "127.8.0.1@a draining", "::ffff:127.0.0.1@a", "169.254.20.11@a", "224.0.0.251@a", "239.1.1.1@a",
		"0.0.0.0@a", "0.1.2.3@a", "255.255.255.255@a",
	}}
	c6 := c
	c6.endpoints = []string{"fd00::1@a", "::1@a", "fe80::1@a", "ff02::1@a", "ff0e::1@a", "::@a"}
	for _, keys := range []string{"-", `["zone"]`} {
		for wantUsed, test := range map[string]struct {
			cluster cluster
			family  discoveryv1.AddressType
			want    []Reason
		}{
			"10.0.0.1": {c, discoveryv1.AddressTypeIPv4, []Reason{ReasonUnspecified, ReasonUnspecified, ReasonLoopback, ReasonLoopback, ReasonLoopback,
				ReasonLinkLocal, ReasonLinkLocal, ReasonMulticast, ReasonMulticast}},
			"fd00::1": {c6, discoveryv1.AddressTypeIPv6, []Reason{ReasonUnspecified, ReasonLoopback, ReasonLinkLocal, ReasonLinkLocal, ReasonMulticast}},
		} {
			test.cluster.keys = keys
			s := test.cluster.snapshot()
			slice := sliceOf("svc", "any-name", test.cluster.endpoints...)
			slice.AddressType = test.family
			s.Slices = readSlices(slice)
			view := Resolve(s, Config{})
			sp := view.Ports[0]
			if got := addressesOf(sp.Cluster); got != wantUsed {
				t.Errorf("keys %s: used %s, want %s", keys, got, wantUsed)
			}
			if got := addressesOf(sp.Local); got != wantUsed || len(sp.Serving) != 1 {
				t.Errorf("keys %s: local %s, serving %v, want %s", keys, got, sp.Serving, wantUsed)
			}
			var got []Reason
			for _, d := range sp.Ignored {
				got = append(got, d.Reason)
			}
			if !slices.Equal(got, test.want) || len(view.Drops(sp)) > 0 {
				t.Errorf("keys %s: ignored %q, want %q; closure dropped %v", keys, got, test.want, view.Drops(sp))
			}
		}
	}
}

// TestLocalEndpointMayBeLoopback: the node-local API proxy is where its annotation says, and no
// other endpoint of default/kubernetes is at such an address.
func TestLocalEndpointMayBeLoopback(t *testing.T) {
	s := cluster{node: "a", nodes: "a zone=x", keys: "-"}.snapshot()
	s.Services[0].Name, s.Services[0].Spec.Ports[0].Name = "kubernetes", "https"
	proxied := sliceOf("kubernetes", "proxied", "192.168.0.1", "127.0.0.9")
	proxied.Annotations = map[string]string{AnnotationLocalEndpoint: "127.0.0.1", AnnotationLocalPort: "51003"}
	masters := sliceOf("kubernetes", "masters", "192.168.0.2", "127.0.0.9")
	for _, slice := range []*discoveryv1.EndpointSlice{masters, proxied} {
		slice.Ports[0].Name, slice.Ports[0].Protocol = new("https"), new(corev1.ProtocolTCP)
	}
	s.Slices = readSlices(masters, proxied)
	s.Services[0].Spec.Ports[0].Protocol = corev1.ProtocolTCP
	sp := Resolve(s, Config{}).Ports[0]
	if got := addressesOf(sp.Cluster); got != "127.0.0.1 192.168.0.2" {
		t.Errorf("used %s, want the local proxy and the other slice's master", got)
	}
	if got := fmt.Sprint(sp.Ignored); !strings.Contains(got, "127.0.0.9:8080") || len(sp.Ignored) != 1 {
		t.Errorf("ignored %s, want 127.0.0.9 only", got)
	}
}

// TestWarnings: what is ignored of a Service is named, with the reason.
func TestWarnings(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*corev1.Service, *discoveryv1.EndpointSlice)
		want   []string
	}{
		{"nothing is wrong", func(svc *corev1.Service, _ *discoveryv1.EndpointSlice) {
			svc.Annotations = map[string]string{AnnotationKeys: `["zone"]`}
			svc.Spec.ExternalIPs, svc.Spec.LoadBalancerSourceRanges = []string{"192.0.2.001"}, []string{"203.0.113.0/025"}
		}, nil},
		{"a key twice", func(svc *corev1.Service, _ *discoveryv1.EndpointSlice) {
			svc.Annotations = map[string]string{AnnotationKeys: `["site","site"]`}
		}, []string{`annotation topologyKeys names "site" more than once; it counts once`}},
		{"malformed keys are reported elsewhere", func(svc *corev1.Service, _ *discoveryv1.EndpointSlice) {
			svc.Annotations = map[string]string{AnnotationKeys: `["site","site",""]`}
		}, nil},
		{"ports", func(svc *corev1.Service, slice *discoveryv1.EndpointSlice) {
			svc.Spec.Ports = []corev1.ServicePort{{Name: "a", Port: 65616}, {Name: "b", Port: 80, NodePort: -1}}
			svc.Spec.HealthCheckNodePort = 70000
			slice.Ports[0].Port = new(int32(0))
		}, []string{
			`port "a": 65616 is not a port from 1 to 65535; the port is ignored`,
			`port "b": nodePort -1 is not a port from 1 to 65535; it is ignored`,
			`healthCheckNodePort 70000 is not a port from 1 to 65535; it is ignored`,
			`ports of EndpointSlice s: 0 is not a port from 1 to 65535; it is ignored`,
		}},
		{"addresses", func(svc *corev1.Service, slice *discoveryv1.EndpointSlice) {
			svc.Spec.ExternalIPs = []string{"192.0.2.1", "127.0.0.1", "x"}
			svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb"}, {IP: "fe80::1%eth0"}}
			slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"fd00::1"}}, {Addresses: []string{"10.0.0.0.1"}}}
		}, []string{
			"externalIPs 127.0.0.1 is a loopback address; it and 1 more are ignored",
			`status.loadBalancer "fe80::1%eth0" has a zone; it is ignored`,
			"addresses of EndpointSlice s: fd00::1 is not of the slice's addressType IPv4; it and 1 more are ignored",
		}},
		{"no source range can be read", func(svc *corev1.Service, _ *discoveryv1.EndpointSlice) {
			svc.Spec.LoadBalancerSourceRanges = []string{"office", strings.Repeat("9", 300)}
		}, []string{`loadBalancerSourceRanges "office" is not a CIDR such as 10.0.0.0/8; it and 1 more are ignored, so the load balancer drops all clients`}},
		{"none of one family", func(svc *corev1.Service, _ *discoveryv1.EndpointSlice) {
			svc.Spec.LoadBalancerSourceRanges = []string{"10.0.0.0/8", "office"}
		}, []string{`loadBalancerSourceRanges "office" is not a CIDR such as 10.0.0.0/8; it is ignored, so an IPv6 load balancer drops all clients`}},
	} {
		svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "svc"}}
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "10.96.0.1", []string{"10.96.0.1"}
		svc.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		slice := sliceOf("svc", "s", "10.0.0.1")
		test.change(svc, slice)
		view := Resolve(Snapshot{Services: []*corev1.Service{svc}, Slices: readSlices(slice)}, Config{})
		for _, sp := range view.Ports {
			if diff := cmp.Diff(test.want, sp.Warnings); diff != "" {
				t.Errorf("%s (-want +got):\n%s", test.name, diff)
			}
		}
	}
}
