package analyze

import (
	"io"

	"gridproxy/cmd/command"
)

// FormatSARIF is the format for code review tools, beside those of command.PrintAs.
const FormatSARIF = "sarif"

// Print writes a Report in a format, completely or not at all.
func Print(w io.Writer, format string, r Report) error {
	return command.PrintAs(w, format, r, func(w io.Writer) error {
		if format == FormatSARIF {
			return r.WriteSARIF(w, command.ThisBuild().Version)
		}
		return r.WriteText(w)
	})
}
