package traffic

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestPacer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, begin := NewPacer(100), time.Now()
		for send, test := range []struct {
			busy   time.Duration // before it waits for the send
			at     time.Duration // when Wait returns
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
			inTime, err := p.Wait(t.Context(), send)
			if at := time.Since(begin); err != nil || inTime != test.inTime || at != test.at {
				t.Errorf("send %d at %s, in time: %t (%v); want %s, %t", send, at, inTime, err, test.at, test.inTime)
			}
		}
		if late := p.Late(); p.Sends() != 7 || len(late) != 1 || late[0] != p.Due(3) {
			t.Errorf("of %d sends those at %v were late, want of 7 the one at %v", p.Sends(), late, p.Due(3))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := p.Wait(ctx, 1000); err == nil {
			t.Error("Wait returned no error when its context ended")
		}
	})
}
