package daemon

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/apiserver"
	"gridproxy/cmd/gridproxy/options"
	"gridproxy/integration/env/wait"
	"gridproxy/topology"

	"k8s.io/client-go/rest"
)

// answering is an API server that answers every request with one status.
type answering struct {
	*httptest.Server
	connections atomic.Int32
	asked       chan string // METHOD PATH, of the first requests
}

func startAnswering(t *testing.T, status int) *answering {
	t.Helper()
	a := &answering{asked: make(chan string, 16)}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case a.asked <- r.Method + " " + r.URL.Path:
		default: // what matters has been seen
		}
		http.Error(w, "not here", status)
	}))
	a.EnableHTTP2 = true
	a.Config.ErrorLog = stdlog.New(io.Discard, "", 0) // connections end on purpose
	a.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			a.connections.Add(1)
		}
	}
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

// sees waits for a request.
func (a *answering) sees(t *testing.T, want string) {
	t.Helper()
	for !strings.HasPrefix(wait.Receive(t, "the API server is asked for "+want, a.asked), want) {
	}
}

// daemonOf is a daemon that uses the servers, starting with the first, until the test ends.
func daemonOf(t *testing.T, servers ...*answering) *daemon {
	t.Helper()
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: servers[0].Certificate().Raw})
	for name, text := range map[string][]byte{"token": []byte("secret"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Listener.Addr().String())
	}
	config, err := apiserver.Config(addrs, "b", dir, slog.New(slog.DiscardHandler)) // b begins with the first of two
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "example.com" // the name in httptest's certificate
	ctx, stop := context.WithCancel(t.Context())
	d := &daemon{log: slog.New(slog.DiscardHandler)}
	if err := d.openSource(ctx, options.Options{NodeName: "n1"}, nil, nil, func() (*rest.Config, error) { return config, nil }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.events.close)
	t.Cleanup(stop)
	return d
}

// runSource runs until the test ends.
func runSource(t *testing.T, d *daemon) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.source.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
}

// TestOneConnection: watches and Events use the same connection, so that they use the same server.
func TestOneConnection(t *testing.T) {
	api := startAnswering(t, http.StatusNotFound)
	d := daemonOf(t, api)
	d.events.onNode("Reason", "text")
	api.sees(t, "POST /api/v1/namespaces/default/events")
	runSource(t, d)
	for range 3 { // Services, EndpointSlices, this Node
		api.sees(t, "GET /")
	}
	if n := api.connections.Load(); n != 1 {
		t.Errorf("%d connections are made, want one for all", n)
	}
}

// An API server that accepts connections and answers only errors, like one without its etcd, is
// abandoned.
func TestServerOfErrorsIsLeft(t *testing.T) {
	broken, well := startAnswering(t, http.StatusServiceUnavailable), startAnswering(t, http.StatusNotFound)
	runSource(t, daemonOf(t, broken, well))
	broken.sees(t, "GET /")
	for range 3 { // Services, EndpointSlices, this Node
		well.sees(t, "GET /")
	}
}

// TestReservedLater: a kubeconfig that is missing at the start reserves the address in it once it
// can be read, and causes a run.
func TestReservedLater(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	o := options.Options{NodeName: "n1", Kubeconfig: file}
	log := slog.New(slog.DiscardHandler)
	d := &daemon{log: log, saved: topology.Snapshot{Saved: time.Now()}}
	if err := d.openSource(t.Context(), o, nil, nil, func() (*rest.Config, error) { return apiserver.RestConfig(o, log) }); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.events.close)
	if got := d.reservedNow(); got != nil {
		t.Errorf("%v is reserved without kubeconfig", got)
	}
	const kubeconfig = `{apiVersion: v1, kind: Config, current-context: c, users: [{name: u}],
clusters: [{name: c, cluster: {server: "http://192.0.2.9:6443"}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`
	written := file + ".new"
	if err := errors.Join(os.WriteFile(written, []byte(kubeconfig), 0o600), os.Rename(written, file)); err != nil {
		t.Fatal(err)
	}
	runSource(t, d)
	wait.Receive(t, "a change is signalled when the kubeconfig can be read", d.source.Changed())
	if got := fmt.Sprint(d.reservedNow()); got != "[192.0.2.9:6443]" {
		t.Errorf("%s is reserved", got)
	}
}

// TestRecoveredManifestsAreLogged: one log line says that manifests can be read again.
func TestRecoveredManifestsAreLogged(t *testing.T) {
	var text bytes.Buffer
	report := manifestReport(slog.New(slog.NewTextHandler(&text, nil)))
	const again = "the manifests can be read again"
	report([]string{"a warning"}, nil)
	report(nil, errors.New("a.yaml: is empty"))
	report(nil, errors.New("b.yaml: is empty"))
	if n := strings.Count(text.String(), again); n != 0 {
		t.Errorf("recovered %d times before it did:\n%s", n, text.String())
	}
	report([]string{"a warning"}, nil)
	report(nil, nil)
	if n := strings.Count(text.String(), again); n != 1 {
		t.Errorf("recovered %d times, want 1:\n%s", n, text.String())
	}
}
