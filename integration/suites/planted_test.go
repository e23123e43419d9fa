package suites

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// maxPlanted is how many lines a planted fault changes at most.
const maxPlanted = 10

// TestPlanted: each planted fault still applies, is small, and names a test that exists. In the
// copy of the tree that make planted makes, one of the faults is applied already.
func TestPlanted(t *testing.T) {
	patches, err := filepath.Glob("planted/*.patch")
	if err != nil || len(patches) != 4 {
		t.Fatalf("there are %d planted faults, %v; want 4", len(patches), err)
	}
	tests := testsOf(t)
	for _, patch := range patches {
		text, err := os.ReadFile(patch)
		if err != nil {
			t.Fatal(err)
		}
		head := regexp.MustCompile(`^\S.*\.\nRefused by: (Test\w+)\nFirst try: (?:yes|no)\n\n`).FindStringSubmatch(string(text))
		if head == nil || !slices.ContainsFunc(tests, func(x test) bool { return x.name == head[1] }) {
			t.Errorf("%s: begin with what is wrong, a line \"Refused by: Test…\" with a test that exists, and \"First try: yes\" or no", patch)
		}
		if lines := len(regexp.MustCompile(`(?m)^[-+](?:[^-+]|$)`).FindAllString(string(text), -1)); lines == 0 || lines > maxPlanted {
			t.Errorf("%s changes %d lines, want at most %d", patch, lines, maxPlanted)
		}
		apply := func(flags ...string) error {
			args := append([]string{"apply", "--check"}, flags...)
			cmd := exec.CommandContext(t.Context(), "git", append(args, filepath.Join("integration", "suites", patch))...)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			t.Logf("%s", out)
			return err
		}
		if apply() != nil && apply("--reverse") != nil {
			t.Errorf("%s does not apply any more: write it again for the code as it is now", patch)
		}
	}
}
