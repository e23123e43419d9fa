package watch

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/wait"
)

// TestFilesThatAreNoFilesAreRefused: a FIFO, a device or a socket in a manifests folder is an error
// with its name. It neither hangs the daemon nor takes its memory, and everything else continues.
func TestFilesThatAreNoFilesAreRefused(t *testing.T) {
	for kind, create := range map[string]func(name string) error{
		"a FIFO":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"a device": func(name string) error { return os.Symlink("/dev/zero", name) },
		"a socket": func(name string) error {
			socket, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
			if err == nil {
				t.Cleanup(func() { socket.Close() })
			}
			return err
		},
	} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			bad := filepath.Join(dir, "b.yaml")
			write(t, filepath.Join(dir, "a.yaml"), node("n1"))
			reports := make(chan error, 10)
			m := NewManifests(ManifestConfig{Paths: []string{dir}, Node: "n1", Settle: time.Millisecond, Poll: 20 * time.Millisecond,
				Report: func(_ []string, err error) { reports <- err }})
			start(t, m.Run)
			wait.Receive(t, "the first Snapshot", m.Changed())
			must(t, create(bad))
			if err := wait.Receive(t, "a report", reports); err == nil || !strings.Contains(err.Error(), bad+": is "+kind) {
				t.Errorf("reported %v, want an error with %q", err, bad+": is "+kind)
			}
			must(t, os.Remove(bad))
			if err := wait.Receive(t, "a report", reports); err != nil {
				t.Errorf("after it is removed %v is reported, want nothing wrong", err)
			}
		})
	}
}
