package nodeproxy

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/cmd/kubectl-grid/fleet"

	"k8s.io/client-go/rest"
)

// newAsker asks a server that speaks HTTP/2, as an API server does.
func newAsker(t *testing.T, handler http.Handler, deadline time.Duration) *Asker {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	a, err := New(&rest.Config{Host: server.URL, BearerToken: "secret", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, 10256, deadline)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// roundTripper answers without a network.
type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestAskIsBounded: MaxParallel requests run at once, and no more start until one has ended.
func TestAskIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		end := make(chan struct{})
		a := &Asker{base: &url.URL{Scheme: "https", Host: "api"}, port: 10256, deadline: time.Minute, client: &http.Client{
			Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
				running.Add(1)
				defer running.Add(-1)
				<-end
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(r.URL.Path))}, nil
			}),
		}}
		var names []string
		for i := range 2*MaxParallel + 5 {
			names = append(names, fmt.Sprint("n", i))
		}
		var answers []fleet.Answer
		go func() { answers = a.Ask(t.Context(), names) }()
		for left := len(names); left > 0; left-- {
			synctest.Wait()
			if got, want := int(running.Load()), min(left, MaxParallel); got != want {
				t.Fatalf("%d requests run while %d are left, want %d", got, left, want)
			}
			end <- struct{}{}
		}
		synctest.Wait()
		for i, answer := range answers {
			if want := "/api/v1/nodes/" + names[i] + ":10256/proxy/healthz"; string(answer.Body) != want || answer.Code != 200 || answer.Err != nil {
				t.Errorf("answer %d is %d %q %v, want %q", i, answer.Code, answer.Body, answer.Err, want)
			}
		}
		if len(answers) != len(names) {
			t.Errorf("%d answers", len(answers))
		}
	})
}

// TestAskFollowsNoRedirect: a Node must not be able to lead the user's credentials elsewhere.
func TestAskFollowsNoRedirect(t *testing.T) {
	var led atomic.Bool
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { led.Store(true) }))
	t.Cleanup(other.Close)
	a := newAsker(t, http.RedirectHandler(other.URL, http.StatusFound), time.Minute)
	if got := a.Ask(t.Context(), []string{"a"})[0]; got.Code != http.StatusFound || led.Load() {
		t.Errorf("code %d, the other server was asked: %v", got.Code, led.Load())
	}
}

// TestAskReadsLittle: an answer without end is an error.
func TestAskReadsLittle(t *testing.T) {
	a := newAsker(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := fmt.Fprint(w, strings.Repeat("x", 4096)); err != nil {
				return
			}
		}
	}), time.Minute)
	if got := a.Ask(t.Context(), []string{"a"})[0]; got.Err == nil || !strings.Contains(got.Err.Error(), "larger than 16384 bytes") {
		t.Errorf("error %v, %d bytes", got.Err, len(got.Body))
	}
}

// TestAskDeadline: also a Node that begins to answer ends at the deadline, and the error is short.
func TestAskDeadline(t *testing.T) {
	a := newAsker(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "begins") {
			fmt.Fprint(w, "{")
			_ = http.NewResponseController(w).Flush() // the test fails without it
		}
		<-r.Context().Done()
	}), 50*time.Millisecond)
	for i, got := range a.Ask(t.Context(), []string{"silent", "begins"}) {
		if got.Err == nil || got.Err.Error() != "no answer within 50ms" {
			t.Errorf("%d: %v", i, got.Err)
		}
	}
}

// TestAskErrorIsShort: the address of the request says nothing that the Node's name does not.
func TestAskErrorIsShort(t *testing.T) {
	a := &Asker{base: &url.URL{Scheme: "https", Host: "api"}, port: 10256, deadline: time.Minute, client: &http.Client{
		Transport: roundTripper(func(*http.Request) (*http.Response, error) { return nil, errors.New("reset by peer") }),
	}}
	if got := a.Ask(t.Context(), []string{"a"})[0].Err; got == nil || got.Error() != "reset by peer" {
		t.Errorf("error: %v", got)
	}
}
