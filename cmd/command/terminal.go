package command

import (
	"io"
	"os"

	"gridproxy/cmd/table"

	"golang.org/x/term"
)

// hasColours reports whether what is written to w has colours: only on a terminal that has them,
// and not if the variable NO_COLOR is set (https://no-color.org).
func hasColours(w io.Writer, getenv func(string) string) bool {
	return isTerminal(w) && !isDumb(getenv) && getenv("NO_COLOR") == ""
}

// isDumb reports whether a terminal, by its name, obeys no escape sequence.
func isDumb(getenv func(string) string) bool {
	kind := getenv("TERM")
	return kind == "" || kind == "dumb"
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) //nolint:gosec // a file descriptor fits
}

// inColours returns write, with colours if on is true.
func inColours(write func(io.Writer) error, on bool) func(io.Writer) error {
	if !on {
		return write
	}
	return func(w io.Writer) error { return write(table.Coloured(w)) }
}
