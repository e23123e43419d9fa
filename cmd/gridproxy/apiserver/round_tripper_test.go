package apiserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gridproxy/integration/env/wait"

	"k8s.io/client-go/rest"
)

// deadline is how long a test waits for a condition.
const deadline = time.Minute

// server answers with status: /slow in two parts, /watch without end, and never paths below /hang.
type server struct {
	*httptest.Server
	status   atomic.Int32
	accepted atomic.Int32  // connections
	goOn     chan struct{} // closed: the second part is sent
	hanging  chan struct{} // receives of each request to /hang

	mu   sync.Mutex
	open map[net.Conn]bool
}

// serve starts a server that answers with 200 until the test ends.
func serve(t *testing.T, http2 bool) *server {
	t.Helper()
	s := &server{goOn: make(chan struct{}), hanging: make(chan struct{}), open: map[net.Conn]bool{}}
	s.status.Store(http.StatusOK)
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.answer))
	s.EnableHTTP2 = http2
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // connections end on purpose
	s.Config.ConnState = func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch state {
		case http.StateNew:
			s.accepted.Add(1)
			s.open[c] = true
		case http.StateClosed:
			delete(s.open, c)
		}
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func (s *server) answer(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, "/hang"):
		select {
		case s.hanging <- struct{}{}:
		case <-r.Context().Done():
		}
		<-r.Context().Done()
		return
	case path == "/watch":
		_, _ = io.WriteString(w, "begun") // a test that has ended does not read
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	case path == "/slow":
		w.WriteHeader(int(s.status.Load()))
		w.(http.Flusher).Flush()
		select {
		case <-s.goOn:
		case <-r.Context().Done():
		}
	default:
		w.WriteHeader(int(s.status.Load()))
	}
	_, _ = fmt.Fprintf(w, "%s %d", s.Listener.Addr(), s.status.Load())
}

func (s *server) connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// client connects to servers as a daemon does, starting with the first.
func client(t *testing.T, told *slog.Logger, servers ...*server) *http.Client {
	t.Helper()
	var addrs []string
	for _, s := range servers {
		addrs = append(addrs, s.Listener.Addr().String())
	}
	config, err := Config(addrs, first, credentials(t, pemOf(servers[0].Server)), told)
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "example.com" // the name in httptest's certificate
	c, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a request whose answer ends with the test.
func ask(t *testing.T, c *http.Client, method, path string) (*http.Response, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, "https://"+serverName+path, nil)
	if err != nil {
		return nil, err
	}
	return c.Do(r)
}

// expect sends n requests, and expects the whole answer of s each time.
func expect(t *testing.T, c *http.Client, n int, method, path string, s *server) {
	t.Helper()
	for i := range n {
		wait.Until(t, fmt.Sprintf("an answer to %s %s, number %d", method, path, i), func() error {
			r, err := ask(t, c, method, path)
			if errors.Is(err, net.ErrClosed) { // HTTP/2 learns of it a moment later
				return err
			}
			if err != nil {
				return wait.Stop(err)
			}
			defer r.Body.Close()
			body, err := io.ReadAll(r.Body)
			want := fmt.Sprintf("%s %d", s.Listener.Addr(), s.status.Load())
			if err = errors.Join(err, wait.Check(string(body) == want, "got %q, want %q", body, want)); err != nil {
				return wait.Stop(err)
			}
			return nil
		})
	}
}

// both runs a test for HTTP/2 and HTTP/1.1. Tests that need a connection to be reused cannot run
// with HTTP/1.1: net/http closes a connection that it is slow to write to, and the next server is
// used.
func both(t *testing.T, test func(t *testing.T, http2 bool)) {
	for _, http2 := range []bool{true, false} {
		t.Run(fmt.Sprintf("HTTP/2=%v", http2), func(t *testing.T) { test(t, http2) })
	}
}

func TestServerThatFailsIsLeft(t *testing.T) {
	for _, status := range []int32{401, 500, 502, 503} {
		a, b := serve(t, true), serve(t, true)
		c := client(t, quiet(), a, b)
		expect(t, c, 1, "GET", "/x", a)
		a.status.Store(status)
		expect(t, c, failuresMax, "GET", "/x", a)
		expect(t, c, 1, "GET", "/x", b)
		b.status.Store(status)
		expect(t, c, failuresMax-1, "GET", "/x", b)
		b.status.Store(http.StatusOK)
		expect(t, c, 1, "GET", "/x", b)
		b.status.Store(status)
		expect(t, c, failuresMax-1, "GET", "/x", b) // counted from the good answer on
	}
}

