package main

import (
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// enter is the first half of pid 1: it moves into the machine's control groups and starts the
// second half, boot, as the same process. A namespace of control groups can be changed by one
// thread only, and exec is what makes that thread the whole process. It returns only if it fails.
func enter(c bootConfig, program string, args ...string) error {
	for _, g := range c.Cgroups {
		if err := g.join(""); err != nil {
			return err
		}
	}
	runtime.LockOSThread()
	// Whom to die with is a thread's own mark, and this may not be the thread that was started with it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("asking to be killed with the caller: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("making a namespace of control groups: %w", err)
	}
	if err := unix.Exec(program, append([]string{c.Name + "/init"}, args...), os.Environ()); err != nil {
		return fmt.Errorf("starting the second half of pid 1, %s: %w", program, err)
	}
	return nil
}

// boot is the second half of pid 1. It returns only if the machine cannot run.
func boot(c bootConfig) error {
	if err := c.mount(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return fmt.Errorf("setting the name of the machine: %w", err)
	}
	for _, g := range c.Cgroups {
		if g.Type == "cgroup2" {
			if err := g.delegate(); err != nil {
				return err
			}
		}
	}
	s := newSupervisor()
	go func() {
		if err := c.start(s); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", c.Name, err)
			os.Exit(1) // a machine that does not boot is off
		}
	}()
	return s.reap()
}
