package main

import (
	"net"
	"testing"

	"gridproxy/integration/env/need"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestCompletionFromTheCluster: names come from the API server on the command line; one that does
// not answer has none.
func TestCompletionFromTheCluster(t *testing.T) {
	t.Parallel()
	listen := func() net.Listener {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	api := need.ServeFakeAPI(listen())
	t.Cleanup(func() { _ = api.Close() })
	put(t, api,
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.1"}},
		&corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "$(id)", Namespace: "shop"}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.0.2"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-1"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-2\x1b[31m"}},
	)
	silent := listen() // takes connections, and never answers
	t.Cleanup(func() { _ = silent.Close() })
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", "--master", api.URL(), ""}, "shop/web\n:4\n"},
		{[]string{"matrix", "--master", api.URL(), "-n", "shop", ""}, "web\n:4\n"},
		{[]string{"render", "--master", api.URL(), "--node-name", ""}, "bj-1\n:4\n"},
		{[]string{"explain", "--master", "http://" + silent.Addr().String(), ""}, ":4\n"},
	} {
		if out, err := gridproxy(append([]string{"__complete"}, test.args...)...).Output(); err != nil || string(out) != test.want {
			t.Errorf("%q: %q, error %v; want %q", test.args, out, err, test.want)
		}
	}
}
