package main

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// killGrace is how long processes have between SIGTERM and SIGKILL.
const killGrace = 10 * time.Second

// command is a program that is ended with all that it started when ctx ends.
func command(ctx context.Context, dir, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		killGroup(cmd.Process.Pid)
		return nil
	}
	cmd.WaitDelay = killGrace
	return cmd
}

// killGroup ends a group of processes: with SIGTERM, and with SIGKILL those that still run after
// killGrace. Once it returns, none of the group runs.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGTERM) // fails only if all of them have ended
	for until := time.Now().Add(killGrace); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		if syscall.Kill(-pid, 0) != nil {
			return
		}
	}
	_ = syscall.Kill(-pid, syscall.SIGKILL)
}
