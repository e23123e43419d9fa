package netns

import (
	"errors"
	"fmt"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// NewNamespace makes a network namespace outside of any Lab: it has nothing but a loopback, which is up. It
// lives until Close, or as long as something else keeps it.
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

// Close gives up a namespace of NewNamespace or OpenNamespace, and ends the programs that were started in it.
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
