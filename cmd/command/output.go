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

// PrintAs writes v to w as JSON or YAML if format is "json" or "yaml"; for any other format
// writeTable writes it as text. It writes nothing unless all of v can be rendered. Text that
// goes to a terminal has colours, unless the variable NO_COLOR is set (https://no-color.org).
func PrintAs(w io.Writer, format string, v any, writeTable func(io.Writer) error) error {
	var text bytes.Buffer
	var err error
	switch {
	case format == "json":
		e := json.NewEncoder(&text)
		e.SetIndent("", "  ")
		err = e.Encode(v)
	case format == "yaml":
		var encoded []byte
		encoded, err = yaml.Marshal(v)
		text.Write(encoded)
	case obeysEscapes(w) && os.Getenv("NO_COLOR") == "":
		err = writeTable(table.Coloured(&text))
	default:
		err = writeTable(&text)
	}
	if err != nil {
		return fmt.Errorf("writing the answer as %s: %w", format, err)
	}
	return Flush(w, text.Bytes())
}

// obeysEscapes reports whether w is a terminal that, by its name, obeys escape sequences.
func obeysEscapes(w io.Writer) bool {
	f, ok := w.(*os.File)
	kind := os.Getenv("TERM")
	return ok && kind != "" && kind != "dumb" && term.IsTerminal(int(f.Fd())) //nolint:gosec // a file descriptor fits
}

// Flush writes a whole answer to w, which is standard output.
func Flush(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}

// formats returns the formats of PrintAs, the default first.
func formats() []string { return []string{"table", "json", "yaml"} }

// AddFormat declares --output, which sets format. more are formats that PrintAs does not know.
func AddFormat(fs *pflag.FlagSet, format *string, more ...string) {
	words := append(formats(), more...)
	AddWord(fs, format, "output", "o", "`FORMAT` of the answer: "+strings.Join(words, ", "), words...)
}

// AddWord declares a flag for to, whose value should be one of words: the first is the default,
// and a shell completes them. The flag itself takes any value; CheckWord refuses others.
func AddWord(fs *pflag.FlagSet, to *string, name, short, usage string, words ...string) {
	fs.StringVarP(to, name, short, words[0], usage)
	f := fs.Lookup(name)
	f.Value = wordFlag{f.Value, words}
}

// wordFlag is a text that takes any value, for CheckWord to refuse.
type wordFlag struct {
	pflag.Value
	words []string
}

// Words returns the values that a shell offers.
func (w wordFlag) Words() []string { return w.words }

// CheckFormat returns an error unless format is one of those of PrintAs, or of more.
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
