package netns

import (
	"errors"
	"fmt"
	"slices"
)

// ErrOther is wrapped by the errors about an answer of a Pod that must not answer.
var ErrOther = errors.New("another Pod answered")

// Hear asks who is there, at least and at most so often: each answer must be of one of those wanted, and all
// of them must be heard.
func Hear(want []string, least, most int, ask func() (string, error)) error {
	heard := map[string]bool{}
	for i := 0; i < least || len(heard) < len(want) && i < most; i++ {
		name, err := ask()
		if err != nil {
			return fmt.Errorf("want an answer of %s: %w", want, err)
		}
		if !slices.Contains(want, name) {
			return fmt.Errorf("%w: %s, want one of %s", ErrOther, name, want)
		}
		heard[name] = true
	}
	if len(heard) < len(want) {
		return fmt.Errorf("heard only %v, want all of %s", heard, want)
	}
	return nil
}
