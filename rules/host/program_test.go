package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestCommandEndsWholeGroup: what a wrapper started ends with it, although it ignores SIGTERM
// and holds the pipes.
func TestCommandEndsWholeGroup(t *testing.T) {
	dir := t.TempDir()
	script, pidFile := filepath.Join(dir, "tool"), filepath.Join(dir, "pid")
	body := "#!/bin/sh\ntrap '' TERM\nsh -c 'trap \"\" TERM; echo $$ >" + pidFile + ".new; mv " + pidFile + ".new " + pidFile + "; while :; do sleep 1; done' &\nwait\n"
	if err := os.WriteFile(script, []byte(body), 0o755); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Command(ctx, script).CombinedOutput()
		ended <- err
	}()
	child := awaitPID(t, pidFile)
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	cancel()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a program that was killed ended well")
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the program goes on after its context has ended")
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if gone(child) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("process %d, which the program started, goes on", child)
		}
	}
}

// awaitPID waits for a program to say which process it started.
func awaitPID(t *testing.T, file string) int {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(file); err == nil {
			pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("the program has not started another one")
	return 0
}

// gone reports whether a process has ended. In a container no process may collect it: a zombie
// has ended too.
func gone(pid int) bool {
	if errors.Is(unix.Kill(pid, 0), unix.ESRCH) {
		return true
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, after, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(after, "Z")
}
