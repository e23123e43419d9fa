package apiserver

import (
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// roundTripper reports the servers' answers to the Dialer. Only reads count, because a node depends
// on them. Writes may fail in an admission webhook while the server works.
type roundTripper struct {
	next   http.RoundTripper
	dialer *Dialer
	limit  time.Duration // of a read without an answer
}

// RoundTrip sends a request. If it is a GET, the Dialer learns how the server answers whose
// connection was used: of a failure once the body is closed, and of no answer in time as 504.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return t.next.RoundTrip(r)
	}
	var used atomic.Pointer[connection] // the last one, if a request is sent again
	late := time.AfterFunc(t.limit, func() {
		if c := used.Load(); c != nil {
			t.dialer.heard(c.server, answer{r.URL.Path, http.StatusGatewayTimeout})
		}
	})
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			used.Store(connectionBelow(got.Conn))
			late.Reset(t.limit) // connecting has its own limits
		},
	})
	response, err := t.next.RoundTrip(r.WithContext(ctx))
	late.Stop()
	c := used.Load()
	if err != nil || c == nil {
		return response, err
	}
	a := answer{r.URL.Path, response.StatusCode}
	if a.good() {
		t.dialer.heard(c.server, a)
	} else {
		response.Body = &failureBody{ReadCloser: response.Body, read: sync.OnceFunc(func() { t.dialer.heard(c.server, a) })}
	}
	return response, nil
}

// connectionBelow returns the connection below a TLS connection; nil if no Dialer made it.
func connectionBelow(conn net.Conn) *connection {
	for {
		switch c := conn.(type) {
		case *connection:
			return c
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return nil
		}
	}
}

// failureBody is the body of an answer that is a failure. The failure counts only after the body
// was read, because counting may close the connection, and the body says what is wrong.
type failureBody struct {
	io.ReadCloser
	read func()
}

// Close closes the body and counts the failure.
func (f *failureBody) Close() error {
	err := f.ReadCloser.Close()
	f.read()
	return err
}
