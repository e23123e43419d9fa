package document

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const text = "# Title\n```sh\nearly\n```\n## Do it\ntext\n```sh\n# a comment\none\n```\n```text\nnot this\n```\n```sh\ntwo\n```\n### More\n```sh\nthree\n```\n"

func TestCommands(t *testing.T) {
	d := Document{Path: filepath.Join(t.TempDir(), "a.md")}
	if err := os.WriteFile(d.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for heading, want := range map[string]string{"Title": "early", "Do it": "# a comment\none\ntwo", "More": "three"} {
		if got, err := d.Commands(heading); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", heading, got, err, want)
		}
	}
	if _, err := d.Commands("Elsewhere"); err == nil || !strings.Contains(err.Error(), "no commands below a heading") {
		t.Errorf("error %v", err)
	}
}
