package localdns

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// After these, DNS on this node goes back to the cluster's.
const (
	ReportWithin = 2 * time.Second // since the last report of a client, which makes two a second
	BehindFor    = 5 * time.Second // that a client has answered from older names
	AnswerWithin = 3 * time.Second // since the last answer to a query of the daemon's own, which is asked each second
)

// Client is what is known of a DNS server that is connected.
type Client struct {
	PID      int              // of its process; 0 = it is of another PID namespace
	Reported time.Time        // its last report, or when it connected
	Serving  []netip.AddrPort // where it answers; none = it does not yet
	Behind   time.Time        // since when it answers from older names; zero = it has all but large Services
}

// Answers are the last answers to the daemon's own queries.
type Answers struct{ UDP, TCP time.Time }

// WhyNot is why DNS must not be left to the DNS servers at an address; "" = it may be.
func WhyNot(now time.Time, at netip.AddrPort, clients []Client, answers Answers) string {
	serving := slices.DeleteFunc(slices.Clone(clients), func(c Client) bool { return !slices.Contains(c.Serving, at) })
	if len(serving) == 0 {
		return "no DNS server of this node serves there"
	}
	for _, c := range serving {
		if silent := now.Sub(c.Reported); silent > ReportWithin {
			return fmt.Sprintf("a DNS server of this node has not reported for %s: it hangs, and takes its share of the queries", silent.Round(time.Second))
		}
		if behind := now.Sub(c.Behind); !c.Behind.IsZero() && behind > BehindFor {
			return fmt.Sprintf("a DNS server of this node has answered from older names for %s", behind.Round(time.Second))
		}
	}
	for _, a := range []struct {
		network string
		last    time.Time
	}{{"UDP", answers.UDP}, {"TCP", answers.TCP}} {
		if a.last.IsZero() {
			return "it has not answered over " + a.network + " yet"
		}
		if silent := now.Sub(a.last); silent > AnswerWithin {
			return fmt.Sprintf("it has not answered over %s for %s", a.network, silent.Round(time.Second))
		}
	}
	return ""
}
