package agent

import (
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// limiter bounds how often archives are asked for: each request is one to the API server too.
type limiter struct {
	now func() time.Time

	mu   sync.Mutex
	all  *rate.Limiter
	busy int
	each map[netip.Addr]*peer
}

// peer is an address that asks for archives.
type peer struct {
	limit *rate.Limiter
	busy  int // its requests that are being answered
}

func newLimiter(now func() time.Time) *limiter {
	return &limiter{now: now, all: rate.NewLimiter(fetchesASecond, fetchesBurst), each: map[netip.Addr]*peer{}}
}

// enter reports whether a request from IP:PORT is admitted. If it is, the caller calls leave
// after the answer; otherwise leave is nil.
func (l *limiter) enter(from string) (leave func(), admitted bool) {
	place, err := netip.ParseAddrPort(from)
	if err != nil {
		return nil, false
	}
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	one := l.of(place.Addr().Unmap(), now)
	if one == nil || l.busy >= fetchesMax || one.busy >= peerFetchesMax || !one.limit.AllowN(now, 1) || !l.all.AllowN(now, 1) {
		return nil, false
	}
	l.busy++
	one.busy++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.busy--
		one.busy--
	}, true
}

// of returns what is known of an address, nil if there are too many. Those that have asked for
// nothing lately are forgotten when there are many. The caller holds l.mu.
func (l *limiter) of(address netip.Addr, now time.Time) *peer {
	if known := l.each[address]; known != nil {
		return known
	}
	if len(l.each) >= peersMax {
		for a, one := range l.each {
			if one.busy == 0 && one.limit.TokensAt(now) >= peerFetchesBurst {
				delete(l.each, a)
			}
		}
	}
	if len(l.each) >= peersMax {
		return nil
	}
	one := &peer{limit: rate.NewLimiter(peerFetchesASecond, peerFetchesBurst)}
	l.each[address] = one
	return one
}
