package iptables

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gridproxy/rules"
	"gridproxy/rules/host"
	"gridproxy/rules/netfilter"
	"gridproxy/topology/excerpt"
)

// lockSeconds is how long the tools wait for the lock of iptables-legacy, as in kube-proxy. The nft
// variant has no lock and ignores it.
const lockSeconds = 5

// restorer runs one iptables-restore. It writes only the chains that its input names.
type restorer struct {
	path  string
	limit time.Duration // 0 = RestoreLimit
}

// run writes input, which is committed table by table: after an error, tables before the refused
// one may have been written, later ones are not.
func (r restorer) run(ctx context.Context, input []byte) error {
	ctx, cancel := withLimit(ctx, r.path, cmp.Or(r.limit, RestoreLimit))
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
	if ctxErr := context.Cause(ctx); ctxErr != nil {
		err = errors.Join(err, ctxErr)
	}
	return newRestoreError(r.path, input, output.String(), err)
}

// Restore writes one input with iptables-restore --noflush, also in a family that is not open.
// Callers use it to probe which matches the kernel has. locked reports that another program held
// the xtables lock, so that nothing was written.
func (b *Backend) Restore(ctx context.Context, f netfilter.Family, input string) (locked bool, err error) {
	tool := restorer{path: toolName(b.variant, f, "-restore"), limit: commandLimit}
	err = tool.run(ctx, []byte(input))
	var refused *RestoreError
	return errors.As(err, &refused) && strings.Contains(refused.Output, "xtables lock"), err
}

// levelInput is the log level of inputs, kube-proxy's V(9).
const levelInput = slog.Level(-9)

// messageInput is the log message of inputs.
const messageInput = "writing rules"

// logInput checks the level first, because input may be megabytes.
func logInput(ctx context.Context, log *slog.Logger, input []byte) {
	if log.Enabled(ctx, levelInput) {
		log.Log(ctx, levelInput, messageInput, "input", string(input))
	}
}

// RestoreError says which line of its input iptables-restore refused.
type RestoreError struct {
	Tool   string
	Line   int    // of the input, from 1; 0 = unknown
	Text   string // that line; iptables-nft-restore may name one shortly after the wrong one
	Output string // what the tool printed
	Err    error

	input []byte
}

func (e *RestoreError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v", e.Tool, e.Err)
	if e.Output != "" {
		fmt.Fprintf(&b, ": %s", e.Output)
	}
	if e.Text != "" {
		fmt.Fprintf(&b, " (line %d is %q)", e.Line, e.Text)
	}
	return b.String()
}

// Unwrap returns the error of running the tool.
func (e *RestoreError) Unwrap() error { return e.Err }

// failedLine finds the line number in the output of either variant: "line 2 failed", "line 2:
// RULE_APPEND failed", "Error occurred at line: 2".
var failedLine = regexp.MustCompile(`line:? (\d+)`)

func newRestoreError(tool string, input []byte, output string, err error) *RestoreError {
	e := &RestoreError{Tool: tool, Output: excerpt.Message(strings.Join(strings.Fields(output), " ")), Err: err, input: input}
	if m := failedLine.FindStringSubmatch(output); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			e.Line, e.Text = n, lineOf(input, n)
		}
	}
	return e
}

// lineOf returns line n of text, from 1; "" = text has fewer lines.
func lineOf(text []byte, n int) string {
	for range n - 1 {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			return ""
		}
		text = text[i+1:]
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	return string(line)
}
