package watch

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"gridproxy/integration/env/need"
)

// saveTo is the variable that makes TestKilledWhileSaving only save, to that folder.
const saveTo = "SAVE_STATE_TO"

// TestKilledWhileSaving kills a process at each system call of Save. Either generation is read
// then, without a problem, and the next write goes well.
func TestKilledWhileSaving(t *testing.T) {
	if dir := os.Getenv(saveTo); dir != "" {
		runtime.LockOSThread() // strace counts the calls of each thread
		if _, err := NewStore(dir, "bj-1").Save(savedNamed("new"), moment); err != nil {
			t.Fatal(err)
		}
		return
	}
	need.Strace(t)
	seen := map[string]int{} // how often each Service was read after a kill
	for _, call := range []string{"openat", "fchmod", "write", "fsync", "newfstatat", "fstat", "renameat", "close"} {
		for n, killed := 1, true; killed; n++ {
			if n > 200 {
				t.Fatalf("%s: still killed at call %d", call, n)
			}
			s := storeWith(t, "older", "old")
			if killed = saveKilledAt(t, s.dir, call, n); !killed {
				wantLoaded(t, s, "new")
				continue
			}
			read, problems, ok := s.Load()
			if !ok || len(problems) > 0 {
				t.Fatalf("killed at %s %d: %v %q; files %s", call, n, ok, problems, filesOf(t, s))
			}
			seen[read.Snapshot.Services[0].Name]++
			if _, err := s.Save(savedNamed("next"), moment); err != nil {
				t.Fatal(err)
			}
			wantLoaded(t, s, "next")
		}
	}
	t.Logf("read after a kill: %v", seen)
	if seen["old"] == 0 || seen["new"] == 0 || len(seen) != 2 {
		t.Errorf("read after a kill: %v, want old and new", seen)
	}
}

// saveKilledAt saves in a process that is killed at the n-th call of that name in one of its
// threads; false = there were fewer.
func saveKilledAt(t *testing.T, dir, call string, n int) bool {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-qq", "-o", filepath.Join(t.TempDir(), "calls"),
		"-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, n),
		os.Args[0], "-test.run=^TestKilledWhileSaving$")
	cmd.Env = append(os.Environ(), saveTo+"="+dir)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return false
	case errors.As(err, &exit) && !exit.Exited(): // strace ends as the process did
		return true
	default:
		t.Fatalf("strace: %v\n%s", err, out)
		return false
	}
}
