package watch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"

	"golang.org/x/sys/unix"
)

// ownMounts is the variable that says that TestBrokenDisk runs with mounts of its own.
const ownMounts = "OWN_MOUNTS"

// TestBrokenDisk: on a disk that is full or read-only, the state of before is still read, and the
// next write after the repair goes well. The disk is a file system in memory, in a mount namespace.
func TestBrokenDisk(t *testing.T) {
	need.Root(t)
	if os.Getenv(ownMounts) == "" {
		cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "--propagation=private", os.Args[0], "-test.run=^TestBrokenDisk$", "-test.v")
		cmd.Env = append(os.Environ(), ownMounts+"=yes")
		out, err := cmd.CombinedOutput()
		if t.Logf("%s", out); err != nil {
			t.Error(err)
		}
		return
	}
	disk := t.TempDir()
	must(t, unix.Mount("state", disk, "tmpfs", 0, "size=256k"))
	defer func() { _ = unix.Unmount(disk, unix.MNT_DETACH) }()
	s := NewStore(filepath.Join(disk, "state"), "bj-1")
	save := func(service string, want error) {
		t.Helper()
		if _, err := s.Save(savedNamed(service), moment); !errors.Is(err, want) {
			t.Errorf("saving %s: %v, want %v", service, err, want)
		}
	}
	save("one", nil)
	save("two", nil)

	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	reports := 0
	saver := NewSaver(SaverConfig{Store: s, Report: func(error) { reports++ }}, savedNamed("two"))
	saver.Enforced(savedNamed("three"))
	for range 5 {
		saver.Flush()
	}
	if stats := saver.Stats(); !errors.Is(stats.Err, syscall.ENOSPC) || reports != 1 {
		t.Errorf("saving three five times: %v, reported %d times, want once", stats.Err, reports)
	}
	wantLoaded(t, s, "two")
	must(t, os.Remove(filler))
	save("four", nil)
	wantLoaded(t, s, "four")

	must(t, os.WriteFile(filepath.Join(s.dir, "state"), []byte("damaged"), 0o600))
	readOnly := func(flag uintptr) {
		must(t, unix.Mount("", disk, "", unix.MS_REMOUNT|flag, ""))
	}
	readOnly(unix.MS_RDONLY)
	save("five", syscall.EROFS)
	wantLoaded(t, s, "two", "read-only file system")
	wantLoaded(t, s, "two", "read-only file system") // it could not be set aside
	readOnly(0)
	save("six", nil)
	wantLoaded(t, s, "six")
}
