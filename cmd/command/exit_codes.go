package command

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of all commands. The same kind of end has the same code everywhere.
const (
	OK      = 0
	Found   = 1 // what the command looks for: only commands that Reports marks have it
	Usage   = 2 // wrong command line
	Failure = 3 // wrong input, or something failed
)

// ExitCode is a row of the table of exit codes.
type ExitCode struct {
	Code    int
	Meaning string
}

// ExitCodes returns the table of exit codes, in the words of every help text and of
// docs/commands.md.
func ExitCodes() []ExitCode {
	return []ExitCode{
		{OK, "done; nothing was found where the command looks for something"},
		{Found, "found: a difference, a finding, or something that is not healthy"},
		{Usage, "wrong command line"},
		{Failure, "wrong input, or something failed"},
	}
}

// reportsKey is the annotation of commands with code Found.
const reportsKey = "gridproxy/reports"

// Reports marks cmd as one that may end with code Found, by the error Finding, and returns it.
func Reports(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[reportsKey] = "true"
	return cmd
}

// ExitCodesOf returns the codes with which a command, or one of its subcommands, may end.
func ExitCodesOf(cmd *cobra.Command) []ExitCode {
	all := ExitCodes()
	if mayFind(cmd) {
		return all
	}
	return append(all[:Found:Found], all[Found+1:]...)
}

func mayFind(cmd *cobra.Command) bool {
	return cmd.Annotations[reportsKey] != "" || slices.ContainsFunc(cmd.Commands(), mayFind)
}

// describeExitCodes adds to the help of cmd, and of its subcommands, the codes of each.
func describeExitCodes(cmd *cobra.Command) {
	var b strings.Builder
	b.WriteString(strings.TrimRight(cmd.Long, "\n") + "\n\nExit codes:\n")
	for _, c := range ExitCodesOf(cmd) {
		fmt.Fprintf(&b, "  %d  %s\n", c.Code, c.Meaning)
	}
	cmd.Long = strings.TrimRight(b.String(), "\n")
	for _, child := range cmd.Commands() {
		describeExitCodes(child)
	}
}

// Finding is the error of a command that has found what it looks for.
type Finding struct {
	Problems error // is printed; nil = everything has been printed
}

// Error returns the text of Problems; "" if Problems is nil.
func (f Finding) Error() string {
	if f.Problems == nil {
		return ""
	}
	return f.Problems.Error()
}

// Unwrap returns Problems.
func (f Finding) Unwrap() error { return f.Problems }

// usageError is a command line that is well formed but asks for something impossible.
type usageError struct{ error }

// NewUsageError returns an error with the exit code Usage that wraps err, or nil for nil.
func NewUsageError(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// Unwrap returns the wrapped error.
func (e usageError) Unwrap() error { return e.error }

// codeOf returns the exit code for an error: Usage for a usageError, or if begun is false,
// since the command line is not well formed then; Found for a Finding; Failure for any other.
func codeOf(err error, begun bool) int {
	if _, isUsage := errors.AsType[usageError](err); isUsage || !begun {
		return Usage
	}
	if _, isFinding := errors.AsType[Finding](err); isFinding {
		return Found
	}
	return Failure
}
