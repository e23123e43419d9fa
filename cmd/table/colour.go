package table

import (
	"io"
	"slices"
	"strings"
)

// colour is a foreground colour of a terminal, as ECMA-48 numbers it.
type colour string

const (
	plain  colour = ""
	red    colour = "31"
	yellow colour = "33"
)

// stateColour returns the colour of a word of state; plain for every other text.
func stateColour(word string) colour {
	switch word {
	case "refused", "dropped", "unhealthy", "False", "Failed", "Lost", "Degraded", "error", "no":
		return red
	case "unknown", "Unknown", "Offline", "Progressing", "DeletionHeld", "Contested", "warning", "differs by node", "differs by port":
		return yellow
	default:
		return plain
	}
}

// nameColumns returns the columns whose cells are names. A name can be any text, so it has no
// colour.
func nameColumns() []string {
	return []string{"NODE", "UNIT", "UNITS", "SERVICE", "GRID", "KEY", "CLOSED BY", "ENDPOINT", "PORT", "CHILD", "TEMPLATE"}
}

// colourWriter is a writer on whose other side is a terminal that has colours.
type colourWriter struct{ io.Writer }

// Coloured returns a writer to w, to which Table and State write with colours. The caller knows
// that w ends at a terminal.
func Coloured(w io.Writer) io.Writer { return colourWriter{w} }

// State returns a word of state as it is written to w, in its colour if w has colours. Put it
// last in its line: alignment would count the escape sequences.
func State(w io.Writer, word string) string {
	if _, has := w.(colourWriter); !has {
		return word
	}
	return paint(word)
}

func paint(word string) string {
	c := stateColour(word)
	if c == plain {
		return word
	}
	return "\x1b[" + string(c) + "m" + word + "\x1b[0m"
}

// painted returns an aligned line with these cells, in which words of state have their colours,
// except in nameColumns. A word is a whole cell, or the part of it before " (".
func painted(line string, columns, cells []string) string {
	var b strings.Builder
	for i, cell := range cells {
		at := strings.Index(line, cell)
		if at < 0 {
			break // cannot be; the rest stays as it is
		}
		word, _, _ := strings.Cut(cell, " (")
		named := i < len(columns) && slices.Contains(nameColumns(), columns[i])
		if !named && stateColour(word) != plain {
			b.WriteString(line[:at] + paint(word))
			line = line[at+len(word):]
			continue
		}
		b.WriteString(line[:at+len(cell)])
		line = line[at+len(cell):]
	}
	return b.String() + line
}
