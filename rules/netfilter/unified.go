package netfilter

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
)

// WriteUnified writes a unified diff of lines from what the kernel holds to what is desired; nil
// is what does not exist.
func WriteUnified(w io.Writer, name string, kernel, desired []string) (int64, error) {
	text := diff.Diff(side("kernel", name, kernel), textOf(kernel), side("desired", name, desired), textOf(desired))
	_, hunks, _ := bytes.Cut(text, []byte("\n")) // the first line only repeats the names
	n, err := w.Write(hunks)
	if err != nil {
		return int64(n), fmt.Errorf("writing the difference of %s: %w", name, err)
	}
	return int64(n), nil
}

// side is how one side of a unified diff is called; nothing is called as diff(1) calls it.
func side(what, name string, lines []string) string {
	if lines == nil {
		return "/dev/null"
	}
	return what + "/" + name
}

func textOf(lines []string) []byte {
	if len(lines) == 0 {
		return nil
	}
	return []byte(strings.Join(lines, "\n") + "\n")
}
