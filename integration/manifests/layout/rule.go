package main

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// Rule is a word or phrase to avoid in comments and pages, with what to write instead.
type Rule struct{ Avoid, Instead string }

// Rules are all rules. A phrase matches in any case and as whole words.
func Rules() []Rule {
	return []Rule{
		{"somebody", "the actor: another process, a user, the operator"},
		{"nobody", "no process, no user, or the active voice"},
		{"anew", "again"},
		{"mend", "repair"},
		{"mended", "repaired"},
		{"by itself", "automatically"},
		{"by themselves", "automatically"},
		{"to be had", "available"},
		{"is told", "the one who reports, and what is reported"},
		{"are told", "the one who reports, and what is reported"},
		{"it stands", "it exists"},
		{"takes leave", "drains"},
		{"in the wrong hands", "if compromised"},
		{"on their way", "planned"},
		{"let go", "drop"},
		{"utilize", "use"},
		{"leverage", "use"},
		{"in order to", "to"},
	}
}

// MaxColumns is how long a line of a Go comment may be, with its indentation; a tab counts as one
// column.
const MaxColumns = 100

// Line is a line of a comment or of a page.
type Line struct {
	Number int
	Text   string
	Code   bool // whether it is a line of a source file, so that its length counts
}

// Finding is a line that breaks a rule.
type Finding struct {
	Line    int
	Message string
}

// checker is a rule that can be searched for.
type checker struct {
	rule    Rule
	pattern *regexp.Regexp
}

// Check returns where lines break the rules.
func Check(rules []Rule, lines []Line) []Finding {
	checkers := make([]checker, 0, len(rules))
	for _, r := range rules {
		words := strings.ReplaceAll(regexp.QuoteMeta(r.Avoid), " ", `\s+`)
		checkers = append(checkers, checker{r, regexp.MustCompile(`(?i)\b` + words + `\b`)})
	}
	var found []Finding
	for _, l := range lines {
		for _, c := range checkers {
			if word := c.pattern.FindString(l.Text); word != "" {
				found = append(found, Finding{l.Number, fmt.Sprintf("%q: write %s", word, c.rule.Instead)})
			}
		}
		// A marker of a generator cannot be broken.
		if columns := utf8.RuneCountInString(l.Text); l.Code && columns > MaxColumns && !strings.Contains(l.Text, "// +") {
			found = append(found, Finding{l.Number, fmt.Sprintf("the line has %d columns: break it before column %d", columns, MaxColumns)})
		}
	}
	return found
}
