package apiserver

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"

	"k8s.io/client-go/rest"
)

// Relay is an HTTPS server on the caller's loopback that passes every request on to the API server as
// one user. What a process of another binary asks can so be seen by a transport of the caller's. Unlike
// a Link it ends the TLS connection, and cannot fail.
type Relay struct {
	Addr netip.AddrPort

	user   *rest.Config
	server *http.Server
}

// NewRelay passes requests on through the transport of the configuration, wrappers included. Clients
// must hold a certificate of this cluster's.
func (c *Cluster) NewRelay(user *rest.Config) (*Relay, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for a relay: %w", err)
	}
	return c.RelayAt(user, listener)
}

// RelayAt is NewRelay where a listener is: on the loopback of another network namespace, for a process in it.
// The Relay closes the listener.
func (c *Cluster) RelayAt(user *rest.Config, listener net.Listener) (_ *Relay, err error) {
	defer func() {
		if err != nil {
			listener.Close()
		}
	}()
	target, err := url.Parse(user.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	transport, err := rest.TransportFor(user)
	if err != nil {
		return nil, fmt.Errorf("making the transport of a relay: %w", err)
	}
	config, err := c.relayTLS()
	if err != nil {
		return nil, err
	}
	quiet := log.New(io.Discard, "", 0) // that an API server is down is the test's doing
	r := &Relay{Addr: listener.Addr().(*net.TCPAddr).AddrPort(), user: user}
	r.server = &http.Server{TLSConfig: config, ErrorLog: quiet, Handler: &httputil.ReverseProxy{
		Rewrite:       func(p *httputil.ProxyRequest) { p.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // a watch's events go on as they come
		ErrorLog:      quiet,
		// A client sees its connection break, as without a Relay, and not an answer of another server.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}}
	go func() { _ = r.server.ServeTLS(listener, "", "") }() // ends with Close
	return r, nil
}

func (c *Cluster) relayTLS() (*tls.Config, error) {
	loopback := []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	own, err := c.ca.server([]string{"localhost"}, loopback)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(own.cert, own.key)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of a relay: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(c.ca.cert)
	return &tls.Config{
		Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12,
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
	}, nil
}

// Config is the user's configuration through the Relay, without the wrappers, which are the Relay's.
func (r *Relay) Config() *rest.Config {
	return &rest.Config{
		Host: "https://" + r.Addr.String(),
		TLSClientConfig: rest.TLSClientConfig{
			CAData: r.user.CAData, CertData: r.user.CertData, KeyData: r.user.KeyData,
		},
		QPS: r.user.QPS, WarningHandler: r.user.WarningHandler,
	}
}

// Close ends the Relay and every request in it.
func (r *Relay) Close() { _ = r.server.Close() }
