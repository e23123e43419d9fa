package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// standIn plays an API server with the Nodes and Services of deploy/samples/site. It is no real
// one, because the node proxy of a real one needs Nodes with addresses that hang, refuse and
// answer, and tests of commands must run without a control plane. integration/grids has `units` on
// a real one.
//
// The daemon of bj-1 is healthy, that of bj-2 says 503, bj-3 hangs, the API server refuses to ask
// gz-1 and cannot reach gz-2; gz-3 is healthy.
type standIn struct {
	rest  http.Handler // Nodes, Services and EndpointSlices
	grids map[string][]map[string]any
	fleet map[string][]map[string]any // with a Grid that is not listed
}

// newStandIn serves a stand-in until the test ends, and returns its address.
func newStandIn(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	api := need.ServeFakeAPI(listener)
	t.Cleanup(func() { _ = api.Close() })
	if err := api.Put(site(t)...); err != nil {
		t.Fatal(err)
	}
	behind, err := url.Parse(api.URL())
	if err != nil {
		t.Fatal(err)
	}
	s := &standIn{rest: httputil.NewSingleHostReverseProxy(behind)}
	for file, objects := range map[string]any{"testdata/grids.yaml": &s.grids, "testdata/fleet.yaml": &s.fleet} {
		text, err := os.ReadFile(file)
		if err == nil {
			err = yaml.UnmarshalStrict(text, objects)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mux := http.NewServeMux()
	mux.Handle("/", s.rest)
	mux.HandleFunc("GET /api/v1/nodes/{node}/proxy/healthz", healthz)
	mux.HandleFunc("GET /annotated/api/v1/namespaces/default/endpoints/kubernetes", getEndpoints)
	mux.HandleFunc("GET /api/v1/namespaces/default/endpoints/kubernetes", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, "NotFound", "not found")
	})
	mux.Handle("/annotated/", http.StripPrefix("/annotated", mux)) // the same cluster after SuperEdge
	mux.HandleFunc("GET /apis/superedge.io/v1", s.listResources)
	mux.HandleFunc("GET /apis/superedge.io/v1/{resource}", list(s.grids))
	mux.HandleFunc("GET /apis/superedge.io/v1/namespaces/{namespace}/{resource}", list(s.grids))
	mux.HandleFunc("GET /apis/superedge.io/v1/namespaces/{namespace}/{resource}/{name}", s.getGrid)
	mux.HandleFunc("GET /apis/superedge.io/v1alpha1/{resource}", list(s.fleet))
	mux.HandleFunc("GET /apis/superedge.io/v1alpha1/namespaces/{namespace}/{resource}", list(s.fleet))
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/{resource}", list(s.fleet))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// site are the objects of deploy/samples/site, and two Services without rules.
func site(t *testing.T) []need.FakeObject {
	t.Helper()
	var all []need.FakeObject
	for _, file := range []string{"nodes.yaml", "services.yaml"} {
		text, err := os.ReadFile("../../deploy/samples/site/" + file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range strings.SplitSeq(string(text), "\n---\n") {
			object, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(document), nil, nil)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			all = append(all, object.(need.FakeObject))
		}
	}
	for _, svc := range []*corev1.Service{ // without rules
		{ObjectMeta: metav1.ObjectMeta{Name: "handed-over", Labels: map[string]string{topology.LabelServiceProxyName: "mesh"}}, Spec: corev1.ServiceSpec{ClusterIP: "10.96.4.4"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "headless"}, Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}},
	} {
		svc.Namespace, svc.Annotations, svc.Spec.Ports = "others", map[string]string{"topologykeys": "location"}, []corev1.ServicePort{{Port: 80}}
		all = append(all, svc)
	}
	return all
}

// healthz is the node proxy.
func healthz(w http.ResponseWriter, r *http.Request) {
	const now = "2026-01-02T12:00:00Z"
	answer := func(code int, updated string, healthy bool) {
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"lastUpdated":%q,"currentTime":%q,"nodeEligible":true,"healthy":%t,"status":{"IPv4":{"lastUpdated":%q,"healthy":%t}}}`, updated, now, healthy, updated, healthy)
	}
	node, port, _ := strings.Cut(r.PathValue("node"), ":")
	switch {
	case port != "10256":
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "error trying to reach service: dial tcp: connection refused")
	case node == "bj-1" || node == "gz-3":
		answer(http.StatusOK, now, true)
	case node == "bj-2":
		answer(http.StatusServiceUnavailable, "2026-01-02T11:57:00Z", false)
	case node == "bj-3":
		<-r.Context().Done()
	case node == "gz-1":
		refuse(w, http.StatusForbidden, "Forbidden", `nodes "gz-1:10256" is forbidden: User "jane" cannot get resource "nodes/proxy"`)
	default:
		refuse(w, http.StatusServiceUnavailable, "ServiceUnavailable", "error trying to reach service: dial tcp 172.16.32.211:10256: connect: no route to host")
	}
}

// refuse answers as an API server does.
func refuse(w http.ResponseWriter, code int, reason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: metav1.StatusReason(reason), Message: message, //nolint:gosec // a status code
	})
}

// getEndpoints answers with those of the API server as SuperEdge annotates them, and with the
// warning of Kubernetes 1.33 and later.
func getEndpoints(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Warning", `299 - "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"`)
	_ = json.NewEncoder(w).Encode(corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{ //nolint:staticcheck // SuperEdge writes it
		Namespace: "default", Name: "kubernetes", Annotations: map[string]string{topology.AnnotationLocalEndpoint: "169.254.20.11", topology.AnnotationLocalPort: "51003"},
	}})
}

// listResources says which kinds of Grids there are.
func (s *standIn) listResources(w http.ResponseWriter, _ *http.Request) {
	var list metav1.APIResourceList
	for name := range s.grids {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	_ = json.NewEncoder(w).Encode(list)
}

// list answers in pages of one object. Namespace locked may not be read.
func list(objects map[string][]map[string]any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		namespace := r.PathValue("namespace")
		if namespace == "locked" {
			refuse(w, http.StatusForbidden, "Forbidden", "you may not list Grids here")
			return
		}
		all := slices.DeleteFunc(slices.Clone(objects[r.PathValue("resource")]), func(g map[string]any) bool {
			return namespace != "" && g["metadata"].(map[string]any)["namespace"] != namespace
		})
		first, _ := strconv.Atoi(r.URL.Query().Get("continue")) // 0 without it
		next := min(first+1, len(all))
		list := map[string]any{"items": all[first:next], "metadata": map[string]any{}}
		if next > first { // typed clients want to know what it is
			list["apiVersion"], list["kind"] = all[first]["apiVersion"], all[first]["kind"].(string)+"List"
		}
		if next < len(all) {
			list["metadata"] = map[string]any{"continue": strconv.Itoa(next)}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}
}

func (s *standIn) getGrid(w http.ResponseWriter, r *http.Request) {
	resource := r.PathValue("resource")
	for _, g := range slices.Concat(s.grids[resource], s.fleet[resource]) {
		if m := g["metadata"].(map[string]any); m["name"] == r.PathValue("name") && m["namespace"] == r.PathValue("namespace") {
			_ = json.NewEncoder(w).Encode(g)
			return
		}
	}
	refuse(w, http.StatusNotFound, "NotFound", "not found")
}
