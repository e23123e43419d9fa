package manifest

import (
	"errors"
	"fmt"

	"gridproxy/topology/excerpt"
)

// maxProblems bounds the lines that one Read reports, errors and warnings apart: a file may hold
// a million broken objects.
const maxProblems = 100

// problem is an error whose message is one printable line of bounded length. Messages quote names
// and values of objects, which may hold line breaks and may be as large as a file.
type problem struct {
	line string
	err  error
}

func (p problem) Error() string { return p.line }

// Unwrap returns the error itself.
func (p problem) Unwrap() error { return p.err }

// printableErrors makes every error one printable line.
func printableErrors(errs []error) []error {
	for i, err := range errs {
		if err == nil {
			continue
		}
		if text := err.Error(); excerpt.Message(text) != text {
			errs[i] = problem{line: excerpt.Message(text), err: err}
		}
	}
	return errs
}

// join joins the errors, each on one printable line, at most maxProblems of them. An error that
// joins others is taken apart first. It returns nil if there are no errors.
func join(errs []error) error {
	var all []error
	for _, err := range errs {
		if several, ok := err.(interface{ Unwrap() []error }); ok {
			all = append(all, several.Unwrap()...)
		} else if err != nil {
			all = append(all, err)
		}
	}
	if left := len(all) - maxProblems; left > 0 {
		all = append(all[:maxProblems:maxProblems], fmt.Errorf("%d more problems are not listed; correct these first", left))
	}
	return errors.Join(printableErrors(all)...)
}

// warned returns the warnings, each on one printable line, at most maxProblems of them.
func warned(warnings []string) []string {
	left := len(warnings) - maxProblems
	if left > 0 {
		warnings = append(warnings[:maxProblems:maxProblems], fmt.Sprintf("%d more warnings are not listed", left))
	}
	return printable(warnings)
}

func printable(lines []string) []string {
	for i, line := range lines {
		lines[i] = excerpt.Message(line)
	}
	return lines
}
