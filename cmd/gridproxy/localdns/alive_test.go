package localdns

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"gridproxy/topology/dnsfeed"
)

// TestWhyNot: DNS is left to the servers of this node only while every one that serves is well.
func TestWhyNot(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	at := netip.MustParseAddrPort("169.254.20.12:53")
	well := Client{Reported: ago(time.Second), Serving: []netip.AddrPort{at}}
	fresh := ownAnswers{Answers: Answers{UDP: ago(time.Second), TCP: ago(time.Second)}}
	own := func(udp, tcp time.Time) ownAnswers { return ownAnswers{Answers: Answers{UDP: udp, TCP: tcp}} }
	busy := well // it answers others
	busy.Answered = []Answers{{UDP: ago(time.Second), TCP: ago(time.Second)}}
	overUDP := well
	overUDP.Answered = []Answers{{UDP: ago(time.Second), TCP: ago(3 * time.Second)}}
	slow := own(ago(time.Minute), ago(time.Minute))
	wrong := slow
	wrong.WrongUDP = true
	for name, c := range map[string]struct {
		clients []Client
		answers ownAnswers
		want    string // part of the reason; "" = it is alive
	}{
		"one that is well":                {[]Client{well}, fresh, ""},
		"two that are well":               {[]Client{well, well}, fresh, ""},
		"a second one that starts":        {[]Client{well, {Reported: ago(time.Hour)}}, fresh, ""},
		"none":                            {nil, fresh, "no DNS server"},
		"one that does not serve":         {[]Client{{Reported: now}}, fresh, "no DNS server"},
		"one on the other family":         {[]Client{{Reported: now, Serving: []netip.AddrPort{netip.MustParseAddrPort("[fd00::12]:53")}}}, fresh, "no DNS server"},
		"one of two that hangs":           {[]Client{well, {Reported: ago(3 * time.Second), Serving: well.Serving}}, fresh, "not reported for 3s"},
		"a little behind":                 {[]Client{{Reported: now, Serving: well.Serving, Behind: ago(4 * time.Second)}}, fresh, ""},
		"far behind":                      {[]Client{{Reported: now, Serving: well.Serving, Behind: ago(6 * time.Second)}}, fresh, "older names for 6s"},
		"no answer over UDP":              {[]Client{well}, own(ago(4*time.Second), now), "not answered over UDP for 4s"},
		"no answer over TCP yet":          {[]Client{well}, own(now, time.Time{}), "not answered over TCP yet"},
		"a clock that was put back":       {[]Client{{Reported: now.Add(time.Hour), Serving: well.Serving}}, fresh, ""},
		"no answer over either":           {[]Client{well}, ownAnswers{}, "not answered over UDP yet"},
		"an old answer over TCP":          {[]Client{well}, own(now, ago(time.Minute)), "over TCP for 1m0s"},
		"the only one hangs":              {[]Client{{Reported: ago(time.Minute), Serving: well.Serving}}, fresh, "not reported"},
		"slow, but it answers others":     {[]Client{busy}, slow, ""},
		"slow, and TCP hangs":             {[]Client{overUDP}, slow, "over TCP for 1m0s"},
		"one of two answers nobody":       {[]Client{busy, well}, slow, "over UDP for 1m0s"},
		"wrong, and it answers others":    {[]Client{busy}, wrong, "over UDP for 1m0s"},
		"slow, and it does not serve yet": {[]Client{busy}, ownAnswers{}, "not answered over UDP yet"},
		"answers where none serves":       {[]Client{}, fresh, "no DNS server"},
	} {
		got := whyNot(now, at, c.clients, c.answers)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAnsweredGrows: a server has answered when its count at an address is reported to have grown,
// over each network alone. The first counts at an address, and those of a server that does not
// count, are no answers.
func TestAnsweredGrows(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v4, v6 := netip.MustParseAddrPort("169.254.20.12:53"), netip.MustParseAddrPort("[fd00::12]:53")
	p := &peer{}
	for i, step := range []struct {
		serving  []netip.AddrPort
		answered []dnsfeed.Answered
		want     Answers // at v4, in seconds after the start
	}{
		{nil, nil, Answers{}},
		{[]netip.AddrPort{v4}, nil, Answers{}},
		{[]netip.AddrPort{v4}, []dnsfeed.Answered{{UDP: 9, TCP: 9}}, Answers{}},
		{[]netip.AddrPort{v4}, []dnsfeed.Answered{{UDP: 10, TCP: 9}}, Answers{UDP: start.Add(3 * time.Second)}},
		{[]netip.AddrPort{v6, v4}, []dnsfeed.Answered{{UDP: 20, TCP: 20}, {UDP: 10, TCP: 10}}, Answers{UDP: start.Add(3 * time.Second), TCP: start.Add(4 * time.Second)}},
		{[]netip.AddrPort{v6, v4}, []dnsfeed.Answered{{UDP: 30, TCP: 30}, {UDP: 10, TCP: 10}}, Answers{UDP: start.Add(3 * time.Second), TCP: start.Add(4 * time.Second)}},
		{[]netip.AddrPort{v6, v4}, []dnsfeed.Answered{{UDP: 40}}, Answers{}},
		{[]netip.AddrPort{v4}, []dnsfeed.Answered{{UDP: 11, TCP: 11}, {}}, Answers{}},
	} {
		p.reported(dnsfeed.Report{Serving: step.serving, Answered: step.answered}, 0, time.Time{}, start.Add(time.Duration(i)*time.Second))
		if got := p.state.answered(v4); got != step.want {
			t.Errorf("report %d: answered %v, want %v", i, got, step.want)
		}
	}
}
