package traffic

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := NewPacer(100), time.Now()
		for send, test := range []struct {
			busy   time.Duration // before it sleeps until the send
			at     time.Duration // when it sends
			inTime bool
		}{
			{0, 0, true},
			{0, 10 * time.Millisecond, true},
			{30 * time.Millisecond, 40 * time.Millisecond, true}, // 20 ms late
			{11 * time.Millisecond, 51 * time.Millisecond, false},
			{0, 51 * time.Millisecond, true},
			{0, 51 * time.Millisecond, true},
			{0, 60 * time.Millisecond, true},
		} {
			time.Sleep(test.busy)
			time.Sleep(time.Until(p.Due(send)))
			inTime := p.Send(send)
			if at := time.Since(begin); inTime != test.inTime || at != test.at {
				t.Errorf("send %d at %s, in time: %t; want %s, %t", send, at, inTime, test.at, test.inTime)
			}
		}
		if late := p.Late(); p.Sends() != 7 || len(late) != 1 || late[0] != p.Due(3) {
			t.Errorf("of %d sends those at %v were late, want of 7 the one at %v", p.Sends(), late, p.Due(3))
		}
	})
}
