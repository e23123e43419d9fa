package main

import (
	"go/scanner"
	"go/token"
	"regexp"
	"strings"
)

// generated is how a file says that a program has written it, by the convention of the go command.
const generated = `(?m)^// Code generated .* DO NOT EDIT\.$`

// OfGo returns the lines of the comments of a Go file. Directives such as //go:embed are no prose,
// and a generated file has none.
func OfGo(source []byte) []Line {
	if regexp.MustCompile(generated).Match(source) {
		return nil
	}
	files := token.NewFileSet()
	file := files.AddFile("", files.Base(), len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, scanner.ScanComments)
	var lines []Line
	for {
		position, kind, text := s.Scan()
		if kind == token.EOF {
			return lines
		}
		if kind != token.COMMENT || strings.HasPrefix(text, "//go:") || strings.HasPrefix(text, "//nolint") {
			continue
		}
		number := file.Line(position)
		for line := range strings.Lines(text) {
			lines = append(lines, Line{Number: number, Text: strings.TrimRight(line, "\n"), Code: true})
			number++
		}
	}
}

// OfPage returns the lines of a page of Markdown that are no code.
func OfPage(text string) []Line {
	var lines []Line
	number, code := 0, false
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
			continue
		}
		if !code {
			lines = append(lines, Line{Number: number, Text: strings.TrimRight(line, "\n")})
		}
	}
	return lines
}

// Added are the numbers of the lines that a diff of one file adds. The diff is as git prints it
// with --unified=0.
func Added(diff string) map[int]bool {
	added := map[int]bool{}
	number := 0
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, "@@ "):
			number = begin(line)
		case strings.HasPrefix(line, "+") && !strings.HasPrefix(line, "+++ "):
			added[number] = true
			number++
		}
	}
	return added
}

// begin is the first line that a hunk such as "@@ -1,2 +3,4 @@" has in the new file.
func begin(hunk string) int {
	_, to, _ := strings.Cut(hunk, " +")
	number := 0
	for _, digit := range to {
		if digit < '0' || digit > '9' {
			break
		}
		number = 10*number + int(digit-'0')
	}
	return number
}
