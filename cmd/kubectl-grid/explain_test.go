package main

import (
	"bytes"
	"net"
	"strings"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/need"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestExplainConflict: an address that another Service has is a note, as in gridproxy explain.
func TestExplainConflict(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	api := need.ServeFakeAPI(listener)
	t.Cleanup(func() { _ = api.Close() })
	service := func(name, address string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.ServiceSpec{
			ClusterIP: address, ClusterIPs: []string{address}, ExternalIPs: []string{"203.0.113.7"}, Ports: []corev1.ServicePort{{Port: 80, Protocol: corev1.ProtocolTCP}},
		}}
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-1"}}
	if err := api.Put(node, service("api", "172.16.0.1"), service("web", "172.16.0.2")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"api": false, "web": true} {
		var out, problems bytes.Buffer
		code := command.Run(t.Context(), newRoot, []string{"explain", name, "--node", "bj-1", "--server", api.URL()}, command.Stdio{Out: &out, Err: &problems})
		if code != 0 || strings.Contains(out.String(), "externalIPs 203.0.113.7:80/TCP has no effect: Service default/api has the address too") != want {
			t.Errorf("%s: code %d\n%s%s", name, code, out.String(), problems.String())
		}
	}
}
