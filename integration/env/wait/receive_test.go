package wait

import (
	"strings"
	"testing"
	"testing/synctest"
)

func TestReceive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, from := &recorder{TB: t}, make(chan int, 1)
		from <- 3
		if got := Receive(r, "a number", from); got != 3 || r.text != "" {
			t.Errorf("received %d, %s", got, r.text)
		}
		Receive(r, "another number", from)
		if !strings.Contains(r.text, "another number") {
			t.Errorf("the failure does not say what did not come: %q", r.text)
		}
	})
}
