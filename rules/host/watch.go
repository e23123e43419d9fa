package host

import (
	"context"
	"fmt"
	"time"

	"gridproxy/rules/kernelsocket"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Watch signals that an interface address may have changed: receive, then call Read. Many changes
// may be one signal. Addresses of ServiceLink are ours and are not signalled. A subscription that
// breaks is replaced, and counts as a change because some changes may have been lost. Watch ends
// with ctx; the channel is never closed.
//
// The subscription belongs to the network namespace of the calling thread.
func Watch(ctx context.Context) (<-chan struct{}, error) {
	links, err := kernelsocket.Open(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("opening a netlink socket: %w", err)
	}
	context.AfterFunc(ctx, links.Close)
	own := serviceLinkFilter{nameOf: func(index int) (string, error) {
		link, err := links.LinkByIndex(index)
		if err != nil {
			return "", err
		}
		return link.Attrs().Name, nil
	}}
	return watchUpdates(ctx, subscribe, own.has)
}

// serviceLinkFilter recognises addresses of ServiceLink. That link changes more often than all
// others, so its index is remembered. The kernel does not reuse an index.
type serviceLinkFilter struct {
	nameOf func(index int) (string, error)
	index  int // 0 = not seen yet
}

// has reports whether the address that changed is on ServiceLink. If the link has been deleted, its
// name is unknown, and the address counts as one of the machine.
func (l *serviceLinkFilter) has(u netlink.AddrUpdate) bool {
	if u.LinkIndex == l.index && l.index != 0 {
		return true
	}
	name, err := l.nameOf(u.LinkIndex)
	if err != nil || name != ServiceLink {
		return false
	}
	l.index = u.LinkIndex
	return true
}

// subscription delivers address updates until done is closed or it breaks; then it is
// closed.
type subscription func(done <-chan struct{}) (<-chan netlink.AddrUpdate, error)

func subscribe(done <-chan struct{}) (<-chan netlink.AddrUpdate, error) {
	updates := make(chan netlink.AddrUpdate)
	if err := netlink.AddrSubscribe(updates, done); err != nil {
		return nil, fmt.Errorf("subscribing to this machine's address changes over netlink: %w", err)
	}
	return updates, nil
}

// watchUpdates does what Watch does, with updates of subscribe. It leaves out those for which
// skip returns true, which it asks from one goroutine.
func watchUpdates(ctx context.Context, subscribe subscription, skip func(netlink.AddrUpdate) bool) (<-chan struct{}, error) {
	current, end := context.WithCancel(ctx)
	updates, err := subscribe(current.Done())
	if err != nil {
		end()
		return nil, err
	}
	changed := make(chan struct{}, 1)
	go func() {
		for {
			for u := range updates {
				if !skip(u) {
					mark(changed)
				}
			}
			end() // closes the broken socket
			if updates, end = resubscribe(ctx, subscribe); updates == nil {
				return
			}
			mark(changed)
		}
	}()
	return changed, nil
}

// resubscribe tries until it has a subscription, with what ends it; nil once ctx has ended.
func resubscribe(ctx context.Context, subscribe subscription) (<-chan netlink.AddrUpdate, context.CancelFunc) {
	for wait := subscribeDelay; ; wait = min(2*wait, subscribeDelayMax) {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-time.After(wait):
		}
		current, end := context.WithCancel(ctx)
		if updates, err := subscribe(current.Done()); err == nil {
			return updates, end
		}
		end()
	}
}

// mark leaves one receive in changed, however often it is called before.
func mark(changed chan<- struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}
