package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"gridproxy/cmd/table"
	"gridproxy/topology/excerpt"

	"github.com/spf13/pflag"
	"golang.org/x/term"
	"sigs.k8s.io/yaml"
)

// PrintAs writes v in the format of --output; table writes it as text. Nothing is written if
// encoding fails. Text that goes to a terminal has colours.
func PrintAs(w io.Writer, format string, v any, table func(io.Writer) error) error {
	var text bytes.Buffer
	if err := encodeAs(&text, format, v, inColours(table, hasColours(w, os.Getenv))); err != nil {
		return fmt.Errorf("writing the answer as %s: %w", format, err)
	}
	return Flush(w, text.Bytes())
}

func encodeAs(w io.Writer, format string, v any, table func(io.Writer) error) error {
	switch format {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "yaml":
		text, err := yaml.Marshal(v)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	default:
		return table(w)
	}
}

// Flush writes a whole answer.
func Flush(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}

// formats returns the formats of PrintAs, the default first.
func formats() []string { return []string{"table", "json", "yaml"} }

// AddFormat declares --output. A command may have more formats than PrintAs.
func AddFormat(fs *pflag.FlagSet, format *string, more ...string) {
	words := append(formats(), more...)
	AddWord(fs, format, "output", "o", "`FORMAT` of the answer: "+strings.Join(words, ", "), words...)
}

// AddWord declares a flag whose value is one of words. The first word is the default. A shell
// completes them; CheckWord refuses other values.
func AddWord(fs *pflag.FlagSet, to *string, name, short, usage string, words ...string) {
	*to = words[0]
	fs.VarP(wordFlag{to, words}, name, short, usage)
}

// wordFlag is the pflag.Value of AddWord.
type wordFlag struct {
	to    *string
	words []string
}

// String returns the present value.
func (w wordFlag) String() string {
	if w.to == nil {
		return ""
	}
	return *w.to
}

// Set takes any text, for CheckWord to refuse.
func (w wordFlag) Set(text string) error {
	*w.to = text
	return nil
}

// Type returns the type of a flag with a text, so that the help quotes the default.
func (wordFlag) Type() string { return "string" }

// Words returns the values that a shell offers.
func (w wordFlag) Words() []string { return w.words }

// CheckFormat returns an error unless format is one of the formats of --output.
func CheckFormat(format string, more ...string) error {
	return CheckWord("output", format, append(formats(), more...)...)
}

// CheckWord returns an error, which names the flag, unless value is one of words.
func CheckWord(flag, value string, words ...string) error {
	if !slices.Contains(words, value) {
		return fmt.Errorf("--%s %s: want one of %s", flag, excerpt.Quoted(value), strings.Join(words, ", "))
	}
	return nil
}

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
