package netns

import (
	"context"
	"fmt"
	"os"
	"time"
)

// pollInterval is short against everything that is waited for here; not so short in a virtual machine,
// where asking takes a good part of it.
func pollInterval() time.Duration {
	if os.Getenv("GRIDPROXY_GUEST") != "" {
		return 100 * time.Millisecond
	}
	return 10 * time.Millisecond
}

// Poll asks again and again until ask returns nil. When ctx ends first, the error is the
// last one that ask returned.
func Poll(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(pollInterval())
	defer tick.Stop()
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		// An answer that ctx itself cut short says less than the one before it.
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: last seen: %w", context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}
