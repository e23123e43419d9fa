package wait

import "context"

// Receive returns what comes from a channel next, or the zero value when it is closed. It ends the
// test if Usual is over before. what names what is waited for.
func Receive[T any](t TB, what string, from <-chan T) (v T) {
	t.Helper()
	ctx, cancel := Usual.limit(t.Context())
	defer cancel()
	select {
	case v = <-from:
	case <-ctx.Done():
		t.Fatalf("waited in vain: %s: %v", what, context.Cause(ctx))
	}
	return v
}
