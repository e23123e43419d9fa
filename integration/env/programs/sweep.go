package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
)

// sweepPatience bounds the removal of one folder or control group.
const sweepPatience = wait.Usual / 6

// sweep waits until alive ends, which it does with the process that holds its other end, and then
// removes the control groups of a name, with what is left in them, and some folders.
func sweep(alive io.Reader, name string, folders []string) error {
	if _, err := io.Copy(io.Discard, alive); err != nil {
		return fmt.Errorf("waiting for the end of the cluster: %w", err)
	}
	errs := []error{removeCgroups(name)}
	for _, folder := range folders {
		errs = append(errs, sweepPatience.For(context.Background(), func(context.Context) error { return os.RemoveAll(folder) }))
	}
	return errors.Join(errs...)
}

// removeCgroups removes the control groups NAME or NAME/PART of newCgroups, with what is in them.
func removeCgroups(name string) error {
	hierarchies, err := mounted()
	if err != nil {
		return err
	}
	var errs []error
	for _, g := range hierarchies {
		errs = append(errs, sweepPatience.For(context.Background(), func(context.Context) error {
			return removeGroup(filepath.Join(g.Dir, name))
		}))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("removing control groups: %w", err)
	}
	return nil
}

// removeGroup removes a control group and those beneath it. It kills what is in them, and fails until that has
// ended.
func removeGroup(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, removeGroup(filepath.Join(dir, e.Name())))
		}
	}
	errs = append(errs, killGroup(dir))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if err := os.Remove(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func killGroup(dir string) error {
	content, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	if err != nil {
		return err
	}
	for _, word := range strings.Fields(string(content)) {
		if pid, err := strconv.Atoi(word); err == nil && pid > 0 {
			_ = unix.Kill(pid, unix.SIGKILL) // an error is that it has ended
		}
	}
	return nil
}
