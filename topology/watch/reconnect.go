package watch

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"net/netip"
	"time"
)

// How soon a connection is tried again. client-go pauses for up to half a minute after some
// failures, and the kernel repeats the first packet of a connection ever more rarely: without
// these, a site whose link has returned would follow changes late, such as Pods that have moved.
const (
	// oneAttempt is for one attempt at an address. The kernel repeats a lost packet after 1 s and
	// after 3 s.
	oneAttempt = 5 * time.Second
	// resolveLimit is for finding the address of a name besides: a resolver asks the second DNS server
	// after 5 s.
	resolveLimit = 10 * time.Second
	// connectPause is between two attempts, and up to as long again, so that not all nodes of a
	// cluster come at once.
	connectPause = time.Second
)

// ConnectLimit returns how long one attempt to connect to HOST:PORT may take. A name, which
// must be resolved, may take longer.
func ConnectLimit(address string) time.Duration {
	if _, err := netip.ParseAddrPort(address); err == nil {
		return oneAttempt
	}
	return oneAttempt + resolveLimit
}

// connected makes a request again until a connection can be made or ctx ends. Each outcome is
// reported to heard. Every other error, such as a status of the API server, is returned:
// client-go knows how long to pause then.
func connected[T any](ctx context.Context, pause time.Duration, heard func(context.Context, error), request func() (T, error)) (T, error) {
	for {
		out, err := request()
		heard(ctx, err)
		if !isUnconnected(err) || !sleep(ctx, pause+rand.N(pause+1)) { //nolint:gosec // spreads attempts
			return out, err
		}
	}
}

// isUnconnected reports whether an error is that of making a connection.
func isUnconnected(err error) bool {
	failed, is := errors.AsType[*net.OpError](err)
	return is && failed.Op == "dial"
}
