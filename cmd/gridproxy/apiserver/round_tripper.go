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

// roundTripper tells the Dialer what its servers answer to reads, which are what a node lives on.
// Writes do not count: an admission webhook may fail them in the name of a server that is well.
type roundTripper struct {
	next   http.RoundTripper
	dialer *Dialer
}

// RoundTrip asks the server that the connection it gets leads to.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		return t.next.RoundTrip(r)
	}
	var used atomic.Pointer[connection] // the last one, where a request is sent again
	late := time.AfterFunc(t.dialer.late, func() {
		if c := used.Load(); c != nil {
			t.dialer.heard(c.server, answer{r.URL.Path, http.StatusGatewayTimeout})
		}
	})
	ctx := httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(got httptrace.GotConnInfo) {
			used.Store(connectionBelow(got.Conn))
			late.Reset(t.dialer.late) // to connect has times of its own
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

// connectionBelow is the connection that another one, of TLS, is made of; nil = none of ours.
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

// failureBody is the body of one. It counts when it has been read: it may be the last thing that is
// wanted of its connection, and says why.
type failureBody struct {
	io.ReadCloser
	read func()
}

// Close ends reading.
func (f *failureBody) Close() error {
	err := f.ReadCloser.Close()
	f.read()
	return err
}
