package document

import (
	"fmt"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// split parses lines as a shell does, and returns each statement as it is written.
func split(first int, lines []string) ([]Command, error) {
	text := strings.Join(lines, "\n")
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("line %d: no shell reads this block: %w", first, err)
	}
	var all []Command
	for _, statement := range file.Stmts {
		from, to := statement.Pos(), int(statement.End().Offset())
		syntax.Walk(statement, func(n syntax.Node) bool {
			if r, ok := n.(*syntax.Redirect); ok && r.Hdoc != nil {
				// What is typed goes on to the line that ends the input.
				to = max(to, endOfLine(text, int(r.Hdoc.End().Offset())))
			}
			return true
		})
		all = append(all, Command{Line: first + int(from.Line()) - 1, Text: text[from.Offset():to]})
	}
	return all, nil
}

func endOfLine(text string, at int) int {
	if i := strings.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(text)
}

// Calls are the simple commands of a text, each as its words: those in pipes, functions and
// substitutions too. Quotes are taken off; of what the shell replaces, the text remains.
func Calls(text string) ([][]string, error) {
	file, err := syntax.NewParser().Parse(strings.NewReader(text), "")
	if err != nil {
		return nil, fmt.Errorf("reading %q as a shell does: %w", text, err)
	}
	var all [][]string
	syntax.Walk(file, func(n syntax.Node) bool {
		if call, ok := n.(*syntax.CallExpr); ok && len(call.Args) > 0 {
			words := make([]string, 0, len(call.Args))
			for _, w := range call.Args {
				words = append(words, plain(text, w))
			}
			all = append(all, words)
		}
		return true
	})
	return all, nil
}

// plain is a word without its quotes.
func plain(text string, w *syntax.Word) string {
	var b strings.Builder
	var add func(parts []syntax.WordPart)
	add = func(parts []syntax.WordPart) {
		for _, part := range parts {
			switch p := part.(type) {
			case *syntax.Lit:
				b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
			case *syntax.SglQuoted:
				b.WriteString(p.Value)
			case *syntax.DblQuoted:
				add(p.Parts)
			default:
				b.WriteString(text[p.Pos().Offset():p.End().Offset()])
			}
		}
	}
	add(w.Parts)
	return b.String()
}
