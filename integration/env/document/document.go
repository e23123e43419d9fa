package document

import (
	"fmt"
	"os"
	"strings"
)

// Document is a Markdown file.
type Document struct{ Path string }

// Commands are the lines in the sh blocks below a heading, up to the next one.
func (d Document) Commands(heading string) (string, error) {
	content, err := os.ReadFile(d.Path)
	if err != nil {
		return "", fmt.Errorf("reading the document: %w", err)
	}
	var lines []string
	for _, b := range Parse(string(content)).Blocks {
		if b.Language == shBlock && b.Heading == heading {
			lines = append(lines, b.Lines...)
		}
	}
	if len(lines) == 0 {
		return "", fmt.Errorf("%s has no commands below a heading %q", d.Path, heading)
	}
	return strings.Join(lines, "\n"), nil
}
