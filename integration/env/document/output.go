package document

import (
	"fmt"
	"regexp"
	"strings"
)

// Comparison says how exact the output of a command is on a page.
type Comparison int

// The comparisons. In each, … in a line is any text, and a line … is any lines.
const (
	Exact  Comparison = iota // line by line
	Varies                   // numbers, except those such as 2/2, widths of columns, further lines between these
)

var (
	digits = regexp.MustCompile(`[0-9]+`)
	ready  = regexp.MustCompile(`^[0-9]+/[0-9]+$`)
	blanks = regexp.MustCompile(`[ \t]+`)
)

// Compare returns an error that has both texts if the output is not what the page shows.
func Compare(how Comparison, shown []string, output string) error {
	const anyLines = `(?:[^\n]*\n)*?`
	var pattern strings.Builder
	pattern.WriteString(`\A`)
	for _, line := range shown {
		if how == Varies {
			pattern.WriteString(anyLines)
		}
		if strings.TrimSpace(line) == "…" {
			pattern.WriteString(anyLines)
			continue
		}
		text := regexp.QuoteMeta(strings.TrimRight(line, " \t"))
		if how == Varies {
			text = varying(text)
		}
		pattern.WriteString(strings.ReplaceAll(text, "…", `[^\n]*`) + `[ \t]*\n`)
	}
	if how == Varies {
		pattern.WriteString(anyLines)
	}
	pattern.WriteString(`\z`)
	matches, err := regexp.MatchString(pattern.String(), strings.TrimRight(output, "\n")+"\n")
	switch {
	case err != nil:
		return fmt.Errorf("comparing the output: %w", err)
	case !matches:
		return fmt.Errorf("the page shows\n%s\nthe output is\n%s", strings.Join(shown, "\n"), output)
	}
	return nil
}

// varying is the pattern of a line in which numbers and blanks vary.
func varying(line string) string {
	words := blanks.Split(line, -1)
	for i, word := range words {
		if !ready.MatchString(word) {
			words[i] = digits.ReplaceAllString(word, `[0-9]+`)
		}
	}
	return strings.Join(words, `[ \t]+`)
}
