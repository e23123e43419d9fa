package apiserver

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// first is the name of a node that starts with the first of two or three servers.
const first = "b"

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// listen accepts connections and keeps them open until the test ends.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // an error means that the test has closed it
	return l
}

// dial connects until the test ends, and returns the server.
func dial(t *testing.T, d *Dialer) (net.Conn, string) {
	t.Helper()
	conn, err := d.Dial(t.Context(), "tcp", "10.96.0.1:443")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // an error means that the test has closed it
	return conn, conn.RemoteAddr().String()
}

// reached is the server that a connection of d leads to.
func reached(t *testing.T, d *Dialer) string {
	t.Helper()
	_, server := dial(t, d)
	return server
}

// speak lets the server send something on its next connection, which is conn.
func speak(t *testing.T, l net.Listener, conn net.Conn) {
	t.Helper()
	theirs, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = theirs.Close() }) // the client may have closed it
	if _, err := theirs.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

func TestServersAreTriedInOrder(t *testing.T) {
	a, b := listen(t), listen(t)
	d := New([]string{a.Addr().String(), b.Addr().String()}, quiet())
	one, server := dial(t, d)
	speak(t, a, one)
	if server != a.Addr().String() {
		t.Fatalf("reached %s first, want %s", server, a.Addr())
	}
	_ = one.Close()
	if got := reached(t, d); got != b.Addr().String() {
		t.Errorf("after the connection has ended, reached %s, want %s", got, b.Addr())
	}
	_ = one.Close() // is not the one in use any more
	if got := reached(t, d); got != b.Addr().String() {
		t.Errorf("after the old connection has ended once more, reached %s, want %s", got, b.Addr())
	}
	_ = b.Close()
	if got := reached(t, d); got != a.Addr().String() {
		t.Errorf("while %s refuses, reached %s, want %s", b.Addr(), got, a.Addr())
	}
	if got := reached(t, d); d.start() != 0 || got != a.Addr().String() {
		t.Errorf("reached %s, which is not the one that answered last, %s", got, a.Addr())
	}
}

// One connection of several may end: the server is in use until the last one does.
func TestOneOfSeveralConnectionsEnds(t *testing.T) {
	a, b := listen(t), listen(t)
	d := New([]string{a.Addr().String(), b.Addr().String()}, quiet())
	one, _ := dial(t, d)
	speak(t, a, one)
	two, _ := dial(t, d)
	speak(t, a, two)
	_ = two.Close()
	_ = two.Close() // counts once
	three, server := dial(t, d)
	if server != a.Addr().String() {
		t.Fatalf("while a connection to %s is open, reached %s", a.Addr(), server)
	}
	speak(t, a, three)
	_ = three.Close()
	_ = one.Close()
	if got := reached(t, d); got != b.Addr().String() {
		t.Errorf("after the last connection has ended, reached %s, want %s", got, b.Addr())
	}
}

// A server that hangs accepts connections and never answers: older connections to it do not matter.
func TestConnectionWithoutAnAnswerEnds(t *testing.T) {
	a, b := listen(t), listen(t)
	d := New([]string{a.Addr().String(), b.Addr().String()}, quiet())
	one, _ := dial(t, d)
	speak(t, a, one)
	two, _ := dial(t, d)
	_ = two.Close()
	if got := reached(t, d); got != b.Addr().String() {
		t.Errorf("after a connection on which nothing came, reached %s, want %s", got, b.Addr())
	}
}

// A server that never answers does not delay the connection.
func TestSilenceIsPassedOver(t *testing.T) {
	b := listen(t)
	ended := make(chan struct{})
	d := newDialer([]string{"silent:1", b.Addr().String()}, quiet(), time.Millisecond, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "silent:1" {
			<-ctx.Done()
			close(ended)
			return nil, ctx.Err()
		}
		return withTimeouts(nextServerDelay).DialContext(ctx, network, addr)
	})
	if got := reached(t, d); got != b.Addr().String() {
		t.Fatalf("reached %s, want %s", got, b.Addr())
	}
	<-ended // the attempt ends
	if d.start() != 1 {
		t.Error("the server that answered is not the one to begin with")
	}
}

