package commandtest

import (
	"fmt"
	"strings"
	"testing"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
)

// ExitCodes checks that the help of each visible command has the codes of that command, and that a
// page has the table of codes, and a line with its codes for each of these commands and no other.
func ExitCodes(t *testing.T, program Program, file string) {
	page := read(t, file)
	var table strings.Builder
	table.WriteString("| code | meaning |\n|---|---|\n")
	for _, c := range command.ExitCodes() {
		fmt.Fprintf(&table, "| %d | %s |\n", c.Code, c.Meaning)
	}
	if !strings.Contains(page, "\n\n"+table.String()+"\n") {
		t.Errorf("%s does not have this table:\n%s", file, table.String())
	}
	commands, lines := visible(t, program), map[string]bool{}
	for _, c := range commands {
		help := answer(t, program, append(strings.Fields(c.CommandPath())[words(commands[0]):], "--help")...)
		if want := section(c); !strings.Contains(help, want) {
			t.Errorf("the help of %s does not have this:\n%s\nbut:\n%s", c.CommandPath(), want, help)
		}
		if c != commands[0] {
			lines[line(c)] = true
		}
	}
	for l := range strings.SplitSeq(page, "\n") {
		if strings.HasPrefix(l, "| `"+commands[0].CommandPath()+" ") && !lines[l] {
			t.Errorf("%s has a line that is wrong:\n%s", file, l)
		}
		delete(lines, l)
	}
	for l := range lines {
		t.Errorf("%s does not have this line:\n%s", file, l)
	}
}

// words returns how many words the name of a program has.
func words(root *cobra.Command) int { return len(strings.Fields(root.CommandPath())) }

// section returns the section about exit codes that the help of a command must have.
func section(c *cobra.Command) string {
	text := "\n\nExit codes:\n"
	for _, code := range command.ExitCodesOf(c) {
		text += fmt.Sprintf("  %d  %s\n", code.Code, code.Meaning)
	}
	return text + "\nUsage:\n"
}

// line returns the line that the page must have for a command.
func line(c *cobra.Command) string {
	var codes []string
	for _, code := range command.ExitCodesOf(c) {
		codes = append(codes, fmt.Sprint(code.Code))
	}
	return fmt.Sprintf("| `%s` | %s | %s |", c.CommandPath(), c.Short, strings.Join(codes, ", "))
}
