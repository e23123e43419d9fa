package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The name of the image, and its labels.
const (
	name     = "localhost/gridproxy:test"
	base     = "localhost/gridproxy-go:test"
	version  = "v9.9.9-test"
	revision = "0123456789abcdef"
)

// builder is buildah with a storage of its own, in which layers are plain folders: that needs nothing of the file system.
type builder struct {
	t   *testing.T
	env []string
}

func newBuilder(t *testing.T) builder {
	t.Helper()
	folder := t.TempDir()
	settings := filepath.Join(folder, "storage.conf")
	text := "[storage]\ndriver = \"vfs\"\ngraphroot = \"" + folder + "/graph\"\nrunroot = \"" + folder + "/run\"\n"
	temporary := filepath.Join(folder, "tmp") // for caches of the build, too
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(temporary, 0o700); err != nil {
		t.Fatal(err)
	}
	b := builder{t: t, env: append(os.Environ(), "BUILDER=buildah", "BUILDAH_ISOLATION=chroot", "STORAGE_DRIVER=vfs",
		"CONTAINERS_STORAGE_CONF="+settings, "TMPDIR="+temporary, "GO_IMAGE="+base, "IMAGE="+name, "VERSION="+version, "REVISION="+revision)}
	t.Cleanup(func() { unmounted(t, folder) })
	return b
}

// run runs a program in the repository, and says how long it took.
func (b builder) run(program string, args ...string) string {
	b.t.Helper()
	begin := time.Now()
	cmd := exec.CommandContext(b.t.Context(), program, args...)
	cmd.Dir, cmd.Env = "../..", b.env
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	what := strings.Join(append([]string{program}, args...), " ")
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, out)
	}
	b.t.Logf("%s: %s", what, time.Since(begin).Round(time.Second))
	return string(out)
}

func (b builder) with(more ...string) builder {
	b.env = append(b.env[:len(b.env):len(b.env)], more...)
	return b
}

// unmounted takes away what a build that was stopped has left mounted: the folder could not be removed else.
func unmounted(t *testing.T, folder string) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Error(err)
		return
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) > 1 && strings.HasPrefix(f[1], folder+"/") {
			t.Errorf("%s is still mounted", f[1])
			_ = exec.CommandContext(context.WithoutCancel(t.Context()), "umount", "--lazy", f[1]).Run()
		}
	}
}
