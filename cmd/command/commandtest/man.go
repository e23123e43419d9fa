package commandtest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/cmd/command"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Program makes the root command of a program, as command.Main takes it.
type Program func(command.Stdio) *cobra.Command

// answer returns what a program prints for args. It fails the test unless the code is 0.
func answer(t *testing.T, program Program, args ...string) string {
	t.Helper()
	var out, problems bytes.Buffer
	if code := command.Run(t.Context(), program, args, command.Stdio{In: strings.NewReader(""), Out: &out, Err: &problems}); code != command.OK {
		t.Fatalf("%q: code %d\n%s", args, code, problems.String())
	}
	return out.String()
}

// visible returns the commands of a program that are in its help, the root first.
func visible(t *testing.T, program Program) []*cobra.Command {
	t.Helper()
	var root *cobra.Command
	answer(t, func(std command.Stdio) *cobra.Command {
		root = program(std)
		return root
	}, "--help")
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		for _, child := range all[i].Commands() {
			if child.IsAvailableCommand() {
				all = append(all, child)
			}
		}
	}
	if len(all) < 3 {
		t.Fatalf("%s has %d commands", root.CommandPath(), len(all))
	}
	return all
}

// ManPages checks that a program writes a page for each visible command, with each visible flag and
// no other, the same ones each time; and that man(1), if it is installed, can show them.
func ManPages(t *testing.T, program Program) {
	dir, again := filepath.Join(t.TempDir(), "new", "man1"), t.TempDir()
	answer(t, program, "man", dir)
	answer(t, program, "man", again)
	commands := visible(t, program)
	pages, err := os.ReadDir(dir)
	if err != nil || len(pages) != len(commands) {
		t.Errorf("%d pages of %d commands, error %v", len(pages), len(commands), err)
	}
	for _, c := range commands {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		page := read(t, filepath.Join(dir, name))
		if page != read(t, filepath.Join(again, name)) {
			t.Errorf("%s differs from one time to the next", name)
		}
		if text := unescaped(page); !strings.Contains(text, c.Short) {
			t.Errorf("%s does not say %q", name, c.Short)
		}
		checkFlags(t, c, name, page)
		if man, err := exec.LookPath("man"); err == nil {
			checkShown(t, man, c, filepath.Join(dir, name))
		}
	}
}

// unescaped returns the text of a page without the escapes of roff.
func unescaped(page string) string { return strings.ReplaceAll(page, `\`, "") }

func checkFlags(t *testing.T, c *cobra.Command, name, page string) {
	t.Helper()
	check := func(f *pflag.Flag) {
		shown := strings.Contains(page, `\fB--`+f.Name+`\fP`) || strings.Contains(page, `\fB\-\-`+strings.ReplaceAll(f.Name, "-", `\-`)+`\fP`)
		if shown == f.Hidden {
			t.Errorf("%s: flag --%s is shown: %t, hidden: %t", name, f.Name, shown, f.Hidden)
		}
	}
	c.NonInheritedFlags().VisitAll(check)
	c.InheritedFlags().VisitAll(check)
}

// checkShown checks that man shows each line of the help that is a table, unbroken, and complains
// of nothing.
func checkShown(t *testing.T, man string, c *cobra.Command, file string) {
	t.Helper()
	cmd := exec.Command(man, "--warnings", "-l", file)
	cmd.Env = append(os.Environ(), "MANWIDTH=200", "MANPAGER=cat", "LC_ALL=C.UTF-8", "TERM=dumb")
	var problems bytes.Buffer
	cmd.Stderr = &problems
	shown, err := cmd.Output()
	if err != nil || problems.Len() > 0 {
		t.Errorf("man -l %s: %v\n%s", filepath.Base(file), err, problems.String())
	}
	lines := map[string]bool{}
	for line := range strings.SplitSeq(string(shown), "\n") {
		lines[strings.TrimSpace(line)] = true
	}
	for line := range strings.SplitSeq(c.Long, "\n") {
		if strings.HasPrefix(line, "  ") && !lines[strings.TrimSpace(line)] {
			t.Errorf("man -l %s does not show the line %q", filepath.Base(file), line)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
