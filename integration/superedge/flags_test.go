package superedge

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"

	"gridproxy/cmd/command"
	"gridproxy/integration/env/apiserver"

	"github.com/google/go-cmp/cmp"
)

// TestFlags: the flags that the page maps to ours are those of SuperEdge's own controller.
func TestFlags(t *testing.T) {
	t.Parallel()
	superEdge, err := apiserver.EnsureSuperEdge(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), superEdge.Program(), "--help").CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, help)
	}
	var theirs, mapped []string
	for _, match := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([\w-]+)`).FindAllSubmatch(help, -1) {
		theirs = append(theirs, string(match[1]))
	}
	theirs = slices.DeleteFunc(theirs, func(name string) bool { return name == "help" })
	for _, f := range command.FindSuperEdgeProgram("grid-controller").Flags {
		mapped = append(mapped, f.Name)
	}
	slices.Sort(theirs)
	slices.Sort(mapped)
	if diff := cmp.Diff(theirs, mapped); diff != "" {
		t.Errorf("the flags (-application-grid-controller --help, +docs/migrate-from-superedge.md):\n%s", diff)
	}
}
