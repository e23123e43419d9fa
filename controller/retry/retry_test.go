package retry

import (
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	for failures, want := range []time.Duration{3, 6, 12, 24, 40, 40} {
		if got := Pause(3, 40, failures); got != want {
			t.Errorf("after %d failures %d, want %d", failures, got, want)
		}
	}
	if got := Pause(time.Second, time.Minute, 1<<30); got != time.Minute {
		t.Errorf("after very many failures %s", got)
	}
}

func TestEarlier(t *testing.T) {
	for _, test := range [][3]time.Duration{{0, 0, 0}, {0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1}} {
		if got := Earlier(test[0], test[1]); got != test[2] {
			t.Errorf("of %d and %d %d, want %d", test[0], test[1], got, test[2])
		}
	}
}
