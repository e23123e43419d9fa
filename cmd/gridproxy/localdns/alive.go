package localdns

import (
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// Client is what is known of a DNS server that is connected.
type Client struct {
	PID      int              // of its process; 0 = it is of another PID namespace
	Reported time.Time        // its last report, or when it connected
	Serving  []netip.AddrPort // where it answers; none = it does not yet
	Behind   time.Time        // since when it answers from older names; zero = it has all but large Services
	Answered []Answers        // when its counts were last reported to have grown, of each of Serving
}

// answered returns when the client was last reported to have answered any query at an address
// that it serves. The times are zero for an older server, which does not count answers.
func (c Client) answered(at netip.AddrPort) Answers {
	if i := slices.Index(c.Serving, at); i >= 0 && i < len(c.Answered) {
		return c.Answered[i]
	}
	return Answers{}
}

// Answers are the last times at which queries were answered, over each network.
type Answers struct{ UDP, TCP time.Time }

// ownAnswers are the last answers to the daemon's own queries.
type ownAnswers struct {
	Answers
	WrongUDP, WrongTCP bool // the last one was wrong
}

// whyNot returns why DNS must not be left to the DNS servers at an address, or "" if it may be.
func whyNot(now time.Time, at netip.AddrPort, clients []Client, own ownAnswers) string {
	serving := slices.DeleteFunc(slices.Clone(clients), func(c Client) bool { return !slices.Contains(c.Serving, at) })
	if len(serving) == 0 {
		return "no DNS server of this node serves there"
	}
	for _, c := range serving {
		if silent := now.Sub(c.Reported); silent > reportTimeout {
			return fmt.Sprintf("a DNS server of this node has not reported for %s: it hangs, and takes its share of the queries", silent.Round(time.Second))
		}
		if behind := now.Sub(c.Behind); !c.Behind.IsZero() && behind > staleTimeout {
			return fmt.Sprintf("a DNS server of this node has answered from older names for %s", behind.Round(time.Second))
		}
	}
	for _, a := range []struct {
		network string
		last    time.Time
		wrong   bool
		others  func(Answers) time.Time
	}{
		{"UDP", own.UDP, own.WrongUDP, func(a Answers) time.Time { return a.UDP }},
		{"TCP", own.TCP, own.WrongTCP, func(a Answers) time.Time { return a.TCP }},
	} {
		if a.last.IsZero() {
			return "it has not answered over " + a.network + " yet"
		}
		// A query of the daemon may be lost in a flood. While every server goes on answering others, they
		// are slow, not dead. A pause of less than reportTimeout does not count.
		slow := !a.wrong && !slices.ContainsFunc(serving, func(c Client) bool {
			return now.Sub(a.others(c.answered(at))) > reportTimeout
		})
		if silent := now.Sub(a.last); silent > answerTimeout && !slow {
			return fmt.Sprintf("it has not answered over %s for %s", a.network, silent.Round(time.Second))
		}
	}
	return ""
}
