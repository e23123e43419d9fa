package main

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/need"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestAnalyzeGridsOfACluster: Grids of a cluster have findings, and so have Services without rules.
// Without the definitions of Grids, or without the right to list them, the rest has.
func TestAnalyzeGridsOfACluster(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	api := need.ServeFakeAPI(listener)
	t.Cleanup(func() { _ = api.Close() })
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "bj-1", Labels: map[string]string{"location": "beijing"}}}
	typo := clusterIP("web", "172.16.33.232", 80)
	typo.Annotations = map[string]string{"topologyKeys": `["locaton"]`}
	headless := clusterIP("headless", corev1.ClusterIPNone, 80)
	headless.Annotations = map[string]string{"topologyKeys": "location"}
	put(t, api, node, typo, headless)
	address, err := url.Parse(api.URL())
	if err != nil {
		t.Fatal(err)
	}
	const definitions, grids = "/apis/superedge.io/v1", "/apis/superedge.io/v1/servicegrids"
	const defined = `{"kind": "APIResourceList", "resources": [{"name": "servicegrids"}]}`
	const forbidden = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403, "reason": "Forbidden", "message": "no"}`
	for name, test := range map[string]struct {
		answers map[string]string // by path
		out     string            // how the last line ends
		problem string
	}{
		"no definitions": {nil, "2 errors, 0 warnings, 0 notes (2 Services, 1 Node)\n", ""},
		"a Grid": {map[string]string{definitions: defined, grids: `{"items": [{"metadata": {"namespace": "shop", "name": "web"}, "spec": {"gridUniqKey": "locaton", "template": {}}}]}`},
			"3 errors, 0 warnings, 0 notes (2 Services, 1 Node, 1 Grid)\n", ""},
		"no right": {map[string]string{definitions: defined, grids: forbidden}, "2 errors, 0 warnings, 0 notes (2 Services, 1 Node)\n", "warning: ServiceGrids are not looked at: "},
	} {
		t.Run(name, func(t *testing.T) {
			mux := http.NewServeMux()
			proxy := httputil.NewSingleHostReverseProxy(address)
			proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) {} // a watch that the command has ended
			mux.Handle("/", proxy)
			mux.HandleFunc("GET /apis/superedge.io/", http.NotFound)
			for path, text := range test.answers {
				mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set("Content-Type", "application/json")
					if text == forbidden {
						w.WriteHeader(http.StatusForbidden)
					}
					fmt.Fprint(w, text)
				})
			}
			server := httptest.NewServer(mux)
			t.Cleanup(server.Close)
			kubeconfig := kubeconfigOf(t, server.Listener.Addr().String())
			var out, problems bytes.Buffer
			code := command.Run(t.Context(), newRoot, []string{"analyze", "--kubeconfig", kubeconfig}, command.Stdio{Out: &out, Err: &problems})
			if code != 1 || !strings.HasSuffix(out.String(), "\n"+test.out) || (problems.Len() == 0) != (test.problem == "") || !strings.HasPrefix(problems.String(), test.problem) {
				t.Errorf("code %d\n%s%s", code, out.String(), problems.String())
			}
		})
	}
}
