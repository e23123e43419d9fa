package traffic

import (
	"context"
	"fmt"
	"time"
)

// Deadline is how long one question may take where a Client does not say otherwise, while others are
// answered. TCP sends a first packet that is lost again after 1, 3, 7 and 15 s.
const Deadline = 20 * time.Second

// answersMeanwhile is how many other questions must have been answered before one that takes Deadline
// counts as lost. A machine that is emulated, or busy with something else, may stand still for longer;
// then nothing is answered, and no packet was lost.
const answersMeanwhile = 200

// AloneTimeout is how long one question may take although no other is answered.
const AloneTimeout = 3 * time.Minute

// fair is a context for one question. It ends when the question is lost.
func (c *Client) fair() (context.Context, context.CancelFunc) {
	most := AloneTimeout
	if c.Deadline != 0 {
		most = c.Deadline
	}
	outer, cancelOuter := context.WithTimeoutCause(context.Background(), most, fmt.Errorf("not answered within %s", most))
	if c.Deadline != 0 {
		return outer, cancelOuter
	}
	ctx, cancel := context.WithCancelCause(outer)
	begin, before := time.Now(), c.answered.Load()
	var look func()
	look = func() {
		if n := c.answered.Load() - before; n >= answersMeanwhile {
			cancel(fmt.Errorf("not answered within %s, while %d others were", time.Since(begin).Round(time.Second), n))
		} else if ctx.Err() == nil {
			time.AfterFunc(time.Second, look)
		}
	}
	timer := time.AfterFunc(Deadline, look)
	return ctx, func() {
		timer.Stop()
		cancel(nil)
		cancelOuter()
	}
}
