package node

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
)

// pinned is the commit that is upgraded from. Move it forward only with a release that no longer
// supports the upgrade from it.
const pinned = "bb5010eff7d4b24169d841b0e8423686ce9756ab"

// release is a checkout of one commit, with both programs built from it.
type release struct {
	name                  string
	source                string // its files
	gridproxy, controller string // paths of the programs
	flag                  string // of its daemon; "": none
}

// releases returns the pinned release and today's. The test is skipped where the history lacks the
// pinned commit and no remote gives it.
func releases(t *testing.T) (before, today release) {
	t.Helper()
	root, err := filepath.Abs("../..")
	must(t, err)
	if git(root, "cat-file", "-e", pinned+"^{commit}") != nil {
		err := git(root, "fetch", "--quiet", "--depth=1", "origin", pinned)
		need.That(t, err == nil, fmt.Sprintf("the history has no commit %s: run `git fetch --unshallow`: %v", pinned, err))
	}
	before = release{name: "older", source: t.TempDir()}
	archive := filepath.Join(t.TempDir(), "older.tar")
	must(t, git(root, "archive", "--output="+archive, pinned))
	must(t, run(before.source, "tar", "-xf", archive))
	before.build(t)
	today = release{name: "today's", source: root, flag: netns.NoStatusSocket}
	today.build(t)
	return before, today
}

// build compiles both programs in the release's own module.
func (r *release) build(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	r.gridproxy, r.controller = filepath.Join(dir, "gridproxy"), filepath.Join(dir, "grid-controller")
	must(t, run(r.source, "go", "build", "-buildvcs=false", "-o", dir+"/", "./cmd/gridproxy", "./cmd/grid-controller"))
}

func git(root string, args ...string) error { return run(root, "git", args...) }

// run runs a program in a folder. The error carries its output.
func run(dir, name string, args ...string) error {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", name, args, err, bytes.TrimSpace(out))
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
