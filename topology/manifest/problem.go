package manifest

import (
	"errors"
	"fmt"

	"gridproxy/topology/excerpt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// problemsMax bounds the lines that one Read reports, errors and warnings apart: a file may hold
// a million broken objects.
const problemsMax = 100

// problem is an error whose message is one printable line of bounded length. Messages quote names
// and values of objects, which may hold line breaks and may be as large as a file.
type problem struct {
	line string
	err  error
}

func (p problem) Error() string { return p.line }

// Unwrap returns the error itself.
func (p problem) Unwrap() error { return p.err }

// printableErrors makes every error of errs one printable line, in place.
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

// join joins the errors, each on one printable line, at most problemsMax of them. An error that
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
	if left := len(all) - problemsMax; left > 0 {
		all = append(all[:problemsMax:problemsMax], fmt.Errorf("%d more problems are not listed; correct these first", left))
	}
	return errors.Join(printableErrors(all)...)
}

// warned returns the warnings, each on one printable line, at most problemsMax of them.
func warned(warnings []string) []string {
	left := len(warnings) - problemsMax
	if left > 0 {
		warnings = append(warnings[:problemsMax:problemsMax], fmt.Sprintf("%d more warnings are not listed", left))
	}
	return printable(warnings)
}

func printable(lines []string) []string {
	for i, line := range lines {
		lines[i] = excerpt.Message(line)
	}
	return lines
}

// place is the position of an object in the manifests, and its identity as far as it is known.
type place struct {
	file                  string
	document              int    // from 1; documents without content do not count
	items                 string // ", item 2" for each List around it
	kind, namespace, name string
}

// String returns "FILE: document N (Kind namespace/name)", without what is not known.
func (p place) String() string {
	text := fmt.Sprintf("%s: document %d%s", excerpt.Line(p.file), p.document, p.items)
	p.kind, p.namespace, p.name = excerpt.Of(p.kind), excerpt.Of(p.namespace), excerpt.Of(p.name)
	switch {
	case p.kind == "":
		return text
	case p.name == "":
		return fmt.Sprintf("%s (%s)", text, p.kind)
	case p.namespace == "":
		return fmt.Sprintf("%s (%s %s)", text, p.kind, p.name)
	default:
		return fmt.Sprintf("%s (%s %s/%s)", text, p.kind, p.namespace, p.name)
	}
}

func (p place) item(i int) place {
	p.items += fmt.Sprintf(", item %d", i+1)
	p.kind, p.namespace, p.name = "", "", ""
	return p
}

// findings are the errors and warnings about one object, in the order of its fields.
type findings struct {
	place    place
	errs     []error
	warnings []string
}

func (f *findings) wrong(path *field.Path, format string, args ...any) {
	f.errs = append(f.errs, fmt.Errorf("%s: %s: %s", f.place, excerpt.Of(path.String()), fmt.Sprintf(format, args...)))
}

func (f *findings) warn(path *field.Path, text string) {
	f.warnings = append(f.warnings, fmt.Sprintf("%s: %s: %s", f.place, path, text))
}
