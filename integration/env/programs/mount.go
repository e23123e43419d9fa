package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// mount gives the machine what it must not share with the others.
func (c bootConfig) mount() error {
	steps := []func() error{
		func() error { return mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
		func() error { return mount("proc", "/proc", "proc", 0, "") },
		func() error { return mount("tmpfs", "/run", "tmpfs", 0, "mode=755") },
		func() error { return bind(c.VarLib, "/var/lib") },
		func() error { return bind(c.Log, "/var/log") },
		c.mountKernelSettings,
		// The new sysfs shows the machine's own links.
		func() error { return mount("sysfs", "/sys", "sysfs", 0, "") },
		c.mountCgroups,
		c.bindAll,
		// Mounts that a kubelet makes must reach the containers that ask for them.
		func() error { return mount("", "/", "", unix.MS_REC|unix.MS_SHARED, "") },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func (c bootConfig) bindAll() error {
	var errs []error
	for to, from := range c.Binds {
		errs = append(errs, bind(from, to))
	}
	return errors.Join(errs...)
}

// mountKernelSettings covers the settings that a kubelet insists on with files that hold what it wants: they are
// the whole computer's, and nothing here may change them.
func (c bootConfig) mountKernelSettings() error {
	for key, value := range map[string]string{
		"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
		"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
	} {
		target := filepath.Join("/proc/sys", key)
		if _, err := os.Stat(target); errors.Is(err, os.ErrNotExist) {
			continue
		}
		file := filepath.Join("/run", strings.ReplaceAll(key, "/", "."))
		if err := os.WriteFile(file, []byte(value+"\n"), 0o644); err != nil {
			return fmt.Errorf("writing a kernel setting: %w", err)
		}
		if err := bind(file, target); err != nil {
			return err
		}
	}
	return nil
}

// mountCgroups mounts the hierarchies where they were; in the new namespace they begin at the machine's groups.
func (c bootConfig) mountCgroups() error {
	const root = "/sys/fs/cgroup"
	if !slices.ContainsFunc(c.Cgroups, func(g cgroup) bool { return g.Mount == root }) {
		if err := mount("tmpfs", root, "tmpfs", 0, "mode=755"); err != nil {
			return err
		}
	}
	for _, g := range c.Cgroups {
		if err := os.MkdirAll(g.Mount, 0o755); err != nil && g.Mount != root {
			return fmt.Errorf("making a folder for control groups: %w", err)
		}
		if err := mount(g.Type, g.Mount, g.Type, 0, g.Options); err != nil {
			return err
		}
	}
	return nil
}

func bind(from, to string) error { return mount(from, to, "", unix.MS_BIND|unix.MS_REC, "") }

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mounting %s %s on %s (%s): %w", kind, source, target, data, err)
	}
	return nil
}
