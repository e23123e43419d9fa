package main

import (
	"context"
	"encoding/pem"
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
)

// TestOneConnection: what is watched and Events go over the same connection, so that they cannot be with servers apart.
func TestOneConnection(t *testing.T) {
	var connections atomic.Int32
	asked := make(chan string, 16)
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Method + " " + r.URL.Path:
		default: // what matters has been seen
		}
		http.Error(w, "not here", http.StatusNotFound)
	}))
	api.EnableHTTP2 = true
	api.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	api.StartTLS()
	t.Cleanup(api.Close)
	dir := t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})
	for name, text := range map[string][]byte{"token": []byte("secret"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config, err := apiserver.Config([]string{api.Listener.Addr().String()}, "n1", dir)
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "example.com" // what httptest's certificate says
	ctx, stop := context.WithCancel(t.Context())
	d := &daemon{log: slog.New(slog.DiscardHandler), node: "n1"}
	if err := d.connectTo(ctx, config, options.Options{NodeName: "n1"}); err != nil {
		t.Fatal(err)
	}
	defer d.events.close()
	sees := func(want string) {
		t.Helper()
		for {
			select {
			case got := <-asked:
				if strings.HasPrefix(got, want) {
					return
				}
			case <-time.After(deadline):
				t.Fatalf("the API server is not asked for %s", want)
			}
		}
	}
	d.events.onNode("n1", "Reason", "text")
	sees("POST /api/v1/namespaces/default/events")
	ended := make(chan error, 1)
	go func() { ended <- d.source.Run(ctx) }()
	defer func() { stop(); <-ended }()
	for range 4 { // Services, EndpointSlices, all Nodes, this Node
		sees("GET /")
	}
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections are made, want one for all", n)
	}
}
