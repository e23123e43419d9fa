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
	"slices"
	"strconv"
	"strings"

	"gridproxy/integration/env/need"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
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
func (n *Namespace) Addr(f Family) netip.Addr { return f.Pick(n.Addrs...) }

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

// NewNamespace makes a network namespace outside of any Lab: it has nothing but a loopback, which
// is up. It lives until Close, or as long as something else keeps it.
func NewNamespace(name string) (*Namespace, error) {
	n, err := newNamespace(name, newSpawner())
	if err != nil {
		return nil, err
	}
	lo, err := n.links.LinkByName("lo")
	if err == nil {
		err = n.links.LinkSetUp(lo)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("setting loopback on %s up: %w", name, err), n.Close())
	}
	return n, nil
}

// OpenNamespace opens a network namespace that another process made, by a file of it:
// /proc/PID/ns/net.
func OpenNamespace(name, path string) (*Namespace, error) {
	handle, err := netns.GetFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("opening the network namespace of %s: %w", name, err)
	}
	links, err := netlink.NewHandleAt(handle)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening netlink in %s: %w", name, err), handle.Close())
	}
	return &Namespace{Name: name, ns: handle, links: links, spawn: newSpawner()}, nil
}

// Close gives up a namespace of NewNamespace or OpenNamespace, and ends the programs that were
// started in it.
func (n *Namespace) Close() error {
	n.spawn.close()
	return n.close()
}

// Links is netlink in the namespace.
func (n *Namespace) Links() *netlink.Handle { return n.links }

// FD is the open file of the namespace, for netlink.
func (n *Namespace) FD() int { return int(n.ns) }

// BeRouter has the namespace forward for others, and tell senders at once what is unreachable.
func (n *Namespace) BeRouter() error { return n.beRouter() }

// FlowElsewhere returns an error that describes a flow through the namespace to one of these
// addresses that an address outside of by answers, or nil. A client that takes the port of such a
// flow reaches the same server.
func (n *Namespace) FlowElsewhere(to, by []netip.Addr) error {
	for _, family := range []netlink.InetFamily{unix.AF_INET, unix.AF_INET6} {
		flows, err := n.links.ConntrackTableList(netlink.ConntrackTable, family)
		if err != nil {
			return fmt.Errorf("listing flows in %s: %w", n.Name, err)
		}
		for _, f := range flows {
			asked, _ := netip.AddrFromSlice(f.Forward.DstIP)
			answers, _ := netip.AddrFromSlice(f.Reverse.SrcIP)
			if slices.Contains(to, asked.Unmap()) && !slices.Contains(by, answers.Unmap()) {
				return fmt.Errorf("in %s there is %s", n.Name, f)
			}
		}
	}
	return nil
}

// Overflows is how many UDP datagrams the namespace has dropped because a program did not read them
// in time. That is so on a machine that has too much to do.
func (n *Namespace) Overflows() (dropped int, err error) {
	err = n.Do(func() error {
		for _, table := range []string{"snmp", "snmp6"} {
			text, err := os.ReadFile("/proc/thread-self/net/" + table)
			if err != nil {
				return fmt.Errorf("reading what was dropped in %s: %w", n.Name, err)
			}
			dropped += rcvbufErrors(string(text))
		}
		return nil
	})
	return dropped, err
}

// rcvbufErrors reads a counter of the kernel. In snmp, the names of columns are in the row before.
func rcvbufErrors(table string) (n int) {
	var names []string
	for line := range strings.Lines(table) {
		fields := strings.Fields(line)
		switch {
		case len(fields) == 2 && fields[0] == "Udp6RcvbufErrors":
			n, _ = strconv.Atoi(fields[1])
		case len(fields) == 0 || fields[0] != "Udp:":
		case names == nil:
			names = fields
		default:
			if i := slices.Index(names, "RcvbufErrors"); i >= 0 && i < len(fields) {
				n, _ = strconv.Atoi(fields[i])
			}
		}
	}
	return n
}
