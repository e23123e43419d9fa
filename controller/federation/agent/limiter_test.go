package agent

import (
	"fmt"
	"testing"
	"time"
)

// TestLimiter: one address that asks for more than it may leaves room for others, and all of them
// together have a bound.
func TestLimiter(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	newAt := func() *limiter { return newLimiter(func() time.Time { return now }) }
	ask := func(g *limiter, from string, times int, stays bool) int {
		admitted := 0
		for range times {
			leave, ok := g.enter(from)
			if !ok {
				continue
			}
			if admitted++; !stays {
				leave()
			}
		}
		return admitted
	}
	const greedy, flux = "192.0.2.1:5", "[2001:db8::1]:5"

	g := newAt()
	if got := ask(g, greedy, 1000, false); got != peerFetchesBurst {
		t.Errorf("one address is answered %d times", got)
	}
	if got := ask(g, "[::ffff:192.0.2.1]:6", 1, false); got != 0 {
		t.Error("another spelling is another address")
	}
	if ask(g, flux, 1, false) != 1 {
		t.Error("another address is locked out")
	}
	now = now.Add(time.Second)
	if got := ask(g, greedy, 1000, false); got != peerFetchesASecond {
		t.Errorf("a second later it is answered %d times", got)
	}

	g = newAt()
	if got := ask(g, greedy, 100, true); got != peerFetchesMax {
		t.Errorf("one address has %d requests at the same time", got)
	}
	if ask(g, flux, 1, true) != 1 {
		t.Error("slow readers lock another address out")
	}

	g = newAt()
	total := 0
	for i := range 2 * peersMax {
		total += ask(g, fmt.Sprintf("192.0.2.%d:%d", i%256, i), 2, false)
	}
	if total != fetchesBurst {
		t.Errorf("all together are answered %d times", total)
	}
	for i := range peersMax {
		ask(g, fmt.Sprintf("198.51.100.%d:1", i), 1, false)
	}
	if len(g.each) > peersMax {
		t.Errorf("%d addresses are remembered", len(g.each))
	}
	now = now.Add(time.Minute)
	if ask(g, flux, 1, false) != 1 || len(g.each) != 1 {
		t.Errorf("those that are silent are not forgotten: %d", len(g.each))
	}
	if ask(g, "none", 1, false) != 0 {
		t.Error("what is no address is admitted")
	}
}
