package driver

import (
	"context"
	"errors"
	"log/slog"

	"gridproxy/cmd/gridproxy/options"
	"gridproxy/rules"
)

// NewCleaner makes a Backend that cleans up after all modes, whatever mode the options say. It
// does not need what a daemon needs: what cannot be cleaned is an error of Cleanup.
func NewCleaner(ctx context.Context, o options.Options, log *slog.Logger) rules.Backend {
	var cleaner rules.Backend
	for _, m := range modes() {
		cleaner = m.cleaner(ctx, o, cleaner, log)
	}
	return cleaner
}

// Cleaned says what a successful Cleanup has removed.
func Cleaned(o options.Options) string {
	if o.ServiceProxyName != "" {
		return "chains whose names begin with " + names(o).Prefix() + " and the jumps to them are gone from filter and nat; all others are as they were\n"
	}
	return "our chains and jumps are gone from filter and nat; so are our virtual servers, sets and link, if there were any\n"
}

// halfCleaner cleans up what one mode has left where what another one has left cannot be cleaned
// up.
type halfCleaner struct {
	rules.Backend
	err error // why not
}

// Cleanup always fails: something may be left.
func (c halfCleaner) Cleanup(ctx context.Context) error {
	return errors.Join(c.Backend.Cleanup(ctx), c.err)
}
