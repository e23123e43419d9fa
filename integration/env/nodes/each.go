package nodes

import (
	"errors"
	"sync"
)

// abreast is how many requests are made at the same time where there are many to make.
const abreast = 16

// each calls f for every item, several at a time, and returns all errors.
func each[T any](items []T, f func(T) error) error {
	var running sync.WaitGroup
	errs := make([]error, len(items))
	free := make(chan struct{}, abreast)
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
