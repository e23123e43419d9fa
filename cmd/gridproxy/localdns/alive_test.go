package localdns

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestWhyNot: DNS is left to the servers of this node only while every one that serves is well.
func TestWhyNot(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	ago := func(d time.Duration) time.Time { return now.Add(-d) }
	at := netip.MustParseAddrPort("169.254.20.12:53")
	well := Client{Reported: ago(time.Second), Serving: []netip.AddrPort{at}}
	fresh := Answers{UDP: ago(time.Second), TCP: ago(time.Second)}
	for name, c := range map[string]struct {
		clients []Client
		answers Answers
		want    string // part of the reason; "" = it is alive
	}{
		"one that is well":          {[]Client{well}, fresh, ""},
		"two that are well":         {[]Client{well, well}, fresh, ""},
		"a second one that starts":  {[]Client{well, {Reported: ago(time.Hour)}}, fresh, ""},
		"none":                      {nil, fresh, "no DNS server"},
		"one that does not serve":   {[]Client{{Reported: now}}, fresh, "no DNS server"},
		"one on the other family":   {[]Client{{Reported: now, Serving: []netip.AddrPort{netip.MustParseAddrPort("[fd00::12]:53")}}}, fresh, "no DNS server"},
		"one of two that hangs":     {[]Client{well, {Reported: ago(3 * time.Second), Serving: well.Serving}}, fresh, "not reported for 3s"},
		"a little behind":           {[]Client{{Reported: now, Serving: well.Serving, Behind: ago(4 * time.Second)}}, fresh, ""},
		"far behind":                {[]Client{{Reported: now, Serving: well.Serving, Behind: ago(6 * time.Second)}}, fresh, "older names for 6s"},
		"no answer over UDP":        {[]Client{well}, Answers{UDP: ago(4 * time.Second), TCP: now}, "not answered over UDP for 4s"},
		"no answer over TCP yet":    {[]Client{well}, Answers{UDP: now}, "not answered over TCP yet"},
		"a clock that was put back": {[]Client{{Reported: now.Add(time.Hour), Serving: well.Serving}}, fresh, ""},
		"no answer over either":     {[]Client{well}, Answers{}, "not answered over UDP yet"},
		"an old answer over TCP":    {[]Client{well}, Answers{UDP: now, TCP: ago(time.Minute)}, "over TCP for 1m0s"},
		"the only one hangs":        {[]Client{{Reported: ago(time.Minute), Serving: well.Serving}}, fresh, "not reported"},
		"answers where none serves": {[]Client{}, fresh, "no DNS server"},
	} {
		got := WhyNot(now, at, c.clients, c.answers)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
