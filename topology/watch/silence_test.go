package watch

import (
	"context"
	"net"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// hears connects a Silence to the other end of a connection.
func hears(t *testing.T, s *Silence) (say func()) {
	t.Helper()
	here, there := net.Pipe()
	conn, err := s.Dial(func(context.Context, string, string) (net.Conn, error) { return here, nil })(t.Context(), "tcp", "api")
	must(t, err)
	t.Cleanup(func() { _, _ = conn.Close(), there.Close() })
	return func() {
		go func() { _, _ = there.Write([]byte("answer")) }()
		if _, err := conn.Read(make([]byte, 10)); err != nil {
			t.Error(err)
		}
	}
}

// TestSilence: pings every 30 s are no outage. A longer silence is, while it lasts and when it is
// over, whether or not a request has noticed it, and on which connection it ends.
func TestSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := NewSilence()
		say := hears(t, s)
		begin := time.Now()
		for range 3 {
			say()
			time.Sleep(pingAfter + time.Second)
		}
		if now, last := s.extend(Loss{}, PastLoss{}, time.Now()); now != (Loss{}) || last != (PastLoss{}) {
			t.Errorf("pings are answered: lost %v, outage %v", now, last)
		}
		say()
		heard := time.Now()
		time.Sleep(time.Minute)
		if now, _ := s.extend(Loss{}, PastLoss{}, time.Now()); !now.Since.Equal(heard) || now.Reason == "" {
			t.Errorf("silent since %s after the begin, want %s", now.Since.Sub(begin), heard.Sub(begin))
		}
		if now, _ := s.extend(Loss{Since: heard.Add(time.Second)}, PastLoss{}, time.Now()); !now.Since.Equal(heard) {
			t.Errorf("a request has noticed it: since %s, want %s", now.Since.Sub(begin), heard.Sub(begin))
		}
		hears(t, s)()
		back := time.Now()
		time.Sleep(time.Second)
		want := PastLoss{Since: heard, End: back}
		if now, last := s.extend(Loss{}, PastLoss{}, time.Now()); now != (Loss{}) || last != want {
			t.Errorf("lost %v, outage %v, want %v", now, last, want)
		}
		late := PastLoss{Since: heard.Add(50 * time.Second), End: back.Add(time.Second)}
		if _, last := s.extend(Loss{}, late, time.Now()); last != (PastLoss{Since: heard, End: late.End}) {
			t.Errorf("the end is noticed later by a request: outage %v", last)
		}
		if now, _ := s.extend(Loss{Since: heard.Add(50 * time.Second)}, PastLoss{}, time.Now()); !now.Since.Equal(heard) {
			t.Errorf("a request has not noticed the end yet: since %s", now.Since.Sub(begin))
		}
		soon := PastLoss{Since: back.Add(time.Second / 2), End: back.Add(time.Second)}
		if _, last := s.extend(Loss{}, soon, time.Now()); last != (PastLoss{Since: heard, End: soon.End}) {
			t.Errorf("a request fails just after the end, as it began before: outage %v", last)
		}
		if now, _ := s.extend(Loss{Since: soon.Since}, PastLoss{}, time.Now()); !now.Since.Equal(heard) {
			t.Errorf("a request fails just after the end: since %s", now.Since.Sub(begin))
		}
		other := PastLoss{Since: back.Add(time.Hour), End: back.Add(2 * time.Hour)}
		if _, last := s.extend(Loss{}, other, time.Now()); last != other {
			t.Errorf("another outage later: %v", last)
		}
	})
}

// TestSilenceWithoutPings: where nothing asks for an answer, none is missed.
func TestSilenceWithoutPings(t *testing.T) {
	for name, value := range map[string]string{"HTTP2_READ_IDLE_TIMEOUT_SECONDS": "0", "DISABLE_HTTP2": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, value)
			synctest.Test(t, func(t *testing.T) {
				s := NewSilence()
				say := hears(t, s)
				say()
				time.Sleep(time.Hour)
				say()
				if now, last := s.extend(Loss{}, PastLoss{}, time.Now()); now != (Loss{}) || last != (PastLoss{}) {
					t.Errorf("lost %v, outage %v", now, last)
				}
			})
		})
	}
	t.Setenv(pingVariable, "90")
	if err := PingSooner(); err != nil || os.Getenv(pingVariable) != "90" {
		t.Errorf("%v: what the environment says is replaced by %s", err, os.Getenv(pingVariable))
	}
	if got, want := NewSilence().limit, 92*time.Second; got != want {
		t.Errorf("pings after 90 s: an outage is %s, want %s", got, want)
	}
}

// TestPingSooner: a daemon finds each cut that counts.
func TestPingSooner(t *testing.T) {
	t.Setenv(pingVariable, "")
	if err := PingSooner(); err != nil || NewSilence().limit != longCut {
		t.Errorf("%v: an outage is %s, want %s", err, NewSilence().limit, longCut)
	}
}

// TestShortLossesAreNoCut: losses of some seconds that follow each other are not one of minutes.
func TestShortLossesAreNoCut(t *testing.T) {
	begin := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	first := PastLoss{Since: begin, End: begin.Add(5 * time.Second)}
	second := PastLoss{Since: begin.Add(10 * time.Second), End: begin.Add(15 * time.Second)}
	if got := merged(first, second); got != second {
		t.Errorf("two short losses are %v", got)
	}
	first.Since = begin.Add(-longCut)
	if got := merged(first, second); got != (PastLoss{Since: first.Since, End: second.End}) {
		t.Errorf("a short loss after a cut is %v", got)
	}
}

// TestConnectLimit: a name may need a second DNS server.
func TestConnectLimit(t *testing.T) {
	if ip, name := ConnectLimit("192.0.2.1:6443"), ConnectLimit("api.example.com:6443"); ip != oneAttempt || name <= ip+5*time.Second {
		t.Errorf("%s for an address, %s for a name", ip, name)
	}
}
