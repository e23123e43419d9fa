package healthcheck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"gridproxy/rules"

	"k8s.io/apimachinery/pkg/types"
)

// Server holds the open health-check node ports. One goroutine calls Sync, Failed and Close. Ports
// are opened in the network namespace of the thread that calls Sync.
type Server struct {
	healthy func(rules.Family) bool
	open    map[port]*listener
	failed  []BindError // by the last Sync
}

// listener is one open port, and what answers there.
type listener struct {
	net.Listener
	port
	http    *http.Server
	ready   atomic.Int64
	healthy func(rules.Family) bool
}

// New makes a Server without open ports. Each request calls healthy, which reports whether the
// proxy keeps up with the changes of a family. It must be safe for concurrent use.
func New(healthy func(rules.Family) bool) *Server {
	return &Server{healthy: healthy, open: make(map[port]*listener)}
}

// BindError is a port that could not be opened.
type BindError struct {
	Service types.NamespacedName
	Addr    netip.AddrPort
	Err     error
}

func (e BindError) Error() string {
	return fmt.Sprintf("opening health-check node port %s of Service %s: %v; free the port, or change the Service's healthCheckNodePort",
		e.Addr, e.Service, e.Err)
}

func (e BindError) Unwrap() error { return e.Err }

// errReserved is of a port that would keep the DNS server of this node from listening.
var errReserved = errors.New("it is that of the DNS server of this Node")

// Sync opens and closes ports so that they are those of want.HealthChecks, on the addresses on
// which NodePorts answer and on listed loopback addresses (want.NodePorts; if that is all of a
// family, its unspecified address). It also updates the answers. Ports of a family that failed stay
// unchanged, as do its rules. A family that is left out has no ports. Sync returns the ports that
// could not be opened, and the next Sync retries.
func (s *Server) Sync(want rules.Ruleset, families rules.Outcomes) []BindError {
	wanted := wantedPorts(want)
	s.closeAllBut(wanted, families) // first: another Service may have taken over the number
	var failed []BindError
	for _, w := range wanted {
		if !families[w.family()].Synced() {
			continue
		}
		if w.addr.Port() == rules.PortDNS && want.LocalDNS.Addr(w.addr.Addr().Is6()).IsValid() {
			failed = append(failed, BindError{Service: w.service, Addr: w.addr, Err: errReserved})
			continue
		}
		l := s.open[w.port]
		if l == nil {
			var err error
			if l, err = s.listen(w.port); err != nil {
				failed = append(failed, BindError{Service: w.service, Addr: w.addr, Err: err})
				continue
			}
			s.open[w.port] = l
		}
		l.ready.Store(int64(w.ready))
	}
	s.failed = failed
	return failed
}

// Failed returns what the last Sync returned.
func (s *Server) Failed() []BindError { return s.failed }

func (s *Server) closeAllBut(wanted []wantedPort, families rules.Outcomes) {
	keep := make(map[port]bool, len(wanted))
	for _, w := range wanted {
		keep[w.port] = families[w.family()].LeftOut == nil
	}
	for p, l := range s.open {
		if !keep[p] && families[p.family()].Err == nil {
			l.close()
			delete(s.open, p)
		}
	}
}

// Close closes every port.
func (s *Server) Close() {
	for _, l := range s.open {
		l.close()
	}
	clear(s.open)
}

func (s *Server) listen(p port) (*listener, error) {
	network := "tcp4"
	if p.addr.Addr().Is6() {
		network = "tcp6"
	}
	var config net.ListenConfig
	opened, err := config.Listen(context.Background(), network, p.addr.String())
	if err != nil {
		return nil, err
	}
	l := &listener{Listener: opened, port: p, healthy: s.healthy}
	l.http = &http.Server{
		Handler:           l,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    1 << 14,
	}
	go l.http.Serve(opened) // ends with close
	return l, nil
}

// close frees the port before it returns, even if Serve has not begun yet. A second close, which
// Serve may have done, is not an error.
func (l *listener) close() {
	_ = l.Listener.Close()
	_ = l.http.Close()
}

// port is where the health of a Service is reported. An unspecified address means every address of
// its family.
type port struct {
	service types.NamespacedName
	addr    netip.AddrPort
}

func (p port) family() rules.Family { return rules.FamilyOf(p.addr.Addr()) }

type wantedPort struct {
	port
	ready int
}

// wantedPorts returns the ports that want asks for, in the order of its HealthChecks. Pure.
func wantedPorts(want rules.Ruleset) []wantedPort {
	var out []wantedPort
	for _, check := range want.HealthChecks {
		on, family := want.NodePorts.IPv4, rules.IPv4
		if check.IPv6 {
			on, family = want.NodePorts.IPv6, rules.IPv6
		}
		addrs := slices.Clone(on.Addrs)
		for _, a := range want.NodePorts.HealthLoopback {
			if a.Is6() == check.IPv6 {
				addrs = append(addrs, a)
			}
		}
		if on.All {
			addrs = []netip.Addr{family.Unspecified()}
		}
		for _, a := range addrs {
			p := port{service: check.Service, addr: netip.AddrPortFrom(a, check.Port)}
			out = append(out, wantedPort{port: p, ready: check.LocalReady})
		}
	}
	return out
}

type body struct {
	Service             reference `json:"service"`
	LocalEndpoints      int64     `json:"localEndpoints"`
	ServiceProxyHealthy bool      `json:"serviceProxyHealthy"`
}

type reference struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
}

// ServeHTTP answers a load balancer. The answer has the status, the header
// X-Load-Balancing-Endpoint-Weight and the body fields that clients of kube-proxy rely on.
// Every path is answered.
func (l *listener) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	ready, healthy := l.ready.Load(), l.healthy(l.family())
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Load-Balancing-Endpoint-Weight", strconv.FormatInt(ready, 10))
	if ready == 0 || !healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	// An error here is the client's, who is gone.
	_ = json.NewEncoder(w).Encode(body{
		Service:        reference{Namespace: l.service.Namespace, Name: l.service.Name},
		LocalEndpoints: ready, ServiceProxyHealthy: healthy,
	})
}
