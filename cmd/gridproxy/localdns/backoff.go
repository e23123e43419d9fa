package localdns

import (
	"fmt"
	"slices"
	"time"
)

// backoff is what decides when queries go back to the DNS servers of this node. It is a value.
type backoff struct {
	left []time.Time // when queries left them, within leftPeriod
	well time.Time   // since when they have been well without a break
}

// observed returns b after a look at the servers. well means that queries could go there: the
// servers were found well, and nothing prevents it.
func (b backoff) observed(now time.Time, well bool) backoff {
	b.left = slices.DeleteFunc(slices.Clone(b.left), func(at time.Time) bool { return now.Sub(at) >= leftPeriod })
	switch {
	case !well:
		b.well = time.Time{}
	case b.well.IsZero():
		b.well = now
	}
	return b
}

// after returns b after queries left the servers.
func (b backoff) after(now time.Time) backoff {
	b.left = append(slices.Clone(b.left), now)
	b.left = b.left[max(0, len(b.left)-leftMax):]
	return b
}

// total returns how long the servers must be well in all until queries go back to them.
func (b backoff) total() time.Duration {
	if len(b.left) < 2 {
		return 0
	}
	return min(returnDelay<<(len(b.left)-2), returnDelayMax)
}

// wait returns how long the servers must still be well until queries go back to them. It ends
// only for servers that are well.
func (b backoff) wait(now time.Time) time.Duration {
	if b.well.IsZero() {
		return b.total()
	}
	return max(0, b.total()-now.Sub(b.well))
}

// describe returns why queries do not go back to servers that are well.
func (b backoff) describe(now time.Time) string {
	return fmt.Sprintf("the DNS servers of this node have been well for %s, and must be for %s without a break, because queries left them %d times within %s",
		now.Sub(b.well).Round(time.Second), b.total(), len(b.left), leftPeriod)
}
