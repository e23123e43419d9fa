package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gridproxy/cmd/command"
	"gridproxy/cmd/gridproxy/localdns"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"
	"gridproxy/topology/dnsview"
	"gridproxy/topology/topologytest"

	"github.com/miekg/dns"
	"k8s.io/apimachinery/pkg/types"
)

// waitTimeout is how long something that must happen may take.
const waitTimeout = time.Minute

// The addresses of the test's machine.
var (
	localAddr  = netip.MustParseAddr("169.254.20.12")
	resolver   = netip.MustParseAddrPort("127.0.0.53:53") // in its resolv.conf
	inMetrics  = netip.MustParseAddrPort("127.0.0.1:9253")
	thisServer = netip.AddrPortFrom(localAddr, portDNS)
)

// asMain is set for the processes that this test binary starts as grid-dns.
const asMain = "GRIDPROXY_TEST_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// machine is a network namespace with a feed, a DNS server outside of the cluster, and grid-dns.
// The thread of the test is inside: it starts processes and opens sockets.
type machine struct {
	t      *testing.T
	dir    string
	server *process
}

// process is a grid-dns that runs.
type process struct {
	*exec.Cmd
	done chan struct{} // closed when it has ended

	mu  sync.Mutex
	log bytes.Buffer
}

// Write is that of the log.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(b)
}

func (p *process) logged() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	need.IPTables(t)
	need.Namespace(t)
	m := &machine{t: t, dir: t.TempDir()}
	if err := os.WriteFile(m.path("resolv.conf"), []byte("nameserver "+resolver.Addr().String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

// serve starts grid-dns.
func (m *machine) serve() {
	m.t.Helper()
	p := &process{done: make(chan struct{}), Cmd: exec.Command(os.Args[0], "serve", "--names-socket", m.path("socket"), "--names-file", m.path("names"), "--resolv-conf", m.path("resolv.conf"))}
	p.Env = append(os.Environ(), asMain+"=1")
	p.Stderr = p
	if err := p.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.Wait() // ProcessState has the code
	}()
	m.server = p
	m.t.Cleanup(func() {
		_ = p.Process.Kill() // fails if it has ended
		<-p.done
		if m.t.Failed() {
			m.t.Logf("grid-dns logged:\n%s", p.logged())
		}
	})
}

// check is what grid-dns check prints, and whether it fails.
func (m *machine) check() (string, error) {
	cmd := exec.CommandContext(m.t.Context(), os.Args[0], "check")
	cmd.Env = append(os.Environ(), asMain+"=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func (m *machine) addAddress() {
	m.t.Helper()
	if out, err := exec.Command("ip", "addr", "add", localAddr.String(), "dev", "lo").CombinedOutput(); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
}

// feed is that of a daemon, until it ends.
func (m *machine) feed() (s *localdns.Server, end func()) {
	m.t.Helper()
	l, err := net.Listen("unix", m.path("socket"))
	if err != nil {
		m.t.Fatal(err)
	}
	s = localdns.NewServer(localdns.Config{Node: "bj-1", Domain: "cluster.local", Service: types.NamespacedName{Namespace: "kube-system", Name: "kube-dns"}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			m.t.Error(err)
		}
	})
	m.t.Cleanup(end)
	return s, end
}

// outside is a DNS server that answers every name with an address, until it ends.
func (m *machine) outside() (end func()) {
	m.t.Helper()
	conn, err := net.ListenPacket("udp", resolver.String())
	if err != nil {
		m.t.Fatal(err)
	}
	s := &dns.Server{PacketConn: conn, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, r *dns.Msg) {
		answer := new(dns.Msg).SetReply(r)
		if r.Question[0].Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: r.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 5}, A: net.IPv4(192, 0, 2, 1)}}
		}
		_ = w.WriteMsg(answer) // who is gone needs no answer
	})}
	go s.ActivateAndServe() //nolint:errcheck // ends with Shutdown
	end = sync.OnceFunc(func() { _ = s.Shutdown() })
	m.t.Cleanup(end)
	return end
}

// ask asks for an address over UDP or TCP.
func (m *machine) ask(network, name string) (*dns.Msg, error) {
	conn, err := net.Dial(network, thisServer.String())
	if err != nil {
		return nil, err
	}
	c := &dns.Conn{Conn: conn}
	defer c.Close() //nolint:errcheck // nothing more is read
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, err
	}
	if err := c.WriteMsg(new(dns.Msg).SetQuestion(name, dns.TypeA)); err != nil {
		return nil, err
	}
	return c.ReadMsg()
}

