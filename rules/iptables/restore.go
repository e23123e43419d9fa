package iptables

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/iptables/refusal"
	"gridproxy/rules/netfilter"
	"gridproxy/topology/excerpt"
)

// restorer runs one iptables-restore. It writes only the chains that its input names.
type restorer struct {
	path  string
	limit time.Duration // 0 = RestoreTimeout
}

// run writes input, which is committed table by table: after an error, tables before the
// refused one may have been written, later ones are not. Each error is a *refusal.Error, even
// if the program did not start.
func (r restorer) run(ctx context.Context, input []byte) error {
	ctx, cancel := withLimit(ctx, r.path, cmp.Or(r.limit, RestoreTimeout))
	defer cancel()
	var output excerpt.Output
	cmd := host.Command(ctx, r.path, "-w", strconv.Itoa(lockSeconds), "--noflush")
	cmd.Stdin = bytes.NewReader(input)
	cmd.Stdout = &output
	cmd.Stderr = &output
	err := cmd.Run()
	if ctx.Err() == nil {
		rules.Progress(ctx) // also if the kernel refused a line
	}
	if err == nil {
		return nil
	}
	return refusal.NewError(r.path, input, output.String(), errors.Join(err, context.Cause(ctx)))
}

// Restore writes one input with iptables-restore --noflush, also in a family that is not open.
// Callers use it to probe which matches the kernel has. locked reports that another program held
// the xtables lock, so that nothing was written.
func (b *Backend) Restore(ctx context.Context, f netfilter.Family, input string) (locked bool, err error) {
	tool := restorer{path: toolName(b.variant, f, "-restore"), limit: commandTimeout}
	err = tool.run(ctx, []byte(input))
	var refused *refusal.Error
	return errors.As(err, &refused) && strings.Contains(refused.Output, "xtables lock"), err
}

// levelInput is the log level of inputs, kube-proxy's V(9).
const levelInput = slog.Level(-9)

const messageInput = "writing rules"

// logInput checks the level first, because input may be megabytes.
func logInput(ctx context.Context, log *slog.Logger, input []byte) {
	if log.Enabled(ctx, levelInput) {
		log.Log(ctx, levelInput, messageInput, "input", string(input))
	}
}
