package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/promise"

	"github.com/google/go-cmp/cmp"
)

func show(t *testing.T, demo netns.Demo) string {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	var out strings.Builder
	err := errors.Join(demo.Show(t.Context(), &out), demo.Close())
	if errors.Is(err, errLeft) {
		promise.Broken(t, promise.Closure, "%v", err)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	netns.NothingLeft(t)
	return out.String()
}

// TestDemo plays the whole demo: closure holds, the screen is narrow enough, the rules that
// it shows are the node's, and no file is left.
func TestDemo(t *testing.T) {
	need.IPTables(t)
	out := show(t, &stage{})
	for line := range strings.Lines(out) {
		if len(strings.TrimRight(line, "\n")) > 100 {
			t.Errorf("line of %d columns: %s", len(line), line)
		}
	}
	for _, want := range []string{"480 requests: 0 left their unit, 0 failed", "KUBE-SVC-COY5MDFFORWDI6KK", "--to-destination 10.0.1.72:8080"} {
		if !strings.Contains(out, want) {
			t.Errorf("the demo does not show %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "--to-destination 10.0.0.139:8080") {
		t.Errorf("the rules of bj-3 lead to guangzhou:\n%s", out)
	}
}

// TestKept: the manifests stay where the user wants them, as they are at the end, and the command
// that the demo prints works on them.
func TestKept(t *testing.T) {
	need.IPTables(t)
	folder := filepath.Join(t.TempDir(), "new", "demo")
	out := show(t, &stage{keep: folder})
	_, command, found := strings.Cut(out, "The manifests stay in "+folder+". Try: ")
	command, _, _ = strings.Cut(command, "\n")
	if !found || command != "gridproxy matrix --manifests "+folder {
		t.Fatalf("the demo names the command %q:\n%s", command, out)
	}
	binary := program.ForTest(t, program.Gridproxy)
	matrix, err := exec.CommandContext(t.Context(), binary, strings.Fields(command)[1:]...).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "SERVICE                       CLOSED BY  beijing  guangzhou\n" + serviceName + "  location   beijing  guangzhou\n"
	if diff := cmp.Diff(want, string(matrix)); diff != "" {
		t.Errorf("the matrix (-want +got):\n%s", diff)
	}
	nodes, err := os.ReadFile(filepath.Join(folder, netns.NodesFile))
	if err != nil || strings.Count(string(nodes), "location: "+netns.Beijing) != 4 {
		t.Errorf("%v; %s has not moved:\n%s", err, mover, nodes)
	}

	again := &stage{keep: folder}
	err = errors.Join(again.Show(t.Context(), io.Discard), again.Close())
	if err == nil || !strings.Contains(err.Error(), folder+", because it is not empty") {
		t.Errorf("of a folder with files it is said: %v", err)
	}
	netns.NothingLeft(t)
}

// TestInterrupt ends the demo in the middle, as Ctrl-C does.
func TestInterrupt(t *testing.T) {
	need.IPTables(t)
	t.Setenv("TMPDIR", t.TempDir())
	netns.InterruptDemo(t, &stage{}, "40 requests")
}
