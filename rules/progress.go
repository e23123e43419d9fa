package rules

import "context"

// progressKey is the key of a context's progress function.
type progressKey struct{}

// WithProgress returns a context by which a Backend reports steps: report is called by
// Progress. It must be safe for concurrent use and must not block.
func WithProgress(ctx context.Context, report func()) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Progress reports that one more step of a Sync has ended and was not killed: a program, even if it
// failed, or a message that the kernel accepted. This distinguishes a long Sync that makes progress
// from one that hangs. Without WithProgress it does nothing.
func Progress(ctx context.Context) {
	if report, ok := ctx.Value(progressKey{}).(func()); ok {
		report()
	}
}
