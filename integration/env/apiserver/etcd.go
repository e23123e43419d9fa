package apiserver

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// etcd is a running etcd. Its own JSON gateway is enough for its requests here, so that no etcd
// client is needed.
type etcd struct {
	*Child
	client netip.AddrPort
	http   http.Client
}

// startEtcd starts an etcd that listens on loopback only and never waits for the disk.
func startEtcd(ctx context.Context, o Options) (*etcd, error) {
	ports, err := FreePorts(o.Namespace, 2)
	if err != nil {
		return nil, fmt.Errorf("choosing ports for etcd: %w", err)
	}
	client, peer := "http://"+ports[0].String(), "http://"+ports[1].String()
	child, err := StartChild(Spec{
		Name: "etcd", Path: o.Tools.Path("etcd"), Dir: o.Dir, Namespace: o.Namespace,
		Args: []string{
			"--data-dir=" + dataDir(o),
			"--listen-client-urls=" + client, "--advertise-client-urls=" + client,
			"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer,
			"--initial-cluster=default=" + peer,
			"--unsafe-no-fsync", "--log-level=warn", "--snapshot-count=10000",
		},
		Env: []string{"GOGC=50"},
	})
	if err != nil {
		return nil, err
	}
	e := &etcd{Child: child, client: ports[0]}
	e.http.Transport = &http.Transport{DialContext: Dialer(o.Namespace), DisableKeepAlives: true}
	if err := child.WaitFor(ctx, func(ctx context.Context) error { _, err := e.revision(ctx); return err }); err != nil {
		child.Stop(signalKill, 0)
		return nil, err
	}
	return e, nil
}

func dataDir(o Options) string { return filepath.Join(o.Dir, "etcd") }

// revision is the current revision of the store, which is what Kubernetes shows as resourceVersion.
func (e *etcd) revision(ctx context.Context) (int64, error) {
	var answer struct {
		Header struct {
			Revision string `json:"revision"`
		} `json:"header"`
	}
	if err := e.call(ctx, "/v3/maintenance/status", map[string]any{}, &answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.Header.Revision, 10, 64)
}

// compact forgets every revision before the given one.
func (e *etcd) compact(ctx context.Context, revision int64) error {
	request := map[string]any{"revision": strconv.FormatInt(revision, 10), "physical": true}
	return e.call(ctx, "/v3/kv/compaction", request, &struct{}{})
}

func (e *etcd) call(ctx context.Context, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encoding a request to etcd: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+e.client.String()+path, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("making a request to etcd: %w", err)
	}
	response, err := e.http.Do(r)
	if err != nil {
		return fmt.Errorf("asking etcd: %w", err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading etcd's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd answers %s to %s: %s", response.Status, path, text)
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return fmt.Errorf("reading etcd's answer to %s: %w", path, err)
	}
	return nil
}

// Servers get ports below those that the kernel gives to clients (32768 and up, by default): a client
// cannot then take the port of an API server that is down for a moment.
const firstPort, lastPort = 20000, 32000

// FreePorts finds TCP ports on a namespace's loopback that no server listens on and that no running
// process has chosen; nil is the caller's namespace.
func FreePorts(ns Namespace, count int) ([]netip.AddrPort, error) {
	var ports []netip.AddrPort
	err := Within(ns, func() (err error) {
		ports, err = listenable(count)
		return err
	})
	return ports, err
}

func listenable(count int) ([]netip.AddrPort, error) {
	var ports []netip.AddrPort
	var last error
	for range 1000 {
		addr := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), uint16(firstPort+rand.IntN(lastPort-firstPort)))
		if !reserve(addr.Port()) {
			continue
		}
		listener, err := net.Listen("tcp", addr.String())
		if err != nil {
			last = err
			continue
		}
		defer listener.Close() // all are held until the last is found, so that they differ
		if ports = append(ports, addr); len(ports) == count {
			return ports, nil
		}
	}
	return nil, fmt.Errorf("no free port between %d and %d: %w", firstPort, lastPort, last)
}

// reserve makes a port of the current network namespace this process's, among all that ask, until
// it ends: between FreePorts and the start of who listens there, another FreePorts may choose. The
// reservation is an abstract socket, whose name is the namespace's, and which stays open.
func reserve(port uint16) bool {
	socket, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return true // then there are no reservations, as before
	}
	if unix.Bind(socket, &unix.SockaddrUnix{Name: fmt.Sprintf("@gridproxy-port-%d", port)}) != nil {
		_ = unix.Close(socket)
		return false
	}
	return true
}

// Dialer connects from inside a namespace; nil is the caller's. The address must be a literal IP: a name would be
// resolved on another thread, which stands elsewhere.
func Dialer(ns Namespace) dialFunc {
	plain := net.Dialer{FallbackDelay: -1}
	if ns == nil {
		return plain.DialContext
	}
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = ns.Do(func() error {
			conn, err = plain.DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}
