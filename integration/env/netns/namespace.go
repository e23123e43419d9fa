package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"gridproxy/integration/env/need"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// Namespace is one network namespace of a lab: a node, a Pod or the client outside.
type Namespace struct {
	Name  string
	Addrs []netip.Addr // its own addresses, the IPv4 ones first
	Env   []string     // added to the environment of every program that runs in it

	ns     netns.NsHandle
	links  *netlink.Handle
	spawn  *spawner
	source netip.Addr // of what is dialled; the zero Addr: the kernel chooses
}

// As is the namespace for a client that binds to one of its addresses before it connects.
func (n *Namespace) As(source netip.Addr) *Namespace {
	c := *n
	c.source = source
	return &c
}

// newNamespace makes a network namespace that lives as long as its handle.
func newNamespace(name string, spawn *spawner) (*Namespace, error) {
	var made netns.NsHandle
	err := onThread(func() (err error) {
		if made, err = netns.New(); err != nil {
			return err
		}
		return need.Settings()
	})
	if err != nil {
		return nil, fmt.Errorf("making the network namespace of %s (this needs root): %w", name, err)
	}
	links, err := netlink.NewHandleAt(made)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening netlink in %s: %w", name, err), made.Close())
	}
	return &Namespace{Name: name, ns: made, links: links, spawn: spawn}, nil
}

func (n *Namespace) close() error {
	n.links.Close()
	return n.ns.Close()
}

// Addr is the namespace's address of one family; the zero Addr if it has none.
func (n *Namespace) Addr(f Family) netip.Addr {
	for _, a := range n.Addrs {
		if f.Has(a) {
			return a
		}
	}
	return netip.Addr{}
}

// Do runs f on a thread that is inside the namespace. Sockets that f opens and programs
// that f starts belong to the namespace for good; goroutines that f starts do not.
func (n *Namespace) Do(f func() error) error {
	return onThread(func() error {
		if err := netns.Set(n.ns); err != nil {
			return fmt.Errorf("entering the network namespace of %s: %w", n.Name, err)
		}
		return f()
	})
}

// Run runs a program in the namespace to its end and returns what it wrote to standard
// output. An error carries what it wrote to standard error.
func (n *Namespace) Run(ctx context.Context, stdin io.Reader, name string, args ...string) ([]byte, error) {
	var out, diag bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), n.Env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, &out, &diag
	if err := n.Do(cmd.Run); err != nil {
		return out.Bytes(), fmt.Errorf("running %s on %s: %w: %s",
			strings.Join(append([]string{name}, args...), " "), n.Name, err, bytes.TrimSpace(diag.Bytes()))
	}
	return out.Bytes(), nil
}

// SetSysctl writes one value below /proc/sys/net, which shows the namespace of the thread
// that asks.
func (n *Namespace) SetSysctl(key, value string) error {
	path := filepath.Join("/proc/sys/net", strings.ReplaceAll(key, ".", "/"))
	return n.Do(func() error { return os.WriteFile(path, []byte(value), 0o644) })
}

// onThread runs f on a thread of its own that it may move to another network namespace.
// The thread is given back only once it is where it was before; else it ends.
func onThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := netns.Get()
		if err != nil {
			done <- fmt.Errorf("reading the network namespace of this thread: %w", err)
			return
		}
		defer home.Close()
		err = f()
		if back := netns.Set(home); back != nil {
			err = errors.Join(err, fmt.Errorf("returning to the first network namespace: %w", back))
		} else {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}
