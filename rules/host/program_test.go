package host

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
)

// TestCommandEndsWholeGroup: what a wrapper started ends with it, although it ignores SIGTERM
// and holds the pipes.
func TestCommandEndsWholeGroup(t *testing.T) {
	dir := t.TempDir()
	script, pidFile := filepath.Join(dir, "tool"), filepath.Join(dir, "pid")
	body := "#!/bin/sh\ntrap '' TERM\nsh -c 'trap \"\" TERM; echo $$ >" + pidFile + ".new; " +
		"mv " + pidFile + ".new " + pidFile + "; while :; do sleep 1; done' &\nwait\n"
	must(t, os.WriteFile(script, []byte(body), 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := Command(ctx, script).CombinedOutput()
		ended <- err
	}()
	child := awaitPID(t, pidFile)
	t.Cleanup(func() { _ = unix.Kill(child, unix.SIGKILL) })
	cancel()
	if err := wait.Receive(t, "the program ends with its context", ended); err == nil {
		t.Error("a program that was killed ended well")
	}
	wait.Until(t, "what the program started ends", func() error { return wait.Check(gone(child), "process %d goes on", child) })
}

// awaitPID waits for a program to say which process it started.
func awaitPID(t *testing.T, file string) int {
	t.Helper()
	var pid int
	wait.Until(t, "the program has started another one", func() error {
		b, err := os.ReadFile(file)
		if err == nil {
			pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		}
		return err
	})
	return pid
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
