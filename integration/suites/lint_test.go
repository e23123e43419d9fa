package suites

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPhrasesInComments: the suite lint refuses a phrase in a comment, wherever that begins, and
// none in code. TestPagesWithFaults tests the phrases on pages.
func TestPhrasesInComments(t *testing.T) {
	pattern := regexp.MustCompile(`/phrases '(.*)'`).FindStringSubmatch(readFile(t, "integration/suites/lint"))
	if pattern == nil {
		t.Fatal("lint does not search for phrases")
	}
	file := filepath.Join(t.TempDir(), "a.go")
	const source = "// nobody\nconst text = \"nobody\"\n//go:generate nobody\nvar a = 1\t// Anew.\n"
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), "./phrases", pattern[1], file)
	out, err := command.Output()
	if command.ProcessState.ExitCode() != 1 {
		t.Errorf("phrases: %v", err)
	}
	want := fmt.Sprintf("%s:1:// nobody (nobody: write no process, no user, or the active voice)\n%[1]s:4:\t// Anew. (anew: write again)\n", file)
	if diff := cmp.Diff(want, string(out)); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
}
