package wait

import (
	"errors"
	"sync"
)

// Each calls f for every item, up to 16 at a time, waits until all have returned, and returns
// all errors.
func Each[T any](items []T, f func(T) error) error {
	var running sync.WaitGroup
	errs := make([]error, len(items))
	free := make(chan struct{}, 16)
	for i, item := range items {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			errs[i] = f(item)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