// answers asks over both networks, and compares with an address or the name of a code.
func (m *machine) answers(name, want string) error {
	for _, network := range []string{"udp", "tcp"} {
		answer, err := m.ask(network, name)
		if err != nil {
			return fmt.Errorf("asking for %s over %s: %w", name, network, err)
		}
		got := dns.RcodeToString[answer.Rcode]
		if len(answer.Answer) == 1 {
			got = answer.Answer[0].(*dns.A).A.String()
		}
		if got != want {
			return fmt.Errorf("%s over %s is %s, want %s", name, network, got, want)
		}
	}
	return nil
}

func (m *machine) want(name, want string) {
	m.t.Helper()
	if err := m.answers(name, want); err != nil {
		m.t.Error(err)
	}
}

// silent says that nothing listens.
func (m *machine) silent(when string) {
	m.t.Helper()
	if answer, err := m.ask("tcp", "db.shop.svc.cluster.local."); err == nil {
		m.t.Errorf("%s, queries are answered: %v", when, answer)
	}
	if out, err := m.check(); err == nil {
		m.t.Errorf("%s, grid-dns check succeeds: %s", when, out)
	}
}

// newServing is a machine whose server answers for shop, and is reported to the daemon's side of
// the feed, s, until end.
func newServing(t *testing.T) (m *machine, s *localdns.Server, end func()) {
	t.Helper()
	m = newMachine(t)
	m.addAddress()
	s, end = m.feed()
	s.Publish(topologytest.Decided(shop("10.0.0.7")), time.Now())
	m.serve()
	m.reported(s, true)
	return m, s, end
}

func shop(addr string) dnsview.View {
	return dnsview.View{Node: "bj-1", Namespaces: []string{"shop"}, Services: []*dnsview.Names{{
		Service: types.NamespacedName{Namespace: "shop", Name: "db"}, Kind: dnsview.Headless,
		Endpoints: []dnsview.Endpoint{{Hostname: "db-0", Addr: netip.MustParseAddr(addr)}},
	}}}
}

// reported waits until the daemon knows that the one server has all names, and whether it serves.
func (m *machine) reported(s *localdns.Server, serves bool) {
	m.t.Helper()
	wait.Until(m.t, "the server reports", func() error {
		all := s.Clients()
		return wait.Check(len(all) == 1 && all[0].Behind.IsZero() && len(all[0].Serving) > 0 == serves, "servers are %+v", all)
	})
}

const db = "db.shop.svc.cluster.local."

// TestServe: the program waits for names and for an address, answers, forwards, and ends.
func TestServe(t *testing.T) {
	m := newMachine(t)
	endOutside := m.outside()
	s, endFeed := m.feed()
	m.addAddress()
	m.serve()
	m.reported(s, false)
	m.silent("without names")
	s.Publish(topologytest.Decided(shop("10.0.0.7")), time.Now())
	m.reported(s, true)
	m.want(db, "10.0.0.7")
	wait.Until(m.t, "answers are reported", func() error {
		m.want(db, "10.0.0.7")
		all := s.Clients()[0].Answered
		return wait.Check(len(all) == 1 && !all[0].UDP.IsZero() && !all[0].TCP.IsZero(), "reported are %v", all)
	})
	m.want("none.shop.svc.cluster.local.", "NXDOMAIN")
	m.want("www.example.org.", "192.0.2.1")
	if out, err := m.check(); err != nil {
		t.Errorf("grid-dns check: %v: %s", err, out)
	}
	s.Publish(topologytest.Decided(shop("10.0.0.8")), time.Now())
	m.reported(s, true)
	m.want(db, "10.0.0.8")

	// Without upstreams, the cache answers for what it has, and everything else fails.
	endOutside()
	wait.Until(m.t, "a stale answer", func() error {
		m.want("www.example.org.", "192.0.2.1")
		answer, err := m.ask("udp", "www.example.org.")
		if err == nil && (len(answer.Answer) != 1 || answer.Answer[0].Header().Ttl > 0) {
			err = fmt.Errorf("the answer is %v", answer)
		}
		return err
	})
	m.want("other.example.org.", "SERVFAIL")
	m.want(db, "10.0.0.8")

	// The daemon is away, and comes back.
	endFeed()
	wait.Until(m.t, "the end is noticed", func() error {
		return wait.Check(strings.Contains(m.server.logged(), "no connection to the daemon"), "it is not")
	})
	m.want(db, "10.0.0.8")
	s, endFeed = m.feed()
	s.Publish(topologytest.Decided(shop("10.0.0.9")), time.Now())
	m.reported(s, true)
	m.want(db, "10.0.0.9")
	m.counted()

	// It ends, and starts from its file.
	m.end()
	m.silent("after the end")
	endFeed()
	m.serve()
	wait.Until(m.t, "answers from the file", func() error { return m.answers(db, "10.0.0.9") })
}

