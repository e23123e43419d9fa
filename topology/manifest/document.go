package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strconv"

	"sigs.k8s.io/yaml"
)

// document is one document of a manifest file, as JSON.
type document []byte

// documents are the documents of a manifest file that have content, in YAML or JSON. It
// yields those that can be read together with an error for each that cannot.
func documents(file string, text []byte) ([]document, []error) {
	var all []document
	var errs []error
	for _, c := range chunks(text) {
		found, err := c.documents(filepath.Ext(file) == ".json")
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: document %d: %w", file, len(all)+len(found)+1, err))
			found = append(found, nil) // keeps the count of those that follow
		}
		all = append(all, found...)
	}
	return all, errs
}

// chunk is the text between two YAML document markers.
type chunk struct {
	line int // of the file, from 0
	text []byte
}

// chunks cuts at the lines that YAML reserves as document markers: "---" and "...". Content of a
// mapping is indented, so it is never on such a line.
func chunks(text []byte) []chunk {
	var all []chunk
	last, line := chunk{}, 0
	start := 0
	for at := 0; at < len(text); line++ {
		end := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if at > 0 && isMarker(text[at:end]) {
			last.text = text[start:at]
			all = append(all, last)
			last, start = chunk{line: line}, at
		}
		at = end
	}
	last.text = text[start:]
	return append(all, last)
}

func isMarker(line []byte) bool {
	rest, found := bytes.CutPrefix(line, []byte("---"))
	if !found {
		rest, found = bytes.CutPrefix(line, []byte("..."))
	}
	return found && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// hasContent distinguishes documents from comments, directives and bare markers.
func (c chunk) hasContent() bool {
	for line := range bytes.Lines(c.text) {
		line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff")))
		if len(line) > 0 && line[0] != '#' && line[0] != '%' && !bytes.Equal(line, []byte("---")) && !bytes.Equal(line, []byte("...")) {
			return true
		}
	}
	return false
}

func (c chunk) documents(onlyJSON bool) ([]document, error) {
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
	return []document{found}, nil
}

// fromJSON reads objects that follow one another, as kubectl and jq print them. Where not
// even the first is JSON, the text may still be YAML.
func (c chunk) fromJSON() ([]document, error) {
	var all []document
	for d := json.NewDecoder(bytes.NewReader(c.text)); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			line := c.line + 1 + bytes.Count(c.text[:syntaxErrorOffset(err, d.InputOffset(), len(c.text))], []byte("\n"))
			return all, fmt.Errorf("line %d: the JSON is malformed or cut off (%w); correct it", line, err)
		}
		if len(all) == 0 && raw[0] != '{' && raw[0] != '[' {
			return nil, errors.New("line 1: neither a JSON object nor a list of them")
		}
		all = append(all, document(raw))
	}
}

// syntaxErrorOffset is how much of the text was read before the error. An error's own
// offset counts from the start of the stream.
func syntaxErrorOffset(err error, read int64, size int) int {
	if e, ok := errors.AsType[*json.SyntaxError](err); ok {
		read = e.Offset - 1 // that of the offending byte
	}
	return min(max(int(read), 0), size)
}

func (c chunk) fromYAML() (document, error) {
	text, err := yaml.YAMLToJSONStrict(c.text)
	if err != nil {
		return nil, fmt.Errorf("the YAML is malformed or cut off (%s); correct it", c.absoluteLines(err.Error()))
	}
	if bytes.Equal(text, []byte("null")) {
		return nil, nil
	}
	return text, nil
}

// absoluteLines turns the line numbers of a YAML error into those of the file.
func (c chunk) absoluteLines(message string) string {
	message = regexp.MustCompile(`(?s)^.*?yaml: (unmarshal errors:\s+)?`).ReplaceAllString(message, "")
	message = regexp.MustCompile(`\s*\n\s*`).ReplaceAllString(message, "; ")
	return regexp.MustCompile(`\bline (\d+)`).ReplaceAllStringFunc(message, func(text string) string {
		n, err := strconv.Atoi(text[len("line "):])
		if err != nil {
			return text
		}
		return fmt.Sprintf("line %d", c.line+n)
	})
}
