package healthcheck

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"gridproxy/rules"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var (
	web = types.NamespacedName{Namespace: "default", Name: "web"}
	dns = types.NamespacedName{Namespace: "kube-system", Name: "dns"}

	loopbackOnly = rules.NodePortScope{
		IPv4: rules.ListenAddrs{Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
		IPv6: rules.ListenAddrs{Addrs: []netip.Addr{netip.IPv6Loopback()}},
	}
)

// freePort is a port of both families without a listener.
func freePort(t *testing.T) uint16 {
	t.Helper()
	for range 100 {
		four, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := uint16(four.Addr().(*net.TCPAddr).Port)
		six, err := net.Listen("tcp6", "[::1]:"+strconv.Itoa(int(port)))
		four.Close()
		if err == nil {
			six.Close()
			return port
		}
	}
	t.Fatal("no port is free on 127.0.0.1 and ::1 at once; the test needs IPv6 on loopback")
	return 0
}

func newServer(t *testing.T, healthy func(rules.Family) bool) *Server {
	s := New(healthy)
	t.Cleanup(s.Close)
	return s
}

func always(rules.Family) bool { return true }

// ruleset has health checks on loopback only, so that a test opens nothing to the network.
func ruleset(checks ...rules.HealthCheck) rules.Ruleset {
	return rules.Ruleset{HealthChecks: checks, NodePorts: loopbackOnly}
}

// sync wants these health checks, and every port of them to open.
func sync(t *testing.T, s *Server, checks ...rules.HealthCheck) {
	t.Helper()
	if failed := s.Sync(ruleset(checks...), rules.Outcomes{}); failed != nil {
		t.Fatal(failed)
	}
}

type reply struct {
	Code         int
	Weight, Type string
	Body         string
}

func get(t *testing.T, host string, port uint16, path string) reply {
	t.Helper()
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := client.Get("http://" + net.JoinHostPort(host, strconv.Itoa(int(port))) + path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var compact any
	if err := json.Unmarshal(text, &compact); err != nil {
		t.Fatalf("body %q: %v", text, err)
	}
	text, _ = json.Marshal(compact)
	return reply{
		Code: r.StatusCode, Weight: r.Header.Get("X-Load-Balancing-Endpoint-Weight"), Type: r.Header.Get("Content-Type"), Body: string(text),
	}
}

func isClosed(t *testing.T, host string, port uint16) bool {
	t.Helper()
	c, err := net.DialTimeout("tcp", net.JoinHostPort(host, strconv.Itoa(int(port))), 10*time.Second)
	if err == nil {
		c.Close()
		return false
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatal(err)
	}
	return true
}

// TestPortsFollowFamily: while one family fails the ports of the other open, close and answer;
// those of the one that fails stay as they are. A family that is left out has no port.
func TestPortsFollowFamily(t *testing.T) {
	unhealthy := rules.IPv6
	s, port := newServer(t, func(f rules.Family) bool { return f != unhealthy }), freePort(t)
	checks := func(ready int) rules.Ruleset {
		return ruleset(rules.HealthCheck{Service: web, Port: port, LocalReady: ready}, rules.HealthCheck{Service: web, IPv6: true, Port: port, LocalReady: ready})
	}
	hosts := [2]string{"127.0.0.1", "::1"}
	for _, broken := range rules.Families() {
		healthy, outcomes := rules.IPv4+rules.IPv6-broken, rules.Outcomes{}
		outcomes[broken].Err = errors.New("broken")
		unhealthy = broken
		s.Sync(ruleset(), rules.Outcomes{})
		s.Sync(checks(1), outcomes)
		if !isClosed(t, hosts[broken], port) || get(t, hosts[healthy], port, "/").Code != http.StatusOK {
			t.Errorf("%s is broken before it was ever written: its port is open, or the other is not", broken)
		}
		s.Sync(checks(1), rules.Outcomes{})
		s.Sync(checks(2), outcomes)
		if b, h := get(t, hosts[broken], port, "/"), get(t, hosts[healthy], port, "/"); b.Weight != "1" || h.Weight != "2" || b.Code != 503 || h.Code != 200 {
			t.Errorf("%s is broken: it answers %+v, the other %+v", broken, b, h)
		}
		s.Sync(ruleset(), outcomes)
		if isClosed(t, hosts[broken], port) || !isClosed(t, hosts[healthy], port) {
			t.Errorf("%s is broken: its port must stay, that of the other must close", broken)
		}
		outcomes[broken] = rules.Outcome{LeftOut: errors.New("no tool")}
		s.Sync(checks(1), outcomes)
		if !isClosed(t, hosts[broken], port) || isClosed(t, hosts[healthy], port) {
			t.Errorf("%s is left out: it has a port, or the other has none", broken)
		}
	}
}

func TestAnswers(t *testing.T) {
	var healthy atomic.Bool
	healthy.Store(true)
	s, port := newServer(t, func(rules.Family) bool { return healthy.Load() }), freePort(t)
	expect := func(host string, code int, ready string, proxy string) {
		t.Helper()
		want := reply{
			Code: code, Weight: ready, Type: "application/json",
			Body: `{"localEndpoints":` + ready + `,"service":{"name":"web","namespace":"default"},"serviceProxyHealthy":` + proxy + `}`,
		}
		if got := get(t, host, port, "/any/path?x"); got != want {
			t.Errorf("%s (-want +got):\n%s", host, cmp.Diff(want, got))
		}
	}
	four := rules.HealthCheck{Service: web, Port: port, LocalReady: 2}
	six := rules.HealthCheck{Service: web, Port: port, IPv6: true}
	sync(t, s, four, six)
	expect("127.0.0.1", 200, "2", "true")
	expect("::1", 503, "0", "true")

	healthy.Store(false)
	expect("127.0.0.1", 503, "2", "false")
	healthy.Store(true)

	four.LocalReady, six.LocalReady = 0, 1
	sync(t, s, four, six)
	expect("127.0.0.1", 503, "0", "true")
	expect("::1", 200, "1", "true")
}

func TestPortsFollowRules(t *testing.T) {
	s, first, second := newServer(t, always), freePort(t), freePort(t)
	sync(t, s, rules.HealthCheck{Service: web, Port: first, LocalReady: 1})
	if !isClosed(t, "::1", first) {
		t.Error("an IPv4 check answers on IPv6")
	}
	// The number changes hands, and web gets another one.
	sync(t, s, rules.HealthCheck{Service: dns, Port: first, LocalReady: 3}, rules.HealthCheck{Service: web, Port: second, LocalReady: 1})
	if r := get(t, "127.0.0.1", first, "/"); r.Weight != "3" {
		t.Errorf("the port's new Service answers with weight %s, want 3", r.Weight)
	}
	sync(t, s, rules.HealthCheck{Service: web, Port: second, LocalReady: 1})
	if !isClosed(t, "127.0.0.1", first) {
		t.Error("a port that is not in the rules any more answers")
	}
	s.Close()
	if !isClosed(t, "127.0.0.1", second) {
		t.Error("a port answers after Close")
	}
}

// TestReopen closes and opens the same number in a row, which fails if closing returns
// before the port is free.
func TestReopen(t *testing.T) {
	s, port := newServer(t, always), freePort(t)
	for range 50 {
		for _, name := range []types.NamespacedName{web, dns} {
			sync(t, s, rules.HealthCheck{Service: name, Port: port})
		}
	}
}

func TestBindFailureIsToldAndRetried(t *testing.T) {
	port := freePort(t)
	taken, err := net.Listen("tcp4", "127.0.0.1:"+strconv.Itoa(int(port)))
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	s := newServer(t, always)
	checks := []rules.HealthCheck{{Service: web, Port: port, LocalReady: 1}, {Service: web, Port: port, IPv6: true, LocalReady: 1}}
	for range 2 {
		failed := s.Sync(ruleset(checks...), rules.Outcomes{})
		if len(failed) != 1 || failed[0].Service != web || !errors.Is(failed[0], syscall.EADDRINUSE) {
			t.Fatalf("Sync = %v, want one failure of %s: address in use", failed, web)
		}
	}
	if r := get(t, "::1", port, "/"); r.Code != 200 {
		t.Errorf("the other family answers %d, want 200", r.Code)
	}
	taken.Close()
	sync(t, s, checks...)
	if r := get(t, "127.0.0.1", port, "/"); r.Code != 200 {
		t.Errorf("after the port became free it answers %d, want 200", r.Code)
	}
}

// TestPortOfLocalDNS: a Service's health-check node port does not take the port of the DNS server
// on this node.
func TestPortOfLocalDNS(t *testing.T) {
	want := ruleset(rules.HealthCheck{Service: web, Port: rules.PortDNS}, rules.HealthCheck{Service: web, IPv6: true, Port: rules.PortDNS})
	want.LocalDNS.Addrs = []netip.Addr{netip.MustParseAddr("169.254.20.12")}
	failed := newServer(t, always).Sync(want, rules.Outcomes{rules.IPv6: {Err: errors.New("not now")}})
	if len(failed) != 1 || !errors.Is(failed[0], errReserved) || !failed[0].Addr.Addr().Is4() {
		t.Errorf("failed: %v", failed)
	}
}

func TestPortsOf(t *testing.T) {
	checks := []rules.HealthCheck{{Service: web, Port: 31000, LocalReady: 1}, {Service: web, Port: 31000, IPv6: true, LocalReady: 2}}
	two := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	loopback := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.IPv6Loopback()}
	for _, test := range []struct {
		name string
		on   rules.NodePortScope
		want []wantedPort
	}{
		{"everywhere", rules.NodePortScope{IPv4: rules.ListenAddrs{All: true}, IPv6: rules.ListenAddrs{All: true}}, []wantedPort{
			{port{web, netip.MustParseAddrPort("0.0.0.0:31000")}, 1}, {port{web, netip.MustParseAddrPort("[::]:31000")}, 2},
		}},
		{"chosen addresses of one family", rules.NodePortScope{IPv4: rules.ListenAddrs{Addrs: two}}, []wantedPort{
			{port{web, netip.MustParseAddrPort("10.0.0.1:31000")}, 1}, {port{web, netip.MustParseAddrPort("10.0.0.2:31000")}, 1},
		}},
		{"listed loopback addresses without NodePorts", rules.NodePortScope{IPv4: rules.ListenAddrs{Addrs: two[:1]}, HealthLoopback: loopback}, []wantedPort{
			{port{web, netip.MustParseAddrPort("10.0.0.1:31000")}, 1}, {port{web, netip.MustParseAddrPort("127.0.0.1:31000")}, 1},
			{port{web, netip.MustParseAddrPort("[::1]:31000")}, 2},
		}},
	} {
		got := wantedPorts(rules.Ruleset{HealthChecks: checks, NodePorts: test.on})
		same := cmp.Diff(test.want, got, cmp.AllowUnexported(wantedPort{}, port{}), cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b }))
		if same != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, same)
		}
	}
}
