package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Command returns a command that is killed when ctx ends, with every process that it started:
// it gets a process group of its own. Without that, a wrapper script would die and the tool
// that it started would keep the pipes open and the xtables lock held.
func Command(ctx context.Context, path string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.WaitDelay = pipeDelay
	cmd.Cancel = func() error {
		err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
		if errors.Is(err, unix.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
	return cmd
}

// Within runs do, which starts the program at path and waits for it by a library that cannot end
// it. When ctx ends first, the program is killed with every process that it started, and do returns
// what the library makes of that. do runs on the calling thread, so in its network namespace. No
// other program of this path may be a child of this process meanwhile.
func Within(ctx context.Context, path string, do func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	done := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		for {
			killChildren(path)
			select {
			case <-done:
				return
			case <-time.After(pipeDelay / 10): // it may have been about to start another
			}
		}
	})
	err := do()
	close(done)
	killer.Wait()
	return err
}

// killChildren kills the children of this process that run the program at path, which may be a
// script, and every process that these started.
func killChildren(path string) {
	children := map[int][]int{} // by parent
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // tried again until the program ends
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			parent := parentOf(pid)
			children[parent] = append(children[parent], pid)
		}
	}
	var kill func(pid int)
	kill = func(pid int) {
		_ = unix.Kill(pid, unix.SIGKILL) // fails only if it has ended
		for _, c := range children[pid] {
			kill(c)
		}
	}
	for _, pid := range children[os.Getpid()] {
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // of one that has ended: nothing
		args := strings.Split(string(line), "\x00")
		if args[0] == path || len(args) > 1 && args[1] == path {
			kill(pid)
		}
	}
}

// parentOf returns the ID of the process that started pid; 0 if pid has ended.
func parentOf(pid int) int {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

// LoadModule loads a kernel module, unless the file that the module creates exists. An error is not
// returned: what needs the module reports it.
func LoadModule(ctx context.Context, name, makes string) {
	if _, err := os.Stat(makes); err != nil {
		ctx, cancel := context.WithTimeout(ctx, moduleTimeout)
		defer cancel()
		_ = Command(ctx, "modprobe", name).Run()
	}
}