// end ends grid-dns as the kubelet does.
func (m *machine) end() {
	m.t.Helper()
	if err := m.server.Process.Signal(syscall.SIGTERM); err != nil {
		m.t.Fatal(err)
	}
	if code := m.code(); code != 0 {
		m.t.Errorf("exit code %d", code)
	}
}

// code waits until grid-dns has ended.
func (m *machine) code() int {
	m.t.Helper()
	wait.Receive(m.t, "grid-dns ends", m.server.done)
	return m.server.ProcessState.ExitCode()
}

// counted says that metrics are those of CoreDNS.
func (m *machine) counted() {
	m.t.Helper()
	conn, err := net.Dial("tcp", inMetrics.String())
	if err != nil {
		m.t.Fatal(err)
	}
	defer conn.Close() //nolint:errcheck // everything was read
	_, err = fmt.Fprint(conn, "GET /metrics HTTP/1.0\r\n\r\n")
	page, readErr := io.ReadAll(conn)
	if err := errors.Join(err, readErr); err != nil || !strings.Contains(string(page), "coredns_dns_requests_total{") {
		m.t.Errorf("metrics: %v:\n%s", err, page)
	}
}

// TestServeAwaitsAddress: with names, it waits for the address, and ends while it waits.
func TestServeAwaitsAddress(t *testing.T) {
	m := newMachine(t)
	s, _ := m.feed()
	s.Publish(topologytest.Decided(shop("10.0.0.7")), time.Now())
	m.serve()
	m.reported(s, false)
	m.silent("without an address")
	m.end()
	m.serve()
	m.addAddress()
	m.reported(s, true)
	m.want(db, "10.0.0.7")
}

// TestServeLaterAddress: an address that comes later is answered at too, and until then it is not
// reported. No query at the first one is lost.
func TestServeLaterAddress(t *testing.T) {
	m, s, _ := newServing(t)
	later := netip.MustParseAddr("fd00:6772:6964::12")
	asked := 0
	if out, err := exec.Command("ip", "addr", "add", later.String(), "dev", "lo", "nodad").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wait.Until(m.t, "it serves there too", func() error {
		m.want(db, "10.0.0.7")
		asked++
		at := s.Clients()[0].Serving
		return wait.Check(slices.Contains(at, netip.AddrPortFrom(later, portDNS)) && slices.Contains(at, thisServer), "it serves at %v", at)
	})
	for _, network := range []string{"udp", "tcp"} {
		conn, err := dns.Dial(network, netip.AddrPortFrom(later, portDNS).String())
		if err != nil {
			t.Fatal(err)
		}
		answer, _, err := new(dns.Client).ExchangeWithConn(new(dns.Msg).SetQuestion(db, dns.TypeA), conn)
		if err != nil || len(answer.Answer) != 1 {
			t.Errorf("over %s at the address that came later: %v, %v", network, answer, err)
		}
		_ = conn.Close()
	}
	m.want(db, "10.0.0.7")
	m.end()
	t.Logf("%d queries were answered until then", asked)
}

// TestServeIdleConnections: connections that a client leaves open do not keep others out.
func TestServeIdleConnections(t *testing.T) {
	m, _, _ := newServing(t)
	greedy := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	for range 2 * connectionsOfClientMax {
		if conn, err := greedy.Dial("tcp", thisServer.String()); err == nil {
			defer conn.Close() //nolint:errcheck // nothing was sent
		}
	}
	wait.Until(m.t, "connections are reset", func() error {
		return wait.Check(strings.Contains(m.server.logged(), "reset a TCP connection"), "none is")
	})
	m.want(db, "10.0.0.7")
	if files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.server.Process.Pid)); err != nil || len(files) > connectionsOfClientMax+50 {
		t.Errorf("%d files are open, %v", len(files), err)
	}
}

// TestServeTaken: a process at the address that shares it with none is an error, which names the
// address.
func TestServeTaken(t *testing.T) {
	m := newMachine(t)
	m.addAddress()
	other, err := net.ListenPacket("udp", thisServer.String())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close() //nolint:errcheck // nothing was sent
	s, _ := m.feed()
	s.Publish(topologytest.Decided(shop("10.0.0.7")), time.Now())
	m.serve()
	if code := m.code(); code != command.Failure || !strings.Contains(m.server.logged(), thisServer.String()) {
		t.Errorf("exit code %d:\n%s", code, m.server.logged())
	}
}
