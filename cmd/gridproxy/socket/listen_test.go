package socket

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// newPath is in a folder that does not exist. Its length is bounded, so it is not in t.TempDir.
func newPath(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "status")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(dir, "run", "gridproxy", "s.sock")
}

func listen(t *testing.T, path string) net.Listener {
	t.Helper()
	l, err := Listen(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestListen: a socket is made with its folder, is not taken from a process that listens, is
// removed at the end, and is replaced if it was left over.
func TestListen(t *testing.T) {
	path := newPath(t)
	l := listen(t, path)
	if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := Listen(t.Context(), path); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(), path) {
		t.Errorf("a second one: %v", err)
	}
	if conn, err := net.Dial("unix", path); err != nil {
		t.Errorf("the first one does not listen any more: %v", err)
	} else {
		_ = conn.Close()
	}
	_ = l.Close()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket stays: %v", err)
	}

	leave(t, path)
	listen(t, path)
}

// leave leaves a socket as a process that is killed does.
func leave(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = l.Close()
}

// TestListenKeepsFiles: what is no socket is never removed, and a path that the kernel would cut is
// refused.
func TestListenKeepsFiles(t *testing.T) {
	path := newPath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(t.Context(), path); err == nil || !strings.Contains(err.Error(), "no socket") {
		t.Errorf("a file: %v", err)
	}
	if text, err := os.ReadFile(path); string(text) != "mine" {
		t.Errorf("the file is %q, %v", text, err)
	}
	if _, err := Listen(t.Context(), "/"+strings.Repeat("x", pathBytesMax)); err == nil || !strings.Contains(err.Error(), "108 bytes") {
		t.Errorf("a long path: %v", err)
	}
}

// TestListenAtOnce: of several daemons that start over a socket that was left, one gets the path.
func TestListenAtOnce(t *testing.T) {
	path := newPath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		leave(t, path)
		var starting sync.WaitGroup
		made := make(chan net.Listener, 4)
		for range cap(made) {
			starting.Go(func() {
				l, err := Listen(t.Context(), path)
				switch {
				case err == nil:
					made <- l
				case !errors.Is(err, ErrInUse):
					t.Error(err)
				}
			})
		}
		starting.Wait()
		close(made)
		if len(made) != 1 {
			t.Errorf("%d of %d listen", len(made), cap(made))
		}
		for l := range made {
			_ = l.Close()
		}
	}
}

// TestListenInLockedFolder: any user can lock the folder, and does not keep the daemon from its
// socket.
func TestListenInLockedFolder(t *testing.T) {
	path := newPath(t)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	folder, err := os.Open(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if err := unix.Flock(int(folder.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	listen(t, path)
}
