package lockfile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// TestTake: a lock has one holder, who is named to others, and is free when the holder ends. The
// file of a holder that was killed stops no process. Only the user of the daemon may open it.
func TestTake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	ended, end := context.WithCancel(t.Context())
	end()
	first, err := Take(ended, path, "process 7, a long description of an old daemon")
	if err != nil {
		t.Fatal(err)
	}
	var held HeldError
	if _, err := Take(ended, path, "process 8"); !errors.As(err, &held) || held.Holder != "process 7, a long description of an old daemon" {
		t.Errorf("a second one: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != fs.FileMode(0o600) {
		t.Errorf("%v, %v", info, err)
	}
	waiting := make(chan error, 1)
	go func() {
		second, err := Take(t.Context(), path, "process 8")
		if err == nil {
			defer second.Close()
			if text, _ := os.ReadFile(path); string(text) != "process 8" {
				err = errors.New("the file says " + string(text))
			}
		}
		waiting <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-waiting; err != nil {
		t.Errorf("after the end of the first one: %v", err)
	}
}

// TestTakeNothingElse: a symbolic link is not followed, and a missing folder is an error.
func TestTakeNothingElse(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.WriteFile(target, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "missing/lock"} {
		if _, err := Take(t.Context(), filepath.Join(dir, name), "me"); err == nil {
			t.Errorf("%s is locked", name)
		}
	}
	if text, err := os.ReadFile(target); string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
}

// TestTakeWithoutHolder: a caller that does not describe itself leaves the content of the file as
// it is, because the path may be mistyped.
func TestTakeWithoutHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "Cargo.lock")
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	lock, err := Take(t.Context(), path, "")
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
}
