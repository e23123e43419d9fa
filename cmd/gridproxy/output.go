package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// printAs writes v in the format of --output; table writes it as text. Nothing is written if
// encoding fails.
func printAs(w io.Writer, format string, v any, table func(io.Writer) error) error {
	var text bytes.Buffer
	if err := encodeAs(&text, format, v, table); err != nil {
		return fmt.Errorf("writing the answer as %s: %w", format, err)
	}
	return flush(w, text.Bytes())
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

func flush(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing to standard output: %w", err)
	}
	return nil
}
