package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// datagram is how long a message over UDP or SCTP can be.
const datagram = 64 << 10

type server struct {
	node, pod, namespace, ip string
	unready                  atomic.Bool
}

func newServer(env func(string) string) *server {
	s := &server{node: env("NODE_NAME"), pod: env("POD_NAME"), namespace: env("POD_NAMESPACE"), ip: env("POD_IP")}
	if s.pod == "" {
		s.pod, _ = os.Hostname() // which of a Pod is its name; if it cannot be had, it is ""
	}
	s.unready.Store(env("READY") == "false")
	return s
}

// listen serves on ports like "8080/tcp 8080/udp", on all addresses of both families.
func (s *server) listen(ports string) error {
	for _, port := range strings.Fields(ports) {
		number, protocol, _ := strings.Cut(port, "/")
		n, err := strconv.ParseUint(number, 10, 16)
		if err != nil {
			return fmt.Errorf("reading PORTS, where %q is not like 8080/tcp: %w", port, err)
		}
		switch protocol {
		case "tcp":
			err = s.listenTCP(int(n))
		case "udp":
			err = s.listenUDP(int(n))
		case "sctp":
			err = s.listenSCTP(int(n))
		default:
			err = errors.New("the protocols are tcp, udp and sctp")
		}
		if err != nil {
			return fmt.Errorf("listening on %s: %w", port, err)
		}
	}
	return nil
}

func (s *server) listenTCP(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	web := &http.Server{Handler: s.routes(port), ReadHeaderTimeout: time.Minute}
	go web.Serve(l) //nolint:errcheck // it ends with the process
	return nil
}

func (s *server) routes(port int) *http.ServeMux {
	mux := http.NewServeMux()
	text := func(path string, answer func(*http.Request) string) {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, answer(r)) })
	}
	text("/", func(r *http.Request) string { return s.introduction(r, port) })
	text("/hostname", func(*http.Request) string { return s.pod })
	text("/clientip", func(r *http.Request) string { return plain(r.RemoteAddr) })
	text("/echo", func(r *http.Request) string { return r.FormValue("msg") })
	text("/ready", func(r *http.Request) string {
		s.unready.Store(r.FormValue("on") == "false")
		return "ok"
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) {
		if s.unready.Load() {
			http.Error(w, "unready by request", http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/shutdown", func(http.ResponseWriter, *http.Request) { os.Exit(0) })
	mux.HandleFunc("/stream", stream)
	return mux
}

// introduction has the lines of the manual's image that people look for.
func (s *server) introduction(r *http.Request, port int) string {
	return fmt.Sprintf(`Hostname: %[1]s

Pod Information:
	node name:	%[2]s
	pod name:	%[1]s
	pod namespace:	%[3]s
	pod IP:	%[4]s

Request Information:
	client_address=%[5]s
	method=%[6]s
	real path=%[7]s
	request_port=%[8]d
`, s.pod, s.node, s.namespace, s.ip, plain(r.RemoteAddr), r.Method, r.URL.Path, port)
}

// stream sends a line ten times a second until the client goes.
func stream(w http.ResponseWriter, r *http.Request) {
	for n := 0; ; n++ {
		if _, err := fmt.Fprintln(w, n); err != nil {
			return
		}
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// listenUDP answers from the address that it was asked at: a machine has several.
func (s *server) listenUDP(port int) error {
	conn, err := net.ListenUDP("udp", &net.UDPAddr{Port: port})
	if err != nil {
		return err
	}
	if err := tellDestination(conn); err != nil {
		return fmt.Errorf("asking to be told where datagrams are sent to: %w", err)
	}
	go func() {
		buf, control := make([]byte, datagram), make([]byte, 128)
		for {
			n, k, _, from, err := conn.ReadMsgUDPAddrPort(buf, control)
			if err != nil {
				continue // an error that an earlier answer met
			}
			// A client that is gone needs no answer.
			_, _, _ = conn.WriteMsgUDPAddrPort([]byte(s.answer(string(buf[:n]), plain(from.String()), port)), answerFrom(control[:k]), from)
		}
	}()
	return nil
}

// answer is to a message over UDP or SCTP.
func (s *server) answer(message, client string, port int) string {
	message = strings.TrimSpace(message)
	switch {
	case message == "hostname":
		return s.pod
	case message == "clientip":
		return client
	case message == "port":
		return strconv.Itoa(port)
	case message == "node":
		return s.node
	case strings.HasPrefix(message, "echo "):
		return strings.TrimPrefix(message, "echo ")
	}
	return "the questions are hostname, clientip, port, node and echo TEXT"
}

// plain is an address without the form that IPv4 has on a socket of both families.
func plain(address string) string {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return address
	}
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port()).String()
}

// tellDestination has the kernel add to each datagram which address it was sent to. The socket is
// one of both families, where IPv4 addresses have the form of IPv6.
func tellDestination(conn *net.UDPConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IPV6, unix.IPV6_RECVPKTINFO, 1)
	})
	return errors.Join(err, failed)
}

// answerFrom is what has the kernel send an answer from the address that was asked. The interface
// is left to the routes: nil, the kernel's own choice, where we do not know the control message.
func answerFrom(control []byte) []byte {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if m.Header.Level == unix.IPPROTO_IPV6 && m.Header.Type == unix.IPV6_PKTINFO && len(m.Data) >= unix.SizeofInet6Pktinfo {
			info := &unix.Inet6Pktinfo{}
			copy(info.Addr[:], m.Data)
			return unix.PktInfo6(info)
		}
	}
	return nil
}

// listenSCTP serves one-to-one associations. The standard library does not know the protocol.
func (s *server) listenSCTP(port int) error {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, unix.IPPROTO_SCTP)
	if err != nil {
		return fmt.Errorf("making a socket (does this kernel have SCTP?): %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet6{Port: port}); err != nil {
		return fmt.Errorf("binding it: %w", err)
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return fmt.Errorf("listening on it: %w", err)
	}
	go func() {
		for {
			conn, from, err := unix.Accept(fd)
			if errors.Is(err, unix.EINTR) || errors.Is(err, unix.ECONNABORTED) {
				continue
			}
			if err != nil {
				return
			}
			go s.converse(conn, from, port)
		}
	}()
	return nil
}

func (s *server) converse(fd int, from unix.Sockaddr, port int) {
	defer unix.Close(fd)
	client := ""
	if a, ok := from.(*unix.SockaddrInet6); ok {
		client = plain(netip.AddrPortFrom(netip.AddrFrom16(a.Addr), uint16(a.Port)).String())
	}
	buf := make([]byte, datagram)
	for {
		n, err := unix.Read(fd, buf)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || n == 0 {
			return
		}
		if _, err := unix.Write(fd, []byte(s.answer(string(buf[:n]), client, port))); err != nil {
			return
		}
	}
}
