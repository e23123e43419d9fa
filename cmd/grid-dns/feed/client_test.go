package feed

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/cmd/gridproxy/localdns"
	"gridproxy/integration/env/wait"
	"gridproxy/rules/names"
	"gridproxy/topology/dnsfeed"
	"gridproxy/topology/dnsview"
	"gridproxy/topology/topologytest"

	"k8s.io/apimachinery/pkg/types"
)

// waitTimeout is how long something that must happen may take.
const waitTimeout = 30 * time.Second

var local = netip.MustParseAddrPort("169.254.20.12:53")

// follower is a Client with a socket for a daemon, and what it applied and logged.
type follower struct {
	*Client
	t      *testing.T
	socket string
	file   string

	mu      sync.Mutex
	log     bytes.Buffer
	applied int
	serving []netip.AddrPort
}

// newFollower makes a Client that does not run yet.
func newFollower(t *testing.T, file string) *follower {
	t.Helper()
	f := &follower{t: t, socket: filepath.Join(t.TempDir(), "s"), file: file}
	f.Client = New(Config{
		Socket: f.socket, File: file, Addrs: []netip.Addr{local.Addr()},
		Apply:    func(*Contents) { f.locked(func() { f.applied++ }) },
		Serving:  func() (at []netip.AddrPort) { f.locked(func() { at = f.serving }); return at },
		Answered: func(at []netip.AddrPort) []dnsfeed.Answered { return make([]dnsfeed.Answered, len(at)) },
		Log:      slog.New(slog.NewTextHandler(f, nil)),
	})
	return f
}

func (f *follower) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

// Write is that of the log.
func (f *follower) Write(b []byte) (n int, err error) {
	f.locked(func() { n, err = f.log.Write(b) })
	return n, err
}

func (f *follower) logged() (text string) {
	f.locked(func() { text = f.log.String() })
	return text
}

// follow runs the Client until the test, or the caller, ends it.
func (f *follower) follow() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); f.Run(ctx) }()
	end = sync.OnceFunc(func() { cancel(); <-done })
	f.t.Cleanup(end)
	return end
}

// knows waits until exactly these Services are known.
func (f *follower) knows(services ...string) {
	f.t.Helper()
	wait.Until(f.t, fmt.Sprintf("%v are known", services), func() error {
		known := namesOf(f.Contents())
		return wait.Check(known == strings.Join(services, " "), "known are %s", known)
	})
}

// noticesEnd waits until the follower has logged that it has no connection.
func (f *follower) noticesEnd() {
	f.t.Helper()
	wait.Until(f.t, "the end is logged", func() error {
		return wait.Check(strings.Contains(f.logged(), "no connection to the daemon"), "the log is %q", f.logged())
	})
}

func namesOf(c *Contents) string {
	if c == nil {
		return "nothing"
	}
	var all []string
	for _, svc := range c.Zone.View().Services {
		all = append(all, svc.Service.Name)
	}
	return strings.Join(all, " ")
}

// daemon is a real feed, until it ends.
func (f *follower) daemon() (s *localdns.Server, end func()) {
	f.t.Helper()
	l, err := net.Listen("unix", f.socket)
	if err != nil {
		f.t.Fatal(err)
	}
	s = localdns.NewServer(localdns.Config{Node: "bj-3", Domain: "cluster.local", Service: types.NamespacedName{Namespace: "kube-system", Name: "kube-dns"}})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	end = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Error(err)
		}
	})
	f.t.Cleanup(end)
	return s, end
}

func viewOf(services ...string) dnsview.View {
	v := dnsview.View{Node: "bj-3", Namespaces: []string{"default"}}
	for _, name := range services {
		v.Services = append(v.Services, &dnsview.Names{Service: types.NamespacedName{Namespace: "default", Name: name}, Kind: dnsview.Headless, Endpoints: []dnsview.Endpoint{{Hostname: "one", Addr: netip.MustParseAddr("10.0.0.7")}}})
	}
	return v
}

