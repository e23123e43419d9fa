package localdns

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/dnsfeed"
	"gridproxy/topology/dnsview"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"
)

// Config is what a Server says, and to whom it logs.
type Config struct {
	Node, Domain string
	Service      types.NamespacedName // the cluster's DNS
	Log          *slog.Logger         // nil = nothing is logged
}

// Server gives the latest DNSView to each DNS server that connects. Safe for concurrent use.
type Server struct {
	config Config
	moved  chan struct{}

	mu         sync.Mutex
	view       dnsview.View
	generation uint64        // of view
	due        uint64        // the last generation that changed more than large Services
	published  time.Time     // of due
	next       chan struct{} // closed by the next Publish
	clients    map[*peer]struct{}
}

// NewServer returns a Server that has no names before the first Publish.
func NewServer(c Config) *Server {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return &Server{config: c, moved: make(chan struct{}, 1), next: make(chan struct{}), clients: map[*peer]struct{}{}}
}

// Publish sets what DNS answers from now on. A view that changes nothing is not sent.
func (s *Server) Publish(v topology.DNSView, now time.Time) {
	names := v.Names()
	s.mu.Lock()
	defer s.mu.Unlock()
	u := dnsfeed.Between(s.view, names)
	if s.generation > 0 && u.Empty() {
		return
	}
	s.view = names
	s.generation++
	close(s.next)
	s.next = make(chan struct{})
	if s.due > 0 && !u.Urgent() {
		return
	}
	s.due, s.published = s.generation, now
	for c := range s.clients {
		c.published(now)
	}
}

// latest returns the view, its generation, and a channel that is closed when there is a later
// view. Generation 0 means that there is none yet.
func (s *Server) latest() (dnsview.View, uint64, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.view, s.generation, s.next
}

// Clients returns the DNS servers that are connected.
func (s *Server) Clients() []Client {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Client, 0, len(s.clients))
	for c := range s.clients {
		all = append(all, c.state)
	}
	return all
}

// Serve accepts connections until ctx ends, which is no error, or that fails. It then closes
// the listener and all connections, and waits for their end.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	var running sync.WaitGroup
	defer running.Wait()
	for {
		conn, err := l.Accept()
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			cancel()
			return fmt.Errorf("accepting DNS servers at the feed: %w", err)
		}
		running.Go(func() { s.attend(ctx, conn) })
	}
}

func (s *Server) attend(ctx context.Context, conn net.Conn) {
	defer conn.Close() //nolint:errcheck // the client has closed it, or is to end
	pid, err := allowed(conn)
	if err != nil {
		s.config.Log.Warn("a connection to the feed of DNS names is refused", "err", err)
		return
	}
	c := &peer{state: Client{PID: pid, Reported: time.Now()}}
	if !s.add(c) {
		s.config.Log.Warn(fmt.Sprintf("a connection to the feed of DNS names is refused: %d are open", clientsMax))
		return
	}
	defer s.remove(c)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	var telling sync.WaitGroup
	telling.Go(func() {
		err := s.tell(ctx, conn)
		s.mu.Lock()
		defer s.mu.Unlock()
		c.stuck = err
	})
	err = s.hear(conn, c)
	cancel()
	telling.Wait()
	s.config.Log.Info("a DNS server of this node has left the feed", "err", err)
}

func (s *Server) add(c *peer) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clients) >= clientsMax {
		return false
	}
	if s.generation > 0 {
		c.state.Behind = time.Now() // until it has the latest names
	}
	s.clients[c] = struct{}{}
	s.wake()
	return true
}

func (s *Server) remove(c *peer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.clients, c)
	s.wake()
}

// wake signals that a DNS server came, went, or serves elsewhere.
func (s *Server) wake() {
	select {
	case s.moved <- struct{}{}:
	default:
	}
}

// Moved returns a channel that receives after a DNS server came, went, or serves elsewhere.
func (s *Server) Moved() <-chan struct{} { return s.moved }

// allowed returns the PID of the process at the other end. It returns an error unless its user
// is root or that of this process. The mode of the socket refuses other users too.
func allowed(conn net.Conn) (pid int, err error) {
	socket, ok := conn.(*net.UnixConn)
	if !ok {
		return 0, errors.New("it is no unix socket")
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var failed error
	if err := raw.Control(func(fd uintptr) { peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if failed != nil {
		return 0, fmt.Errorf("asking who is at the other end: %w", failed)
	}
	if own := os.Geteuid(); !slices.Contains([]int{0, own}, int(peer.Uid)) {
		return 0, fmt.Errorf("process %d is of user %d; run the DNS server as root, or as user %d", peer.Pid, peer.Uid, own)
	}
	return int(peer.Pid), nil
}