func TestWhatDoesNotCondemnAServer(t *testing.T) {
	a, b := serve(t, true), serve(t, true)
	c := client(t, quiet(), a, b)
	for _, status := range []int32{403, 404, 410, 429, 504} {
		a.status.Store(status)
		expect(t, c, 2*failuresMax, "GET", "/x", a)
	}
	a.status.Store(http.StatusInternalServerError)
	expect(t, c, 2*failuresMax, "POST", "/events", a) // perhaps a webhook failed
	if a.accepted.Load() != 1 {
		t.Errorf("%d connections are made, want one", a.accepted.Load())
	}
	a.status.Store(http.StatusOK)
	expect(t, c, 1, "GET", "/x", a)
	a.status.Store(http.StatusGatewayTimeout)
	expect(t, c, 2, "GET", "/x", a)
	expect(t, c, 2, "GET", "/y", a)
	expect(t, c, 1, "GET", "/z", a) // nothing can be read
	expect(t, c, 1, "GET", "/x", b)
}

// Watches of an abandoned server are closed, on all of its connections, because they may be stale.
func TestWatchesOfALeftServerEnd(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		a, b := serve(t, http2), serve(t, http2)
		c := client(t, quiet(), a, b)
		var watches []*http.Response
		for range 2 {
			w, err := ask(t, c, "GET", "/watch")
			if err != nil {
				t.Fatal(err)
			}
			defer w.Body.Close()
			if _, err := io.ReadFull(w.Body, make([]byte, len("begun"))); err != nil {
				t.Fatal(err)
			}
			watches = append(watches, w) //nolint:bodyclose // deferred above
		}
		a.status.Store(http.StatusServiceUnavailable)
		expect(t, c, failuresMax, "GET", "/x", a)
		for _, w := range watches {
			if got, err := io.ReadAll(w.Body); err == nil || w.Request.Context().Err() != nil {
				t.Errorf("the watch of a server that is left: %q, %v", got, err)
			}
		}
		wait.Until(t, "all connections to an abandoned server are closed", func() error {
			open := a.connections()
			return wait.Check(open == 0, "%d are open", open)
		})
		expect(t, c, 1, "GET", "/x", b)
	})
}

// Servers that all fail are tried in order, each until it is abandoned, with one connection per
// try. Each one is logged once.
func TestAllServersFail(t *testing.T) {
	var text bytes.Buffer // the goroutine that reads an answer writes it: here, the test
	told := slog.New(slog.NewTextHandler(&text, nil))
	all := []*server{serve(t, true), serve(t, true), serve(t, true)}
	c := client(t, told, all...)
	for _, s := range all {
		s.status.Store(http.StatusServiceUnavailable)
	}
	for range 2 {
		for _, s := range all {
			expect(t, c, failuresMax, "GET", "/x", s)
		}
	}
	for _, s := range all {
		if s.accepted.Load() != 2 {
			t.Errorf("%d connections are made in two rounds, want 2", s.accepted.Load())
		}
	}
	all[0].status.Store(http.StatusOK)
	expect(t, c, 2*failuresMax, "GET", "/x", all[0])
	all[0].status.Store(http.StatusUnauthorized)
	expect(t, c, failuresMax, "GET", "/x", all[0])
	var got []string
	for line := range strings.Lines(text.String()) {
		_, said, _ := strings.Cut(line, "level=")
		level, _, _ := strings.Cut(said, " ")
		_, at, _ := strings.Cut(strings.TrimSpace(said), "server=")
		got = append(got, level+" "+at)
	}
	var want []string
	for _, s := range all {
		want = append(want, fmt.Sprintf("WARN %s path=/x status=503", s.Listener.Addr()))
	}
	zero := all[0].Listener.Addr()
	want = append(want, fmt.Sprintf("INFO %s", zero), fmt.Sprintf("WARN %s path=/x status=401", zero))
	if !slices.Equal(got, want) {
		t.Errorf("the log says\n%s\nwant\n%s", text.String(), strings.Join(want, "\n"))
	}
}