// Of two that answer, the later one's connection is closed.
func TestLateConnectionIsClosed(t *testing.T) {
	theirs, ours := net.Pipe()
	b := listen(t)
	d := newDialer([]string{"late:1", b.Addr().String()}, quiet(), time.Millisecond, func(ctx context.Context, network, addr string) (net.Conn, error) {
		if addr == "late:1" {
			<-ctx.Done() // the other one has been chosen
			return ours, nil
		}
		return withTimeouts(nextServerDelay).DialContext(ctx, network, addr)
	})
	if got := reached(t, d); got != b.Addr().String() {
		t.Fatalf("reached %s, want %s", got, b.Addr())
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection that came too late: %v, want it to be closed", err)
	}
}

func TestNobodyAnswers(t *testing.T) {
	a, b := listen(t), listen(t)
	_, _ = a.Close(), b.Close()
	_, err := New([]string{a.Addr().String(), b.Addr().String()}, quiet()).Dial(t.Context(), "tcp", "")
	for _, want := range []string{"no API server of --api-servers " + a.Addr().String() + "," + b.Addr().String(), b.Addr().String() + ": connect: connection refused"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}

// credentials are a Pod's, which trust the server.
func credentials(t *testing.T, ca []byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string][]byte{"token": []byte("secret"), "ca.crt": ca} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A server that breaks off an answer is skipped: the next request reaches another one. A
// certificate for another name is refused.
func TestConfig(t *testing.T) {
	b := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Host+" "+r.Header.Get("Authorization"))
	}))
	defer b.Close()
	a := listen(t)
	go func() {
		for {
			conn, err := a.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:1") // is for others
	config, err := Config([]string{a.Addr().String(), b.Listener.Addr().String()}, first, credentials(t, pemOf(b)), quiet())
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "example.com" // the name in httptest's certificate
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	defer client.CloseIdleConnections()
	if _, err := get(t, client, config.Host); err == nil {
		t.Fatal("a server that hangs up has answered")
	}
	body, err := get(t, client, config.Host)
	if want := "kubernetes.default.svc Bearer secret"; err != nil || body != want {
		t.Errorf("got %q, %v, want %q", body, err, want)
	}
	config.ServerName = serverName
	stranger, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, stranger, config.Host); err == nil || !strings.Contains(err.Error(), "certificate is valid for") {
		t.Errorf("a certificate that is not the API server's: %v", err)
	}
}

func pemOf(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

func get(t *testing.T, client *http.Client, host string) (string, error) {
	t.Helper()
	u, err := url.JoinPath(host, "/api")
	if err != nil {
		t.Fatal(err)
	}
	r, err := client.Get(u)
	if err != nil {
		return "", err
	}
	defer func() { _ = r.Body.Close() }()
	body, err := io.ReadAll(r.Body)
	return string(body), err
}

// Nodes start with different servers, and each node always with the same one.
func TestNodesBeginApart(t *testing.T) {
	servers := []string{"a:1", "b:1", "c:1"}
	began := map[string]int{}
	for i := range 300 {
		node := fmt.Sprintf("bj-%d", i)
		order := orderFor(servers, node)
		began[order[0]]++
		if again := orderFor(servers, node); !slices.Equal(order, again) {
			t.Fatalf("%s: %v, and %v then", node, order, again)
		}
		if len(order) != 3 || !strings.Contains("a:1 b:1 c:1 a:1 b:1", strings.Join(order, " ")) {
			t.Fatalf("%s: %v is not the order of the list", node, order)
		}
	}
	for _, s := range servers {
		if began[s] < 50 {
			t.Errorf("of 300 nodes %d begin with %s: %v", began[s], s, began)
		}
	}
	if servers[0] != "a:1" || orderFor(servers, first)[0] != "a:1" {
		t.Errorf("the list is changed, or %s does not begin with its first server: %v", first, servers)
	}
}

func TestWithoutCredentials(t *testing.T) {
	_, err := Config([]string{"127.0.0.1:1"}, first, t.TempDir(), quiet())
	if err == nil || !strings.Contains(err.Error(), "give the Pod a service account, or use --kubeconfig") {
		t.Errorf("got %v", err)
	}
}

// A connection that is made while those of a server are closed goes to another server.
func TestNextServerIsNextAtOnce(t *testing.T) {
	a, b := listen(t), listen(t)
	d := New([]string{a.Addr().String(), b.Addr().String()}, quiet())
	dial(t, d)
	for i := range failuresMax {
		if d.start() != 0 {
			t.Errorf("after %d failures the first server is not the first any more", i)
		}
		d.judge(0, answer{"/x", http.StatusServiceUnavailable})
	}
	if d.start() != 1 {
		t.Error("a server that is to be left is still the first")
	}
}
