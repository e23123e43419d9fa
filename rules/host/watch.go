package host

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink"
)

const (
	firstResubscribe = 100 * time.Millisecond
	lastResubscribe  = 10 * time.Second
)

// Watch tells that an interface address may have come or gone: receive, then Read. Many
// changes may be one receive. A subscription that breaks is made anew, and counts as a
// change because some may have been lost in between. It ends with ctx; the channel is never
// closed.
//
// The subscription belongs to the network namespace of the calling thread.
func Watch(ctx context.Context) (<-chan struct{}, error) {
	return watch(ctx, subscribe)
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

func watch(ctx context.Context, subscribe subscription) (<-chan struct{}, error) {
	current, end := context.WithCancel(ctx)
	updates, err := subscribe(current.Done())
	if err != nil {
		end()
		return nil, err
	}
	changed := make(chan struct{}, 1)
	go func() {
		for {
			for range updates {
				mark(changed)
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
	for wait := firstResubscribe; ; wait = min(2*wait, lastResubscribe) {
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
