package watch

import (
	"context"
	"sync"
)

// forward runs a source, and sends each of its changes on.
func forward(ctx context.Context, s Source, to ...pulse) error {
	ctx, cancel := context.WithCancel(ctx)
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-s.Changed():
				for _, p := range to {
					p.send()
				}
			}
		}
	})
	err := s.Run(ctx)
	cancel()
	forwarding.Wait()
	return err
}
