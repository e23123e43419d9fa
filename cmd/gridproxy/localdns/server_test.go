package localdns

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
	"gridproxy/topology"
	"gridproxy/topology/dnsfeed"
	"gridproxy/topology/dnsview"

	"k8s.io/apimachinery/pkg/types"
)

// waitTimeout is how long something that must happen may take.
const waitTimeout = 30 * time.Second

// feed is a Server at a socket.
type feed struct {
	*Server
	path string
}

func serverOf() *Server {
	return NewServer(Config{Node: "bj-3", Domain: "cluster.local"})
}

func newFeed(t *testing.T) feed {
	t.Helper()
	f := feed{serverOf(), filepath.Join(t.TempDir(), "s")}
	l, err := net.Listen("unix", f.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

// reader is a DNS server as the feed sees it.
type reader struct {
	t    *testing.T
	conn net.Conn
	in   *dnsfeed.Reader
	out  *dnsfeed.Writer
}

func (f feed) connect(t *testing.T) *reader {
	t.Helper()
	conn, err := net.Dial("unix", f.path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(waitTimeout)); err != nil {
		t.Fatal(err)
	}
	return &reader{t: t, conn: conn, in: dnsfeed.NewReader(bufio.NewReader(conn)), out: dnsfeed.NewWriter(conn)}
}

// update takes the next update, and acknowledges it.
func (r *reader) update(serving ...netip.AddrPort) dnsfeed.Update {
	r.t.Helper()
	u, err := r.in.Update()
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.out.Report(dnsfeed.Report{Generation: u.Generation, Serving: serving}); err != nil {
		r.t.Fatal(err)
	}
	return u
}

// until waits for the clients to be as they should.
func (f feed) until(t *testing.T, what string, ok func([]Client) bool) {
	t.Helper()
	wait.Until(t, what, func() error {
		c := f.Clients()
		return wait.Check(ok(c), "there are %+v", c)
	})
}

func viewOf(names ...string) topology.DNSView {
	v := topology.DNSView{Node: "bj-3", Namespaces: []string{"default"}}
	for _, name := range names {
		v.Services = append(v.Services, &topology.DNSService{Names: dnsview.Names{Service: types.NamespacedName{Namespace: "default", Name: name}, Kind: dnsview.Headless}})
	}
	return v
}

// TestFeed: a DNS server gets everything, then what changes, and what it reports is known.
func TestFeed(t *testing.T) {
	f := newFeed(t)
	at := netip.MustParseAddrPort("169.254.20.12:53")
	r := f.connect(t)
	if h, err := r.in.Hello(); err != nil || h.Node != "bj-3" || h.Domain != "cluster.local" {
		t.Fatalf("%+v, %v", h, err)
	}
	first := viewOf("a", "b")
	f.Publish(first, time.Now())
	if u := r.update(at); !u.Whole || len(u.Services) != 2 {
		t.Errorf("the first update is %+v", u)
	}
	f.until(t, "a report", func(all []Client) bool { return len(all) == 1 && len(all[0].Serving) == 1 && all[0].Behind.IsZero() })

	f.Publish(first, time.Now()) // nothing changes
	second := first
	second.Services = append(first.Services[:1:1], viewOf("c").Services...)
	f.Publish(second, time.Now())
	f.until(t, "the client to be behind", func(all []Client) bool { return !all[0].Behind.IsZero() })
	if u := r.update(at); u.Whole || len(u.Services) != 1 || len(u.Removed) != 1 || u.Generation != 2 {
		t.Errorf("the second update is %+v", u)
	}
	f.until(t, "the client to keep up", func(all []Client) bool { return all[0].Behind.IsZero() })

	late := f.connect(t)
	if _, err := late.in.Hello(); err != nil {
		t.Fatal(err)
	}
	f.until(t, "the later one to be behind", func(all []Client) bool {
		return slices.ContainsFunc(all, func(c Client) bool { return len(c.Serving) == 0 && !c.Behind.IsZero() })
	})
	if u := late.update(); !u.Whole || len(u.Services) != 2 {
		t.Errorf("a DNS server that comes later gets %+v", u)
	}
	_ = r.conn.Close()
	f.until(t, "the first one to be gone", func(all []Client) bool { return len(all) == 1 && len(all[0].Serving) == 0 })
	select {
	case <-f.Moved():
	default:
		t.Error("nothing says that a DNS server has gone")
	}
}

// TestFeedLimits: too many connections, and frames that cannot be read, end these connections and
// no others.
func TestFeedLimits(t *testing.T) {
	f := newFeed(t)
	var all []*reader
	for range clientsMax {
		all = append(all, f.connect(t))
	}
	f.until(t, "all connections", func(all []Client) bool { return len(all) == clientsMax })
	if _, err := f.connect(t).in.Hello(); !errors.Is(err, io.EOF) {
		t.Errorf("one connection too many: %v", err)
	}
	if _, err := fmt.Fprint(all[0].conn, "GET / HTTP/1.1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	f.until(t, "the end of one", func(all []Client) bool { return len(all) == clientsMax-1 })
	f.Publish(viewOf("a"), time.Now())
	if _, err := all[1].in.Hello(); err != nil {
		t.Fatal(err)
	}
	if u := all[1].update(); !u.Whole {
		t.Errorf("another connection gets %+v", u)
	}
}

// TestStuck: a DNS server that does not take its updates stays, and counts, until it reports again.
func TestStuck(t *testing.T) {
	s, c := serverOf(), &peer{}
	s.add(c)
	c.stuck = errors.New("write: i/o timeout")
	if got := s.Clients(); len(got) != 1 {
		t.Errorf("clients %+v", got)
	}
	if err := s.heard(c, dnsfeed.Report{}); !errors.Is(err, c.stuck) {
		t.Errorf("its next report: %v", err)
	}
}

// largeView returns a view of Service a, which is large, and of others. All are new ones.
func largeView(others ...string) topology.DNSView {
	v := viewOf(append([]string{"a"}, others...)...)
	v.Services[0].Endpoints = slices.Repeat([]dnsview.Endpoint{{Hostname: "one", Addr: netip.MustParseAddr("10.0.0.7")}}, 20_001)
	return v
}

// TestLargeServiceComesLast: a DNS server gets a large Service after all others, and what changes
// of others with it.
func TestLargeServiceComesLast(t *testing.T) {
	f := newFeed(t)
	f.Publish(largeView("b"), time.Now())
	r := f.connect(t)
	if _, err := r.in.Hello(); err != nil {
		t.Fatal(err)
	}
	if u := r.update(); !u.Whole || len(u.Services) != 1 || len(u.Later) != 1 {
		t.Errorf("the first update has %d Services, and names %v", len(u.Services), u.Later)
	}
	if u := r.update(); len(u.Services) != 1 || len(u.Services[0].Endpoints) != 20_001 {
		t.Errorf("the second update has %d Services", len(u.Services))
	}
	f.Publish(largeView("b"), time.Now())
	for _, want := range []string{"b", "a"} {
		if u := r.update(); len(u.Services) != 1 || u.Services[0].Service.Name != want || u.Generation != 2 {
			t.Errorf("an update of generation %d has %d Services, want %s", u.Generation, len(u.Services), want)
		}
	}
}

// TestBehindWithLargeServices: a DNS server that waits for large Services alone is not behind, in
// whatever order its reports and the changes come.
func TestBehindWithLargeServices(t *testing.T) {
	s, c := serverOf(), &peer{}
	v := largeView("b")
	s.Publish(v, time.Now())
	s.add(c)
	step := func(what string, behind bool) {
		t.Helper()
		if got := !s.Clients()[0].Behind.IsZero(); got != behind {
			t.Errorf("%s: behind %v, want %v", what, got, behind)
		}
	}
	report := func(generation uint64) {
		if err := s.heard(c, dnsfeed.Report{Generation: generation}); err != nil {
			t.Fatal(err)
		}
	}
	large := func() topology.DNSView {
		v.Services = append(largeView().Services, v.Services[1:]...)
		return v
	}
	step("it has connected", true)
	s.Publish(large(), time.Now())
	report(1)
	step("it has the first names, and the large Service has changed", false)
	s.Publish(large(), time.Now())
	step("the large Service has changed again", false)
	v = largeView("b")
	s.Publish(v, time.Now())
	step("another one has changed too", true)
	s.Publish(large(), time.Now())
	report(3)
	step("it has not reported that yet", true)
	report(4)
	step("it has all but the large Service", false)
	v.Services = v.Services[1:]
	s.Publish(v, time.Now())
	step("the large Service is gone", true)
}
