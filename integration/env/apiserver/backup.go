package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"gridproxy/integration/env/wait"
)

// Backup copies what etcd has into a folder. etcd stands still meanwhile, so that its files are
// what a crash would leave, from which it recovers.
func (c *Cluster) Backup(ctx context.Context, dir string) error {
	if err := c.etcd.process.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("halting etcd: %w", err)
	}
	defer func() { _ = c.etcd.process.Signal(syscall.SIGCONT) }() // it has ended, or goes on
	halt := func(context.Context) error { return wait.Check(halted(c.etcd.PID()), "it runs") }
	if err := wait.For(ctx, halt); err != nil {
		return fmt.Errorf("waiting until etcd stands still: %w", err)
	}
	if err := os.CopyFS(dir, os.DirFS(dataDir(c.options))); err != nil {
		return fmt.Errorf("copying the files of etcd: %w", err)
	}
	return nil
}

// Restore ends the API servers and etcd, puts a Backup in the place of what etcd has, and starts
// all again. Clients that live on meet versions from the past.
func (c *Cluster) Restore(ctx context.Context, dir string) error {
	var running []*APIServer
	for _, a := range c.servers {
		if a.child != nil {
			running = append(running, a)
			a.Stop()
		}
	}
	c.etcd.Stop(signalKill, 0)
	if err := os.RemoveAll(dataDir(c.options)); err != nil {
		return fmt.Errorf("removing the files of etcd: %w", err)
	}
	err := os.CopyFS(dataDir(c.options), os.DirFS(dir))
	if err == nil {
		c.etcd, err = startEtcd(ctx, c.options)
	}
	for _, a := range running {
		if err == nil {
			err = a.Start(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("restoring a control plane from %s: %w", dir, err)
	}
	return nil
}

// halted: every thread of a process stands still.
func halted(pid int) bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return err == nil && len(stats) > 0 && !slices.ContainsFunc(stats, func(path string) bool {
		text, err := os.ReadFile(path)
		_, after, _ := strings.Cut(string(text), ") ")
		return err != nil || !strings.HasPrefix(after, "T")
	})
}
