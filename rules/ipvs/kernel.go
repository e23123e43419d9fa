package ipvs

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"time"

	"gridproxy/rules/kernelsocket"

	"github.com/moby/ipvs"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// procServers lists every virtual server of the calling thread's network namespace. It exists if
// and only if the kernel has IPVS. /proc/net would show the namespace of the main thread.
const procServers = "/proc/thread-self/net/ip_vs"

// Messages counts the messages that were sent to the kernel to change something, by object. Reading
// is not counted.
type Messages struct {
	Servers, Destinations, Addresses, Entries, Sets, Links int
}

// kernel reads and writes the virtual servers, the link with its addresses and the sets of the
// network namespace of the thread that opened it. One goroutine uses it, in that namespace:
// moby/ipvs hangs for good if two use it at once.
type kernel struct {
	servers *ipvs.Handle    // nil = the kernel has no IPVS, so it has no servers
	reopen  error           // why the socket of servers is closed
	links   *netlink.Handle // links, addresses and routes
	sets    *netlink.Handle
	link    netlink.Link // Link; nil = it does not exist
	// sourceRoutes are the addresses that addSourceRoute was called for; nil = not read yet.
	sourceRoutes map[netip.Addr]struct{}
	sent         Messages
}

func openKernel() (*kernel, error) {
	k := &kernel{}
	err := k.openServers()
	if err != nil {
		return nil, err
	}
	if k.links, err = kernelsocket.Open(unix.NETLINK_ROUTE); err != nil {
		k.close()
		return nil, fmt.Errorf("opening a netlink socket for links: %w", err)
	}
	if k.sets, err = kernelsocket.Open(unix.NETLINK_NETFILTER); err != nil {
		k.close()
		return nil, fmt.Errorf("opening a netlink socket for ipsets: %w", err)
	}
	return k, nil
}

// openServers opens the socket for IPVS, if the kernel has IPVS and the socket is not open yet. On
// a kernel without IPVS moby/ipvs reports success for everything, so it is never used there.
func (k *kernel) openServers() (err error) {
	if k.servers != nil || !hasIPVS() {
		return nil
	}
	if k.servers, err = ipvs.New(""); err != nil {
		return fmt.Errorf("opening a netlink socket for IPVS: %w", err)
	}
	return nil
}

func (k *kernel) close() {
	if k.servers != nil {
		k.servers.Close()
	}
	if k.links != nil {
		k.links.Close()
	}
	if k.sets != nil {
		k.sets.Close()
	}
}

// hasIPVS reports whether IPVS is loaded or built in.
func hasIPVS() bool {
	_, err := os.Stat(procServers)
	return err == nil
}

func (k *kernel) do(op operation) error {
	key := op.Destination
	switch op.Kind {
	case addEntry:
		return k.addEntry(op.Entry)
	case deleteEntry:
		return k.deleteEntry(op.Entry)
	case addServer:
		return k.addServer(key.Server, op.Server)
	case updateServer:
		return k.updateServer(key.Server, op.Server)
	case deleteServer:
		return k.deleteServer(key.Server)
	case addDestination, updateDestination:
		return k.putDestination(key, Destination{Weight: op.Weight}, op.Kind == updateDestination)
	case deleteDestination:
		return k.deleteDestination(key)
	case addAddress:
		return k.addAddress(op.Addr)
	case deleteAddress:
		return k.deleteAddress(op.Addr)
	default:
		return fmt.Errorf("unknown kind of operation: %d", op.Kind)
	}
}

// errNoAnswer reports that the kernel did not answer within a limit. Other messages would wait as
// long, so the sync ends.
var errNoAnswer = errors.New("the kernel did not answer in time; look for the cause with dmesg, and restart the node if it stays so")

// ask runs one call of moby/ipvs, which waits for its answer without limit. After limit it
// closes the socket, which ends the call, opens another one in the calling thread's network
// namespace, and returns errNoAnswer. So it does if an earlier call could not open one.
func (k *kernel) ask(limit time.Duration, call func(*ipvs.Handle) error) error {
	if k.reopen != nil {
		if err := k.openAgain(); err != nil {
			return errors.Join(errNoAnswer, err)
		}
	}
	late := time.AfterFunc(limit, k.servers.Close)
	err := call(k.servers)
	if late.Stop() {
		return err
	}
	return errors.Join(errNoAnswer, err, k.openAgain())
}

// openAgain replaces a closed socket. It keeps its error, so that the next call tries again.
func (k *kernel) openAgain() error {
	fresh, err := ipvs.New("")
	if err != nil {
		k.reopen = fmt.Errorf("opening a netlink socket for IPVS: %w", err)
		return k.reopen
	}
	k.servers, k.reopen = fresh, nil
	return nil
}

// hangs reports whether an error says that the kernel did not answer.
func hangs(err error) bool {
	return errors.Is(err, errNoAnswer) || errors.Is(err, unix.EAGAIN) // of netlink sockets
}
