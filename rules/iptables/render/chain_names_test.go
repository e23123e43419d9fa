package render

import (
	"net/netip"
	"strings"
	"testing"

	"gridproxy/rules"
	"gridproxy/rules/netfilter"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// portName reads "namespace/name:port".
func portName(printed string, p corev1.Protocol) topology.ServicePortName {
	name, port, _ := strings.Cut(printed, ":")
	namespace, name, _ := strings.Cut(name, "/")
	return topology.ServicePortName{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}, Port: port, Protocol: p}
}

// TestChainNames has names from kube-proxy's own tests and from nodes.
func TestChainNames(t *testing.T) {
	for _, tc := range []struct {
		name     string
		protocol corev1.Protocol
		hash     string
		endpoint string
		sepHash  string
	}{
		{"ns1/svc1:p80", "TCP", "XPGD46QRK7WJZT7O", "10.180.0.1:80", "SXIVWICOYRO3J4NJ"},
		{"ns2/svc2:p80", "TCP", "GNZBNJ2PO5MGZ6GT", "10.180.0.2:80", "RS4RBKLTHTF2IUXJ"},
		{"ns5/svc5:p80", "TCP", "NUKIZ6OKUXPJNT4C", "10.180.0.3:80", "I77PXRDZVX7PMWMN"},
		{"default/kubernetes:https", "TCP", "NPX46M4PTMTKRN6Y", "192.168.0.10:6443", "JXR3GL4M4Y5HVZ4I"},
		{"kube-system/kube-dns:dns", "UDP", "TCOU7JCQXEZGVUNU", "10.244.0.2:53", "YIL6JZP7A3QYXJU2"},
		{"kube-system/kube-dns:dns-tcp", "TCP", "ERIFXISQEP7F7OF4", "10.244.0.2:53", "IT2ZTR26TO4XFPTO"},
		{"ns1/svc1", "TCP", "AQI2S6QIMU7PVVRP", "10.0.1.1:80", "3JOIVZTXZZRGORX4"},
		{"ns1/svc1:p80", "TCP", "XPGD46QRK7WJZT7O", "[fd00:10:180::1]:80", "OGYCNMB4EMRUSJ6N"},
		{"ns1/svc1:s", "SCTP", "3WY6QFO4EPTITPCD", "10.0.1.1:80", "NUXTAQ2GU5BD22JF"},
		{"default/servicegrid-demo-svc", "TCP", "COY5MDFFORWDI6KK", "10.0.0.136:8080", "MTZ5YHGRPGE3TYBV"},
		{"default/servicegrid-demo-svc", "TCP", "COY5MDFFORWDI6KK", "10.0.0.138:8080", "MHPE3S6IJMLN64TE"},
		{"default/servicegrid-demo-svc", "TCP", "COY5MDFFORWDI6KK", "10.0.1.7:8080", "U4LYQ66EBD4PV4N3"},
		{"default/servicegrid-demo-svc", "TCP", "COY5MDFFORWDI6KK", "10.0.1.72:8080", "J3P7B7IQI2SOHTXI"},
		{"default/servicegrid-demo-svc", "TCP", "COY5MDFFORWDI6KK", "10.0.0.70:8080", "RGX5HKSX4VMSG6MC"},
	} {
		name := portName(tc.name, tc.protocol)
		for got, want := range map[string]string{
			TrafficPolicyChain(netfilter.KubeNames, name, rules.Cluster):                   "KUBE-SVC-" + tc.hash,
			TrafficPolicyChain(netfilter.KubeNames, name, rules.Local):                     "KUBE-SVL-" + tc.hash,
			externalChain(netfilter.KubeNames, name):                                       "KUBE-EXT-" + tc.hash,
			firewallChain(netfilter.KubeNames, name):                                       "KUBE-FW-" + tc.hash,
			EndpointChain(netfilter.KubeNames, name, netip.MustParseAddrPort(tc.endpoint)): "KUBE-SEP-" + tc.sepHash,
		} {
			if got != want {
				t.Errorf("%s %s %s: chain %s, want %s", tc.name, tc.protocol, tc.endpoint, got, want)
			}
		}
	}
}

// TestSeedChainNames has the names on the nodes of SuperEdge's manual. Their older kube-proxy
// printed a colon after the name of a Service with an unnamed port.
func TestSeedChainNames(t *testing.T) {
	name := portName("default/servicegrid-demo-svc", "TCP")
	for endpoint, want := range map[string]string{
		"":                "MLDT4NC26VJPGLP7",
		"10.0.0.136:8080": "Z2EAS2K37V5WRDQC",
		"10.0.0.138:8080": "PREBTG6M6AFB3QA4",
		"10.0.1.7:8080":   "URDEBXDF3DV5ITUX",
		"10.0.1.72:8080":  "U5ZEIIBVDDGER3DI",
		"10.0.0.70:8080":  "VB3QR2E2PUKDLHCW",
	} {
		older := name
		older.Name += ":"
		if got := serviceHash(older, endpoint); got != want {
			t.Errorf("with the colon, endpoint %q: %s, want %s", endpoint, got, want)
		}
		if got := serviceHash(name, endpoint); got == want {
			t.Errorf("without the colon, endpoint %q: %s too", endpoint, got)
		}
	}
}
