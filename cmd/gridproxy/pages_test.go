package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// example is a command on a page, and what the page shows of its output; no lines: nothing.
type example struct {
	command string
	output  []string
}

// examples are the commands in the code blocks of a page that read the samples. One that begins
// with "$ " is followed by its output.
func examples(page string) []example {
	var all []example
	code, open := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		command, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case strings.HasPrefix(line, "```"):
			code, open = !code, false
		case code && strings.HasPrefix(command, "gridproxy ") && strings.Contains(command, "deploy/samples/"):
			all, open = append(all, example{command: command}), prompted
		case code && open:
			last := &all[len(all)-1]
			last.output = append(last.output, line)
		}
	}
	return all
}

// TestCommandsOfPages runs what a newcomer reads first: each command on the samples works as printed, and
// prints what the page shows.
func TestCommandsOfPages(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for page, least := range map[string]int{"README.md": 1, "docs/getting-started.md": 4} {
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		found := examples(string(text))
		if len(found) < least {
			t.Errorf("%s has %d commands on the samples, want at least %d", page, len(found), least)
		}
		for _, e := range found {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", e.command)
			cmd.Dir = root
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%s: %s: %v", page, e.command, err)
				continue
			}
			if len(out) == 0 {
				t.Errorf("%s: %s prints nothing", page, e.command)
			}
			if want := strings.TrimRight(strings.Join(e.output, "\n"), "\n"); want != "" {
				if diff := cmp.Diff(want, strings.TrimRight(string(out), "\n")); diff != "" {
					t.Errorf("%s: %s (-page +output)\n%s", page, e.command, diff)
				}
			}
		}
	}
}
