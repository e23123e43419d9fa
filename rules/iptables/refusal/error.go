package refusal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gridproxy/topology/excerpt"
)

// Error says which line of its input iptables-restore refused.
type Error struct {
	Tool   string
	Line   int    // of the input, from 1; 0 = unknown
	Text   string // that line; iptables-nft-restore may name one shortly after the wrong one
	Output string // what the tool printed
	Err    error

	input []byte
}

func (e *Error) Error() string {
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
func (e *Error) Unwrap() error { return e.Err }

// failedLine finds the line number in the output of either variant: "line 2 failed", "line 2:
// RULE_APPEND failed", "Error occurred at line: 2".
var failedLine = regexp.MustCompile(`line:? (\d+)`)

// NewError returns the Error of a run of tool that failed with err.
func NewError(tool string, input []byte, output string, err error) *Error {
	e := &Error{Tool: tool, Output: excerpt.Message(strings.Join(strings.Fields(output), " ")), Err: err, input: input}
	if m := failedLine.FindStringSubmatch(output); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			e.Line, e.Text = n, lineOf(input, n)
		}
	}
	return e
}

// lineOf returns line n of text, from 1; "" = text has fewer lines.
func lineOf(text []byte, n int) string {
	for line := range bytes.Lines(text) {
		if n--; n <= 0 {
			return string(bytes.TrimSuffix(line, []byte("\n")))
		}
	}
	return ""
}

// transient are messages of a tool about failures that its input did not cause.
var transient = [...]string{
	"xtables lock", "Cannot allocate memory", "No buffer space", "Resource temporarily unavailable",
	"Operation not permitted", "Permission denied", "No space left", "Interrupted system call",
}

// refusalOf returns the error of a restore whose input was refused. It is nil for any other error:
// the tool is missing, was killed, timed out, or lacked memory.
func refusalOf(err error) *Error {
	e, is := errors.AsType[*Error](err)
	if !is || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	passes := slices.ContainsFunc(transient[:], func(text string) bool { return strings.Contains(e.Output, text) })
	if exit, ended := errors.AsType[*exec.ExitError](e.Err); !ended || !exit.Exited() || passes {
		return nil
	}
	return e
}
