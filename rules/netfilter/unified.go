package netfilter

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// WriteUnified writes a unified diff of lines from the observed state to the desired one; nil =
// does not exist.
func WriteUnified(w io.Writer, name string, kernel, desired []string) (int64, error) {
	text := diff.Diff(side("kernel", name, kernel), joinLines(kernel), side("desired", name, desired), joinLines(desired))
	_, hunks, _ := bytes.Cut(text, []byte("\n")) // the first line only repeats the names
	n, err := w.Write(hunks)
	if err != nil {
		return int64(n), fmt.Errorf("writing the difference of %s: %w", name, err)
	}
	return int64(n), nil
}

// side returns the name of one side of a unified diff. As in diff(1), it is /dev/null if that
// side does not exist.
func side(what, name string, lines []string) string {
	if lines == nil {
		return "/dev/null"
	}
	return what + "/" + name
}

func joinLines(lines []string) []byte {
	if len(lines) == 0 {
		return nil
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
