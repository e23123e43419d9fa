package document

import (
	"regexp"
	"slices"
	"strings"
)

// The languages of code blocks that this package knows. The output of the commands of an sh block
// is the block without a language below it, if there is one before the next sh block or heading.
const (
	shBlock      = "sh"      // commands
	consoleBlock = "console" // commands, each after "$ ", with their output below them
)

// Page is the text of a Markdown page, taken apart.
type Page struct {
	Blocks  []Block
	Spans   []Span          // code in the text
	Links   []Span          // the targets of links, as they are written
	Anchors map[string]bool // of headings, as GitHub makes them
}

// Block is a block of code.
type Block struct {
	Heading  string // above it; "" = none
	Language string // what the block is marked as; "" = nothing
	Line     int    // of its first line, from 1
	Lines    []string
}

// Span is a part of a line.
type Span struct {
	Line int // from 1
	Text string
}

var (
	codeSpan = regexp.MustCompile("`([^`]+)`")
	link     = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	// besideAnchor is what an anchor leaves out of its heading.
	besideAnchor = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// Parse takes a page apart. A block that does not end, ends with the page.
func Parse(text string) Page {
	p := Page{Anchors: map[string]bool{}}
	heading, inside, number := "", false, 0
	for line := range strings.SplitSeq(text, "\n") {
		number++
		switch fence, code := strings.CutPrefix(strings.TrimSpace(line), "```"); {
		case code && !inside:
			inside = true
			p.Blocks = append(p.Blocks, Block{Heading: heading, Language: fence, Line: number + 1})
		case code:
			inside = false
		case inside:
			last := &p.Blocks[len(p.Blocks)-1]
			last.Lines = append(last.Lines, line)
		default:
			if strings.HasPrefix(line, "#") {
				heading = strings.TrimLeft(line, "# ")
				p.Anchors[p.anchor(heading)] = true
			}
			p.inline(number, line)
		}
	}
	return p
}

// anchor is what a link to a heading ends with: the second heading of a text has -1 added.
func (p Page) anchor(heading string) string {
	plain := link.ReplaceAllString(strings.ReplaceAll(heading, "`", ""), "")
	anchor := strings.ReplaceAll(strings.ToLower(besideAnchor.ReplaceAllString(plain, "")), " ", "-")
	if p.Anchors[anchor] {
		anchor += "-1"
	}
	return anchor
}

// inline finds what is in a line of text. What looks like a link in code is text.
func (p *Page) inline(number int, line string) {
	for _, found := range codeSpan.FindAllStringSubmatch(line, -1) {
		p.Spans = append(p.Spans, Span{number, found[1]})
	}
	for _, found := range link.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, "code"), -1) {
		p.Links = append(p.Links, Span{number, found[1]})
	}
}

// Example is a block of commands, and what the page shows of their output; no lines: nothing.
type Example struct {
	Heading  string
	Commands []Command
	Output   []string
}

// Command is a command as it is typed: more than one line if it has a continuation, a function or
// lines of input.
type Command struct {
	Line int // of the page, from 1
	Text string
}

// Examples are the commands in the blocks of a page, in its order.
func (p Page) Examples() ([]Example, error) {
	var all []Example
	for i, b := range p.Blocks {
		switch b.Language {
		case shBlock:
			commands, err := split(b.Line, b.Lines)
			if err != nil {
				return nil, err
			}
			e := Example{Heading: b.Heading, Commands: commands}
			if next := i + 1; next < len(p.Blocks) && p.Blocks[next].Language == "" && p.Blocks[next].Heading == b.Heading {
				e.Output = p.Blocks[next].Lines
			}
			all = append(all, e)
		case consoleBlock:
			examples, err := transcript(b)
			if err != nil {
				return nil, err
			}
			all = append(all, examples...)
		}
	}
	return all, nil
}

// transcript are the commands of a session. An empty line before a command is no output.
func transcript(b Block) ([]Example, error) {
	var all []Example
	for i, line := range b.Lines {
		if typed, ok := strings.CutPrefix(line, "$ "); ok {
			commands, err := split(b.Line+i, []string{typed})
			if err != nil {
				return nil, err
			}
			all = append(all, Example{Heading: b.Heading, Commands: commands})
		} else if len(all) > 0 {
			last := &all[len(all)-1]
			last.Output = append(last.Output, line)
		}
	}
	for i := range all {
		out := all[i].Output
		for len(out) > 0 && out[len(out)-1] == "" {
			out = out[:len(out)-1]
		}
		all[i].Output = slices.Clip(out)
	}
	return all, nil
}