// TestFollows: what the daemon publishes is known, and the daemon hears of that, and of where this
// server answers.
func TestFollows(t *testing.T) {
	f := newFollower(t, "")
	s, _ := f.daemon()
	f.follow()
	s.Publish(topologytest.Decided(viewOf("a", "b")), time.Now())
	f.knows("a", "b")
	s.Publish(topologytest.Decided(viewOf("b", "c")), time.Now())
	f.knows("b", "c")
	if _, _, exists := f.Contents().Zone.Lookup("c.default.svc", names.WantFirst, 1, 0); !exists {
		t.Error("the index lacks the Service that came last")
	}
	f.locked(func() { f.serving = []netip.AddrPort{local} })
	f.Moved()
	wait.Until(t, "the daemon has received the address", func() error {
		all := s.Clients()
		return wait.Check(len(all) == 1 && all[0].Behind.IsZero() && slices.Equal(all[0].Serving, []netip.AddrPort{local}), "the clients are %+v", all)
	})
}

// TestDaemonRestarts: what is known stays while there is no daemon, and another one replaces it as
// a whole, although its generations begin at one again.
func TestDaemonRestarts(t *testing.T) {
	f := newFollower(t, "")
	s, end := f.daemon()
	f.follow()
	s.Publish(topologytest.Decided(viewOf("a")), time.Now())
	f.knows("a")
	s.Publish(topologytest.Decided(viewOf("a", "b")), time.Now())
	f.knows("a", "b")
	end()
	f.noticesEnd()
	f.knows("a", "b")
	s, _ = f.daemon()
	s.Publish(topologytest.Decided(viewOf("c")), time.Now())
	f.knows("c")
	wait.Until(t, "the client has the last generation", func() error {
		all := s.Clients()
		return wait.Check(len(all) == 1 && all[0].Behind.IsZero(), "the clients are %+v", all)
	})
}

// frames are what a daemon writes.
func frames(write func(w *dnsfeed.Writer) error) []byte {
	var out bytes.Buffer
	if err := write(dnsfeed.NewWriter(&out)); err != nil {
		panic(err) // a buffer takes everything
	}
	return out.Bytes()
}

// TestUnreadable: a connection that brings what cannot be read ends, what was known before stays,
// and the next connection is as good as any.
func TestUnreadable(t *testing.T) {
	hello := frames(func(w *dnsfeed.Writer) error { return w.Hello(dnsfeed.Hello{Node: "bj-3", Domain: "cluster.local"}) })
	whole := frames(func(w *dnsfeed.Writer) error {
		u := dnsfeed.WholeOf(viewOf("a"))
		u.Generation = 1
		return w.Update(u)
	})
	change := frames(func(w *dnsfeed.Writer) error {
		u := dnsfeed.Between(viewOf("a"), viewOf("a", "b"))
		u.Generation = 2
		return w.Update(u)
	})
	for _, c := range []struct {
		name, want string
		text       []byte
	}{
		{"half of a change", "a", bytes.Join([][]byte{hello, whole, change[:len(change)-3]}, nil)},
		{"a frame that is too long", "a", bytes.Join([][]byte{hello, whole, binary.BigEndian.AppendUint32(nil, dnsfeed.MaxFrame+1), {change[4]}}, nil)},
		{"no CBOR", "a", bytes.Join([][]byte{hello, whole, {0, 0, 0, 3, change[4], 0xff, 0xff}}, nil)},
		{"a change at first", "nothing", bytes.Join([][]byte{hello, change}, nil)},
		{"no greeting", "nothing", whole},
		{"another program", "nothing", []byte("HTTP/1.1 400 Bad Request\r\n\r\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFollower(t, "")
			l, err := net.Listen("unix", f.socket)
			if err != nil {
				t.Fatal(err)
			}
			f.follow()
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write(c.text); err != nil {
				t.Fatal(err)
			}
			if c.want != "nothing" {
				f.knows(c.want)
			}
			_ = l.Close()
			if !strings.HasPrefix(c.name, "half") {
				// The other side ends the connection, without waiting for more.
				if err := conn.SetReadDeadline(time.Now().Add(waitTimeout)); err != nil {
					t.Fatal(err)
				}
				if _, err := new(bytes.Buffer).ReadFrom(conn); err != nil {
					t.Fatalf("the connection stays: %v", err)
				}
			}
			_ = conn.Close()
			f.noticesEnd()
			if got := namesOf(f.Contents()); got != c.want {
				t.Errorf("%s is known, want %s", got, c.want)
			}
			s, _ := f.daemon()
			s.Publish(topologytest.Decided(viewOf("d")), time.Now())
			f.knows("d")
		})
	}
}