// With one server there is no other to fail over to. A new connection is made, because its address
// may be a load balancer, or its name may have several addresses.
func TestOneServerThatFails(t *testing.T) {
	a := serve(t, true)
	c := client(t, quiet(), a)
	a.status.Store(http.StatusBadGateway)
	expect(t, c, 2*failuresMax+1, "GET", "/x", a)
	if got := a.accepted.Load(); got != 3 {
		t.Errorf("%d connections are made, want 3", got)
	}
}

// An answer counts once, when its body is closed for the first time, so that the body is read
// first.
func TestAnswerCountsWhenRead(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		a, b := serve(t, http2), serve(t, http2)
		c := client(t, quiet(), a, b)
		a.status.Store(http.StatusServiceUnavailable)
		var begun []*http.Response
		for range failuresMax {
			r, err := ask(t, c, "GET", "/slow") //nolint:bodyclose // closed below, twice
			if err != nil {
				t.Fatal(err)
			}
			begun = append(begun, r) //nolint:bodyclose // closed below, twice
		}
		close(a.goOn)
		for i, r := range begun {
			got, err := io.ReadAll(r.Body)
			if want := fmt.Sprintf("%s 503", a.Listener.Addr()); err != nil || string(got) != want {
				t.Errorf("answer %d: got %q, %v, want %q", i, got, err, want)
			}
		}
		for range failuresMax {
			_ = begun[0].Body.Close()
		}
		_ = begun[1].Body.Close()
		expect(t, c, 1, "GET", "/x", a)
		expect(t, c, 1, "GET", "/x", b)
	})
}

// A server that accepts requests and never answers is abandoned too, although its connection is
// open, once several kinds of reads have waited.
func TestServerThatDoesNotAnswerIsLeft(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		a, b := serve(t, http2), serve(t, http2)
		d := New([]string{a.Listener.Addr().String(), b.Listener.Addr().String()}, quiet())
		transport := a.Client().Transport.(*http.Transport).Clone()
		transport.DialContext = d.Dial
		transport.TLSClientConfig.ServerName = "example.com"
		c := &http.Client{Transport: &roundTripper{transport, d, time.Millisecond}}
		if http2 {
			expect(t, c, 1, "POST", "/x", a) // has made its one connection
		}
		errs := make(chan error, 2*failuresMax+2)
		hang := func(path string) {
			r, err := ask(t, c, "GET", path)
			if err == nil {
				_ = r.Body.Close()
			}
			errs <- err
		}
		for range 2 * failuresMax {
			go hang("/hang/x") // one read that is too large
		}
		go hang("/hang/y")
		for range 2*failuresMax + 1 {
			select {
			case <-a.hanging:
			case err := <-errs:
				t.Fatalf("one kind of reads that wait is enough: %v", err)
			}
		}
		wait.Until(t, "two kinds of reads are late", func() error {
			d.mu.Lock()
			defer d.mu.Unlock()
			return wait.Check(len(d.states[0].failures) == 2, "%d are", len(d.states[0].failures))
		})
		if d.start() != 0 || a.connections() == 0 {
			t.Error("two kinds of reads that wait are enough")
		}
		go hang("/hang/z")
		for range 2*failuresMax + 2 {
			if err := <-errs; !errors.Is(err, net.ErrClosed) {
				t.Errorf("a request that waits for a server that is left: %v", err)
			}
		}
		c.Transport = &roundTripper{transport, d, readTimeout}
		expect(t, c, 1, "GET", "/x", b)
	})
}

// Of many concurrent clients, each reaches the server that works.
func TestManyAskAServerThatFails(t *testing.T) {
	both(t, func(t *testing.T, http2 bool) {
		a, b := serve(t, http2), serve(t, http2)
		c := client(t, quiet(), a, b)
		a.status.Store(http.StatusServiceUnavailable)
		var asking sync.WaitGroup
		for range 8 {
			asking.Go(func() {
				for limit := time.Now().Add(deadline); time.Now().Before(limit); {
					r, err := ask(t, c, "GET", "/x")
					if err != nil {
						continue // its connection was ended
					}
					_, _ = io.Copy(io.Discard, r.Body)
					_ = r.Body.Close()
					if r.StatusCode == http.StatusOK {
						return
					}
				}
				t.Error("the server that is well is never asked")
			})
		}
		asking.Wait()
	})
}
