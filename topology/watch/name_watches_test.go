package watch

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/deploy"
	"gridproxy/integration/env/wait"
	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"
)

// recorder is a transport to an API server that has no objects, and none of the kinds of Grids.
type recorder struct {
	mu    sync.Mutex
	asked []string // path and selectors of lists and watches, each once, sorted
}

func (r *recorder) RoundTrip(request *http.Request) (*http.Response, error) {
	query := request.URL.Query()
	text := strings.TrimSpace(fmt.Sprintf("%s %s %s", request.URL.Path, query.Get("labelSelector"), query.Get("fieldSelector")))
	r.mu.Lock()
	if at, found := slices.BinarySearch(r.asked, text); !found {
		r.asked = slices.Insert(r.asked, at, text)
	}
	r.mu.Unlock()
	if query.Get("watch") != "" {
		<-request.Context().Done()
		return nil, request.Context().Err()
	}
	code, body := http.StatusOK, `{"kind": %q, "apiVersion": %q, "metadata": {"resourceVersion": "1"}, "items": []}`
	switch path := request.URL.Path; {
	case strings.HasPrefix(path, "/apis/superedge.io"):
		code, body = http.StatusNotFound, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`
	case strings.Contains(request.Header.Get("Accept"), "PartialObjectMetadataList"):
		body = fmt.Sprintf(body, "PartialObjectMetadataList", "meta.k8s.io/v1")
	case strings.HasSuffix(path, "/services"):
		body = fmt.Sprintf(body, "ServiceList", "v1")
	case strings.HasSuffix(path, "/nodes"):
		body = fmt.Sprintf(body, "NodeList", "v1")
	default:
		body = fmt.Sprintf(body, "EndpointSliceList", "discovery.k8s.io/v1")
	}
	return &http.Response{
		StatusCode: code, Status: http.StatusText(code), Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(strings.NewReader(body)), Request: request,
	}, nil
}

// TestSelectors: without DNS the API server is asked for what kube-proxy asks it, and with DNS for
// every Service, as with AllServices. A kind of Grids that does not exist holds nothing up.
func TestSelectors(t *testing.T) {
	self := "/api/v1/nodes  metadata.name=n1"
	const slicesOfRules = "/apis/discovery.k8s.io/v1/endpointslices !service.kubernetes.io/headless"
	for _, test := range []struct {
		dns, all bool
		want     []string
	}{
		{false, false, []string{self, "/api/v1/services !service.kubernetes.io/service-proxy-name spec.clusterIP!=None", slicesOfRules}},
		{false, true, []string{self, "/api/v1/services", slicesOfRules}},
		{true, false, []string{"/api/v1/namespaces", self, "/api/v1/services", "/apis/discovery.k8s.io/v1/endpointslices", "/apis/superedge.io/v1/statefulsetgrids"}},
	} {
		dns, want := test.dns, test.want
		api := &recorder{}
		cluster, err := NewCluster(ClusterConfig{Rest: &rest.Config{Host: "http://api", Transport: api}, Node: "n1", DNS: dns, AllServices: test.all})
		must(t, err)
		stop := start(t, cluster.Run)
		wait.Until(t, "a Snapshot", func() error {
			s, whole := cluster.Snapshot()
			return wait.Check(whole && (s.Namespaces != nil) == dns, "whole %t, Namespaces %v", whole, s.Namespaces)
		})
		stop()
		if !slices.Equal(api.asked, want) {
			t.Errorf("DNS %t: asked for\n%s\nwant\n%s", dns, strings.Join(api.asked, "\n"), strings.Join(want, "\n"))
		}
		if cluster.Lost() != (Loss{}) {
			t.Errorf("DNS %t: a missing kind counts as an outage: %v", dns, cluster.Lost())
		}
	}
}

// put creates the metadata of an object.
func (f *fakeCluster) put(kind schema.GroupVersionResource, namespace, name string) {
	f.t.Helper()
	o := &metav1.PartialObjectMetadata{ObjectMeta: f.meta(name)}
	o.Namespace = namespace
	f.must(nil, f.metadata.Tracker().Create(kind, o, namespace))
}

// TestGridsAreDefined: the kind that is followed is one of the definitions that the chart installs.
func TestGridsAreDefined(t *testing.T) {
	crds, err := deploy.CRDs()
	must(t, err)
	r := gridResource()
	definition, err := fs.ReadFile(crds, r.Group+"_"+r.Resource+".yaml")
	if err != nil || !strings.Contains(string(definition), "name: "+r.Version+"\n") {
		t.Errorf("%v is not defined: %v", r, err)
	}
}

// TestClusterWithNames: headless Services, those of other proxies, Namespaces and Grids are
// followed. Grids that were refused are asked for again.
func TestClusterWithNames(t *testing.T) {
	f := startClusterWith(t, ClusterConfig{Node: "n1", DNS: true})
	f.names.pause = time.Millisecond
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	grids := gridResource()
	installed := make(chan struct{})
	f.metadata.PrependReactor("list", grids.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case <-installed:
			return false, nil, nil
		default:
			return true, nil, apierrors.NewNotFound(grids.GroupResource(), "")
		}
	})
	headless := f.service("db", corev1.ClusterIPNone)
	headless.Labels = map[string]string{topology.LabelServiceProxyName: "other"}
	f.must(f.typed.CoreV1().Services("ns").Create(t.Context(), headless, metav1.CreateOptions{}))
	slice := &discoveryv1.EndpointSlice{ObjectMeta: f.meta("db-1"), AddressType: discoveryv1.AddressTypeIPv4}
	slice.Labels = map[string]string{discoveryv1.LabelServiceName: "db", topology.LabelHeadless: ""}
	slice.Endpoints = []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Hostname: new("db-0")}}
	f.must(f.typed.DiscoveryV1().EndpointSlices("ns").Create(t.Context(), slice, metav1.CreateOptions{}))
	f.put(namespaces, "", "ns")
	f.put(grids, "ns", "db")
	f.run()
	s, _ := f.Snapshot()
	if !slices.Equal(s.Namespaces, []string{"ns"}) || len(s.Grids) != 0 {
		t.Errorf("Namespaces %v, Grids %v; want ns and none", s.Namespaces, s.Grids)
	}
	if names := topology.ResolveDNS(s, topology.Config{}).Services; len(names) != 1 || len(names[0].Endpoints) != 1 || names[0].Endpoints[0].Hostname != "db-0" {
		t.Errorf("names %+v, want db-0 of db", names)
	}
	again, _ := f.Snapshot()
	if &again.Namespaces[0] != &s.Namespaces[0] {
		t.Error("without a change there are other lists")
	}
	close(installed)
	f.put(namespaces, "", "more")
	wait.Until(t, "the Grid and the Namespace", func() error {
		s, _ := f.Snapshot()
		named := slices.Equal(s.Grids, []types.NamespacedName{{Namespace: "ns", Name: "db"}})
		return wait.Check(named && len(s.Namespaces) == 2, "Grids %v, Namespaces %v", s.Grids, s.Namespaces)
	})
}

// TestNamespacesRefused: rules do not wait for what only names need. Once it may be read, there are
// names.
func TestNamespacesRefused(t *testing.T) {
	f := startClusterWith(t, ClusterConfig{Node: "n1", DNS: true})
	f.names.pause = time.Millisecond
	namespaces := corev1.SchemeGroupVersion.WithResource("namespaces")
	allowed := make(chan struct{})
	f.metadata.PrependReactor("list", namespaces.Resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		select {
		case <-allowed:
			return false, nil, nil
		default:
			return true, nil, apierrors.NewForbidden(namespaces.GroupResource(), "", nil)
		}
	})
	f.put(namespaces, "", "ns")
	f.run()
	if s, whole := f.Snapshot(); !whole || s.Namespaces != nil || !f.Lost().Since.IsZero() {
		t.Errorf("whole %t, Namespaces %v, lost %+v; want a Snapshot without names", whole, s.Namespaces, f.Lost())
	}
	close(allowed)
	wait.Until(t, "names", func() error {
		s, _ := f.Snapshot()
		return wait.Check(slices.Equal(s.Namespaces, []string{"ns"}), "%v", s.Namespaces)
	})
}
