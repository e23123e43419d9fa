package chart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/nodes"
)

// olderChart is the last commit whose chart had no standard labels.
const olderChart = "8d38d5920e6ab1bedf6925cfc301c81326e01df2"

// TestUpgrade: a real API server takes today's chart in the place of an older one, with all that
// cannot be changed, such as selectors, and the way back.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	c := nodes.ForTest(t, nodes.Options{APIServer: []string{"--allow-privileged=true"}})
	c.ApplyFile(t, folder+"/namespace.yaml")
	older := h
	older.Chart = chartOf(t, olderChart)
	for _, from := range []Helm{older, h, older} {
		text, err := from.Template(t.Context())
		must(t, err)
		if _, err := c.KubectlIn(t.Context(), strings.NewReader(text), "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
			t.Errorf("applying %s: %v", from.Chart, err)
		}
	}
}

// chartOf is the chart of a commit, in a folder of its own. The test is skipped where the history
// lacks the commit.
func chartOf(t *testing.T, commit string) string {
	t.Helper()
	root, err := Root(t.Context())
	must(t, err)
	git := func(args ...string) error {
		return exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).Run()
	}
	if git("cat-file", "-e", commit+"^{commit}") != nil {
		err := git("fetch", "--quiet", "--depth=1", "origin", commit)
		need.That(t, err == nil, "the history has no commit "+commit+": run `git fetch --unshallow`")
	}
	dir := t.TempDir()
	archive := filepath.Join(dir, "older.tar")
	must(t, git("archive", "--output="+archive, commit, "deploy"))
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "-xf", archive).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	must(t, os.Remove(archive))
	return filepath.Join(dir, "deploy", "charts", Name)
}
