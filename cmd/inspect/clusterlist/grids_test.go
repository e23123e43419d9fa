package clusterlist

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// apiServer plays an API server with Grids, by resource. It is no real one, because this package
// must be tested without a control plane. It answers in pages of one Grid, and denies resources
// whose value is nil.
type apiServer map[string][]string

// answer writes an object, or the status of a refusal.
func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	answer(w, code, metav1.Status{Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "refused"}) //nolint:gosec // a status code
}

func (a apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, found := strings.CutPrefix(r.URL.Path, "/apis/superedge.io/v1")
	if !found || len(a) == 0 {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound)
		return
	}
	if path == "" {
		var list metav1.APIResourceList
		for name := range a {
			list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
		}
		answer(w, http.StatusOK, list)
		return
	}
	namespace := ""
	if rest, found := strings.CutPrefix(path, "/namespaces/"); found {
		namespace, path, _ = strings.Cut(rest, "/")
	}
	all := a[strings.TrimPrefix(path, "/")]
	if all == nil {
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		return
	}
	at := len(r.URL.Query().Get("continue"))
	var items []any
	next := ""
	if at < len(all) {
		in, name, _ := strings.Cut(all[at], "/")
		if namespace == "" || namespace == in {
			items = append(items, map[string]any{"metadata": map[string]string{"namespace": in, "name": name}})
		}
		next = strings.Repeat("x", at+1)
	}
	answer(w, http.StatusOK, map[string]any{"metadata": map[string]string{"continue": next}, "items": items})
}

func gridServer(t *testing.T, handler http.Handler) GridServer {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return GridServer{client.CoreV1().RESTClient(), server.URL}
}

// TestGrids: a cluster need not have the definitions of Grids, nor a user the right to list them.
func TestGrids(t *testing.T) {
	const deniedServices = "ServiceGrids are not looked at: API server "
	for name, test := range map[string]struct {
		server    apiServer
		namespace string
		want      []string
		denied    string // how the line begins
	}{
		"no definitions": {nil, "", nil, ""},
		"all":            {apiServer{"deploymentgrids": {"a/x", "b/y"}, "statefulsetgrids": {}, "servicegrids": {"a/z"}}, "", []string{"DeploymentGrid a/x", "DeploymentGrid b/y", "ServiceGrid a/z"}, ""},
		"a namespace":    {apiServer{"deploymentgrids": {"a/x", "b/y"}, "servicegrids": {"a/z"}}, "b", []string{"DeploymentGrid b/y"}, ""},
		"one kind":       {apiServer{"statefulsetgrids": {"a/x"}}, "", []string{"StatefulSetGrid a/x"}, ""},
		"no right":       {apiServer{"statefulsetgrids": {"a/x"}, "servicegrids": nil}, "", []string{"StatefulSetGrid a/x"}, deniedServices},
		"no rights":      {apiServer{"statefulsetgrids": nil, "servicegrids": nil}, "a", nil, "StatefulSetGrids, " + deniedServices},
	} {
		t.Run(name, func(t *testing.T) {
			all, denied, err := gridServer(t, test.server).Grids(t.Context(), test.namespace)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, g := range all {
				got = append(got, string(g.Kind)+" "+g.Namespace+"/"+g.Name)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("Grids (-want +got):\n%s", diff)
			}
			if (denied == "") != (test.denied == "") || !strings.HasPrefix(denied, test.denied) {
				t.Errorf("denied: %s", denied)
			}
		})
	}
}

// TestGridsFail: what is wrong with the connection is an error, not a missing right.
func TestGridsFail(t *testing.T) {
	for path, handler := range map[string]http.Handler{
		"the definitions": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		}),
		"a list": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/v1") {
				apiServer{"servicegrids": {}}.ServeHTTP(w, r)
				return
			}
			refuse(w, http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		}),
	} {
		if all, denied, err := gridServer(t, handler).Grids(t.Context(), ""); err == nil || all != nil || denied != "" {
			t.Errorf("%s: %v, %q, %v", path, all, denied, err)
		}
	}
}
