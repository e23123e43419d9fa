package services

import (
	"os"
	"strings"
	"testing"
)

// The table in docs/scenarios.md is from a run of exactly these scenarios.
func TestDocument(t *testing.T) {
	content, err := os.ReadFile("../../../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(content), "\n## ")
	told := map[string]bool{}
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) == 5 {
			told[strings.TrimSpace(cells[1])] = true
		}
	}
	for _, s := range scenarios() {
		if !told[s.name] {
			t.Errorf("docs/scenarios.md does not tell of %q: copy the table that TestScenarios prints without -short into it", s.name)
		}
		delete(told, s.name)
	}
	for _, head := range []string{"scenario", "---"} {
		delete(told, head)
	}
	for name := range told {
		t.Errorf("docs/scenarios.md tells of %q, which is not run", name)
	}
}

// No two scenarios have one name: the second would not be in the table.
func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range scenarios() {
		if seen[s.name] {
			t.Errorf("two scenarios are called %q", s.name)
		}
		seen[s.name] = true
	}
}
