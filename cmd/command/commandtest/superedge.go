package commandtest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"gridproxy/cmd/command"
)

// SuperEdgeFlags checks that each flag of the program of SuperEdge whose place a program takes is
// taken by its command run, or refused with what to do instead, and that a page has the same lines.
func SuperEdgeFlags(t *testing.T, program Program, file string) {
	root := program(command.Stdio{})
	theirs := command.FindSuperEdgeProgram(root.Name())
	run, _, err := root.Find([]string{"run"})
	if err != nil || len(theirs.Flags) == 0 {
		t.Fatalf("%s takes the place of no program: %v", root.Name(), err)
	}
	rows := ""
	for _, f := range theirs.Flags {
		rows += fmt.Sprintf("| `--%s` | %s |\n", f.Name, f.Here)
		if ours, found := strings.CutPrefix(f.Here, "write --"); found && run.Flags().Lookup(ours) == nil {
			t.Errorf("--%s: %s run has no flag --%s", f.Name, root.Name(), ours)
		}
		if strings.HasPrefix(f.Here, "the same") {
			if run.Flags().Lookup(f.Name) == nil {
				t.Errorf("%s run has no flag --%s", root.Name(), f.Name)
			}
			continue
		}
		for _, name := range []string{f.Name, strings.ReplaceAll(f.Name, "-", "_")} {
			var problems strings.Builder
			std := command.Stdio{In: strings.NewReader(""), Out: &problems, Err: &problems}
			code := command.Run(t.Context(), program, []string{"run", "--" + name + "=localhost:51006"}, std)
			want := fmt.Sprintf("; instead of --%s of %s: %s\n", f.Name, theirs.Name, f.Here)
			if code != command.Usage || !strings.Contains(problems.String(), want) {
				t.Errorf("--%s: code %d, %q; want %q", name, code, problems.String(), want)
			}
		}
	}
	head := fmt.Sprintf("| %s | %s |\n|---|---|\n", theirs.Name, root.Name())
	page := regexp.MustCompile("`(--[a-z-]+|[a-z-]+ version)`").ReplaceAllString(read(t, file), "$1")
	if want := head + strings.ReplaceAll(rows, "`", "") + "\n"; !strings.Contains(page, want) {
		t.Errorf("%s does not have this table:\n%s", file, head+rows)
	}
}
