package grids

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// endlessRatio is how much more memory the hub may take for a member that answers without end than
	// for one whose list has just the size that is allowed.
	endlessRatio = 1.3
	// largestList is a little below that size.
	largestList = 60 << 20
	// changesMeanwhile is how many changes reach another cluster meanwhile.
	changesMeanwhile = 20
)

// TestDistributionEndless: a member whose API server answers without end is Unreachable, and costs
// the hub no more memory than a large list does. Changes go on to another cluster.
func TestDistributionEndless(t *testing.T) {
	l := newLarge(t)
	l.Kill()
	l.members.join(0, 1)
	m := newEndlessMember(l)
	for _, path := range []string{"", "/apis/superedge.io/v1/statefulsetgrids", "/apis/superedge.io/v1/servicegrids?watch", "/apis"} {
		name := path
		if path == "" {
			name = "a list of the size that is allowed"
		}
		l.run(name, func(*fleet) { l.endless(m, path) })
	}
}

// endless runs a controller while the member answers one path without end.
func (l *large) endless(m *endlessMember, path string) {
	m.path.Store(&path)
	l.counted = l.start("hub", "--federation=hub", "--artifact-bind-address="+l.artifacts)
	defer l.Kill()
	said := "Heard: "
	if path != "" {
		said = fmt.Sprintf("TooLarge: the cluster sends more than grid-controller keeps of one: it answers GET %s", strings.TrimSuffix(path, "?watch"))
	}
	l.eventually("the hub says what the member does", func() error {
		c := &v1alpha1.FleetCluster{}
		if err := l.client.Get(l.t.Context(), client.ObjectKey{Name: "endless"}, c); err != nil {
			return err
		}
		reachable := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReachable)
		return wait.Check(reachable != nil && strings.HasPrefix(reachable.Reason+": "+reachable.Message, said), "its conditions are %+v, want %q", c.Status.Conditions, said)
	})
	other := l.members.clusters()[0]
	for i := range changesMeanwhile {
		grid := l.grids[i%len(l.grids)]
		before := l.revision(other, grid)
		l.MustKubectl(l.t, "patch", "deploymentgrid", grid, "--type=merge", fmt.Sprintf(`--patch={"spec":{"template":{"replicas":%d}}}`, m.next()))
		l.eventually("the change is sent to another cluster", func() error {
			return wait.Check(l.revision(other, grid) != before, "%s is not sent", grid)
		})
	}
	peak := 0.0
	text := memory(l.PID(), "VmHWM")
	if _, err := fmt.Sscanf(text, "VmHWM %f kB", &peak); err != nil {
		l.t.Fatalf("%s: %v", text, err)
	}
	if path == "" {
		m.allowed = peak
	}
	l.t.Logf("peak memory %.0f MiB, %.2f of that with a list of the size that is allowed", peak/1024, peak/m.allowed)
	if peak > endlessRatio*m.allowed {
		l.t.Errorf("the ratio is %.2f, want at most %.1f", peak/m.allowed, endlessRatio)
	}
}

// revision is what a cluster is to have of a Grid.
func (l *large) revision(cluster, grid string) string {
	sent, err := l.sent(cluster)
	if err != nil {
		return ""
	}
	for _, g := range sent {
		if g.Name == grid {
			return g.Revision
		}
	}
	return ""
}

// endlessMember is a member that the hub reaches: the hub's own API server, except for one path.
type endlessMember struct {
	proxy    *httputil.ReverseProxy
	path     atomic.Pointer[string] // that is answered without end; with ?watch: as a watch; "": none
	replicas int
	allowed  float64 // KiB: the peak of the hub's memory with a list of the size that is allowed
}

// newEndlessMember has it join.
func newEndlessMember(l *large) *endlessMember {
	l.t.Helper()
	transport, err := rest.TransportFor(l.Admin())
	must(l.t, err)
	api, err := url.Parse(l.Admin().Host)
	must(l.t, err)
	m := &endlessMember{replicas: 2, proxy: httputil.NewSingleHostReverseProxy(api)}
	m.proxy.Transport, m.proxy.FlushInterval = transport, -1
	none := "none"
	m.path.Store(&none)
	server := httptest.NewUnstartedServer(m)
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	server.StartTLS()
	l.t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	config := &rest.Config{Host: server.URL, BearerToken: "any"}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	member := apiserver.KubeconfigForTest(l.t, config)
	join := exec.CommandContext(l.t.Context(), program.ForTest(l.t, program.GridController), "join", "--cluster=endless", "--kubeconfig="+l.Kubeconfig(), "--member-kubeconfig="+member)
	if out, err := join.CombinedOutput(); err != nil {
		l.t.Fatalf("grid-controller join: %v: %s", err, out)
	}
	return m
}

func (m *endlessMember) next() int {
	m.replicas++
	return m.replicas
}

// ServeHTTP answers a request. A list of StatefulSetGrids has the size that is allowed, or no end.
func (m *endlessMember) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, watches := strings.CutSuffix(*m.path.Load(), "?watch")
	isWatch := r.URL.Query().Has("watch")
	isLargest := path == "" && r.URL.Path == "/apis/superedge.io/v1/statefulsetgrids"
	switch {
	case r.URL.Path == "/api/v1/namespaces/kube-system": // it is another cluster
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": "of-another-cluster"}}`)
	case !isLargest && r.URL.Path != path:
		m.proxy.ServeHTTP(w, r)
	case watches && isWatch:
		m.pour(w, "", `{"type": "ADDED", "object": {"kind": "ServiceGrid", %s}}`+"\n", "", -1)
	case isWatch && r.URL.Query().Has("sendInitialEvents"): // it is to be listed
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = io.WriteString(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`)
	case isWatch:
		<-r.Context().Done()
	case isLargest:
		m.pour(w, `{"kind": "StatefulSetGridList", "apiVersion": "superedge.io/v1", "metadata": {"resourceVersion": "1"}, "items": [`, `{"kind": "StatefulSetGrid", %s},`, `{"kind": "StatefulSetGrid", "apiVersion": "superedge.io/v1", "metadata": {"name": "last", "namespace": "default", "resourceVersion": "1"}}]}`, largestList)
	default:
		m.pour(w, `{"kind": "StatefulSetGridList", "apiVersion": "superedge.io/v1", "metadata": {"resourceVersion": "1"}, "items": [`, `{"kind": "StatefulSetGrid", %s},`, "", -1)
	}
}

// pour writes Grids until there are so many bytes; -1: until the connection ends.
func (m *endlessMember) pour(w http.ResponseWriter, head, format, tail string, size int) {
	w.Header().Set("Content-Type", "application/json")
	n, err := io.WriteString(w, head)
	padding := strings.Repeat("x", 800)
	for i := 0; err == nil && (size < 0 || n < size); i++ {
		one := fmt.Sprintf(`"apiVersion": "superedge.io/v1", "metadata": {"name": "g-%d", "namespace": "default", "uid": "uid-%d", "resourceVersion": "1", "annotations": {"x": %q}}`, i, i, padding)
		var written int
		written, err = fmt.Fprintf(w, format, one)
		n += written
	}
	if err == nil {
		_, _ = io.WriteString(w, tail)
	}
}