// TestKept: what was known last is known again after a restart without a daemon.
func TestKept(t *testing.T) {
	f := newFollower(t, filepath.Join(t.TempDir(), "names"))
	s, _ := f.daemon()
	end := f.follow()
	s.Publish(topologytest.Decided(viewOf("a")), time.Now())
	f.knows("a")
	s.Publish(topologytest.Decided(viewOf("a", "b")), time.Now())
	f.knows("a", "b")
	end() // before the second write is due
	later := newFollower(t, f.file)
	later.knows("a", "b")
	if later.applied != 1 || later.logged() != "" {
		t.Errorf("applied %d times, logged %q", later.applied, later.logged())
	}
	if c := later.Contents(); c.Hello.Domain != "cluster.local" || c.Hello.Service != "kube-system/kube-dns" {
		t.Errorf("the greeting of the daemon before is %+v", c.Hello)
	}
	if info, err := os.Stat(f.file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read the file: %v, %v", info, err)
	}
}

// TestFileCannotBeRead: such a file is as none, and the log says so; no file is no news.
func TestFileCannotBeRead(t *testing.T) {
	var good bytes.Buffer
	if err := dnsfeed.WriteFile(&good, dnsfeed.Hello{Node: "bj-3", Domain: "cluster.local"}, viewOf("a")); err != nil {
		t.Fatal(err)
	}
	damaged := bytes.Clone(good.Bytes())
	damaged[len(damaged)/2] ^= 1
	// The version is the first field of the greeting, which is the first frame.
	later := bytes.Replace(good.Bytes()[:good.Len()-sha256.Size], []byte{1, dnsfeed.Version}, []byte{1, dnsfeed.Version + 1}, 1)
	sum := sha256.Sum256(later)
	later = append(later, sum[:]...)
	if _, _, err := dnsfeed.ReadFile(later); !errors.Is(err, dnsfeed.ErrVersion) {
		t.Fatalf("a file of another version: %v", err)
	}
	for name, text := range map[string][]byte{
		"another version": later, "damaged": damaged, "cut": good.Bytes()[:good.Len()-1], "empty": {}, "longer": append(bytes.Clone(good.Bytes()), 0),
	} {
		file := filepath.Join(t.TempDir(), "names")
		if err := os.WriteFile(file, text, 0o600); err != nil {
			t.Fatal(err)
		}
		f := newFollower(t, file)
		if f.Contents() != nil || f.applied > 0 {
			t.Errorf("%s: %s is known", name, namesOf(f.Contents()))
		}
		if !strings.Contains(f.logged(), "cannot be read") || !strings.Contains(f.logged(), file) {
			t.Errorf("%s: the log does not say so: %s", name, f.logged())
		}
	}
	for name, file := range map[string]string{"no file": filepath.Join(t.TempDir(), "names"), "no path": ""} {
		if f := newFollower(t, file); f.Contents() != nil || f.logged() != "" {
			t.Errorf("%s: %s is known, logged %q", name, namesOf(f.Contents()), f.logged())
		}
	}
}

// TestKeepsLargeServices: what is known of a large Service stays until the daemon sends it.
func TestKeepsLargeServices(t *testing.T) {
	f := newFollower(t, "")
	take := func(want string, updates ...dnsfeed.Update) {
		t.Helper()
		text := frames(func(w *dnsfeed.Writer) (err error) {
			for _, u := range updates {
				err = errors.Join(err, w.Update(u))
			}
			return err
		})
		p := &progress{updated: make(chan struct{}, 1)}
		if err := f.takeUpdates(dnsfeed.Hello{}, dnsfeed.NewReader(bytes.NewReader(text)), p); !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		if got := namesOf(f.Contents()); got != want {
			t.Errorf("%s is known, want %s", got, want)
		}
	}
	later := dnsfeed.WholeOf(viewOf("b"))
	later.Later = []types.NamespacedName{{Namespace: "default", Name: "a"}, {Namespace: "default", Name: "new"}}
	take("b", later)
	take("a b", dnsfeed.WholeOf(viewOf("a", "b", "c")), later)
	take("b", later, dnsfeed.Update{Removed: later.Later})
}
