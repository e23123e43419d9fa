package command

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"gridproxy/topology/excerpt"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"
)

// PrintAs writes v in the format of --output; table writes it as text. Nothing is written if
// encoding fails.
func PrintAs(w io.Writer, format string, v any, table func(io.Writer) error) error {
	var text bytes.Buffer
	if err := encodeAs(&text, format, v, table); err != nil {
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

// formats are those of PrintAs, the default first.
func formats() []string { return []string{"table", "json", "yaml"} }

// AddFormat declares --output. A command may have more formats than PrintAs.
func AddFormat(fs *pflag.FlagSet, format *string, more ...string) {
	fs.StringVarP(format, "output", "o", formats()[0], "`FORMAT` of the answer: "+strings.Join(append(formats(), more...), ", "))
}

// CheckFormat is an error if --output is none of its formats.
func CheckFormat(format string, more ...string) error {
	return CheckWord("output", format, append(formats(), more...)...)
}

// CheckWord is an error if the value of a flag is none of some words.
func CheckWord(flag, value string, words ...string) error {
	if !slices.Contains(words, value) {
		return fmt.Errorf("--%s %s: want one of %s", flag, excerpt.Quoted(value), strings.Join(words, ", "))
	}
	return nil
}
