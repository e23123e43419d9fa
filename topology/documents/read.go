package documents

import (
	"fmt"
	"path/filepath"
)

// Read returns the documents of a file that have content, as JSON. The text is YAML or JSON; the
// name says which only if it ends in .json. It returns those that can be read together with an
// error for each that cannot, in whose place there is nil.
func Read(file string, text []byte) ([][]byte, []error) {
	var all [][]byte
	var errs []error
	for _, c := range cut(decode(text)) {
		found, err := c.documents(filepath.Ext(file) == ".json")
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: document %d: %w", file, len(all)+len(found)+1, err))
			found = append(found, nil) // keeps the count of those that follow
		}
		all = append(all, found...)
	}
	return all, errs
}

// IsEmpty reports whether a file has no text, at most a byte order mark. It may be half written.
func IsEmpty(text []byte) bool {
	return len(text) <= len(byteOrderMark) && len(decode(text)) == 0
}

// ReadOne returns the text of the only document of a YAML file. It is empty if the file has no
// content. A second document is an error.
func ReadOne(text []byte) ([]byte, error) {
	var only *chunk
	for _, c := range cut(decode(text)) {
		if err := c.check(); err != nil {
			return nil, err
		}
		if !c.hasContent() {
			continue
		}
		if only != nil {
			return nil, fmt.Errorf("line %d: a second document begins; keep one", c.line+1)
		}
		only = &c
	}
	if only == nil {
		return nil, nil
	}
	return only.text, only.checkWhole()
}
