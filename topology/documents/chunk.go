package documents

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"

	yamlv2 "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// chunk is the text between two YAML document markers.
type chunk struct {
	line int    // of the file, from 0
	raw  []byte // its JSON: a string may hold U+0085, U+2028 and U+2029
	text []byte // its YAML: raw with one "\n" for each line end
}

// cut returns the text between the lines that YAML reserves as document markers: "---" and
// "...". Content of a mapping is indented, so it is never on such a line. "..." ends a document
// and is left out.
func cut(text []byte) []chunk {
	var all []chunk
	first, start := 0, text // line and text of the chunk
	for line, at := 0, text; ; line++ {
		content, _, remaining := cutLine(at)
		content = bytes.TrimPrefix(content, []byte(byteOrderMark)) // files were concatenated
		if len(at) == 0 || isMarker(content) {
			raw := start[:len(start)-len(at)]
			all = append(all, chunk{line: first, raw: raw, text: unifyLineEnds(raw)})
			start = bytes.TrimPrefix(at, []byte(byteOrderMark))
			first, start = line, bytes.TrimPrefix(start, []byte("..."))
		}
		if len(at) == 0 {
			return all
		}
		at = remaining
	}
}

func isMarker(line []byte) bool {
	marker := bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("..."))
	return marker && (len(line) == 3 || line[3] == ' ' || line[3] == '\t')
}

// check returns an error if the text, comments included, holds NUL or is not UTF-8.
func (c chunk) check() error {
	for line, remaining := 0, c.text; len(remaining) > 0; line++ {
		var content []byte
		content, _, remaining = cutLine(remaining)
		if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
			return fmt.Errorf("line %d: holds NUL or is not UTF-8; save the file as UTF-8, or as UTF-16 with a byte order mark", c.line+line+1)
		}
	}
	return nil
}

// hasContent reports whether there is more than comments, directives and bare markers.
func (c chunk) hasContent() bool {
	for line := range bytes.Lines(c.text) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && line[0] != '%' && !bytes.Equal(line, []byte("---")) {
			return true
		}
	}
	return false
}

func (c chunk) documents(onlyJSON bool) ([][]byte, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if !c.hasContent() {
		return nil, nil
	}
	if found, err := c.fromJSON(); onlyJSON || len(found) > 0 {
		return found, err
	}
	found, err := c.fromYAML()
	if err != nil || found == nil {
		return nil, err
	}
	return [][]byte{found}, nil
}

// fromJSON returns objects that follow one another, as kubectl and jq print them, also those
// before an error. If not even the first is JSON, the text may still be YAML.
func (c chunk) fromJSON() ([][]byte, error) {
	var all [][]byte
	for d := json.NewDecoder(bytes.NewReader(c.raw)); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			line := c.line + 1 + bytes.Count(unifyLineEnds(c.raw[:syntaxErrorOffset(err, d.InputOffset(), len(c.raw))]), []byte("\n"))
			return all, fmt.Errorf("line %d: the JSON is malformed or cut off (%w); correct it", line, err)
		}
		if len(all) == 0 && raw[0] != '{' && raw[0] != '[' {
			return nil, errors.New("line 1: neither a JSON object nor a list of them")
		}
		all = append(all, raw)
	}
}

// syntaxErrorOffset returns how much of the text was read before the error. An error's own
// offset counts from the start of the stream.
func syntaxErrorOffset(err error, read int64, size int) int {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		read = e.Offset - 1 // that of the offending byte
	}
	return min(max(int(read), 0), size)
}

func (c chunk) fromYAML() ([]byte, error) {
	text, err := yaml.YAMLToJSONStrict(c.text)
	if err != nil {
		return nil, fmt.Errorf("the YAML is malformed or cut off (%s); correct it", c.absoluteLines(err.Error()))
	}
	if err := c.checkWhole(); err != nil {
		return nil, err
	}
	if bytes.Equal(text, []byte("null")) {
		return nil, nil
	}
	return text, nil
}

// checkWhole returns an error if the YAML library would ignore text after the first document.
// It returns none for a document that cannot be parsed, which is left to the one who reads it.
func (c chunk) checkWhole() error {
	d := yamlv2.NewDecoder(bytes.NewReader(c.text))
	if err := d.Decode(&unread{}); err != nil {
		return nil //nolint:nilerr // the other library has read it, or its error is reported
	}
	err := d.Decode(&unread{})
	if errors.Is(err, io.EOF) {
		return nil
	}
	what := "it is a second document"
	if err != nil {
		what = c.absoluteLines(err.Error())
	}
	return fmt.Errorf("more text follows the document that begins at line %d (%s); write --- before a second document", c.line+1, what)
}

// unread makes the YAML library parse a document without making values of it.
type unread struct{}

// UnmarshalYAML implements the interface of the YAML library.
func (*unread) UnmarshalYAML(func(any) error) error { return nil }

// absoluteLines returns a YAML error's text with the line numbers of the file. The library
// counts from 0 where its parser, and not its scanner, finds the problem.
func (c chunk) absoluteLines(message string) string {
	message = regexp.MustCompile(`(?s)^.*?yaml: (unmarshal errors:\s+)?`).ReplaceAllString(message, "")
	message = regexp.MustCompile(`\s*\n\s*`).ReplaceAllString(message, "; ")
	first := c.line
	if regexp.MustCompile(`did not find expected (<|node content|key|'-'|',')`).MatchString(message) {
		first++
	}
	return regexp.MustCompile(`\bline (\d+)`).ReplaceAllStringFunc(message, func(text string) string {
		n, err := strconv.Atoi(text[len("line "):])
		if err != nil {
			return text
		}
		return fmt.Sprintf("line %d", first+n)
	})
}
