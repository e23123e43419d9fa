package matrix

import (
	"bytes"
	"fmt"
	"io"

	"gridproxy/cmd/command"
)

// FormatHTML is the format of a page, beside those of command.PrintAs.
const FormatHTML = "html"

// Print writes a Matrix in a format, completely or not at all.
func Print(w io.Writer, format string, m Matrix) error {
	if format != FormatHTML {
		return command.PrintAs(w, format, m, m.WriteTable)
	}
	var page bytes.Buffer
	if err := m.WriteHTML(&page); err != nil {
		return fmt.Errorf("writing the answer as html: %w", err)
	}
	return command.Flush(w, page.Bytes())
}
