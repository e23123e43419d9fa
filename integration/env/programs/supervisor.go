package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"gridproxy/integration/env/wait"

	"golang.org/x/sys/unix"
)

// supervisor starts programs and, as pid 1 has to, waits for all that end, its own and orphans.
type supervisor struct {
	mu      sync.Mutex
	waiting map[int]chan unix.WaitStatus
}

func newSupervisor() *supervisor { return &supervisor{waiting: map[int]chan unix.WaitStatus{}} }

// reap never returns unless the kernel fails it.
func (s *supervisor) reap() error {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.ECHILD):
			time.Sleep(50 * time.Millisecond) // nothing has been started yet
		case err != nil:
			return fmt.Errorf("waiting for processes to end: %w", err)
		default:
			s.ended(pid, status)
		}
	}
}

func (s *supervisor) ended(pid int, status unix.WaitStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c, ok := s.waiting[pid]; ok {
		delete(s.waiting, pid)
		c <- status
	}
}

// start starts a program; the channel says once how it ended.
func (s *supervisor) start(v service) (<-chan unix.WaitStatus, error) {
	log, err := os.OpenFile(v.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("opening the log of %s: %w", v.Called, err)
	}
	defer log.Close()
	s.mu.Lock() // until it is noted, reap must not look for it
	defer s.mu.Unlock()
	p, err := os.StartProcess(v.Path, append([]string{v.Called}, v.Args...), &os.ProcAttr{
		Dir: "/", Env: os.Environ(), Files: []*os.File{nil, log, log}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("starting %s: %w", v.Called, err)
	}
	c := make(chan unix.WaitStatus, 1)
	s.waiting[p.Pid] = c
	return c, nil
}

// keep starts a service now and again whenever it ends, as its unit would say on a machine with systemd.
func (s *supervisor) keep(v service) error {
	ended, err := s.start(v)
	if err != nil {
		return err
	}
	go func() {
		for {
			status := <-ended
			fmt.Fprintf(os.Stderr, "%s ended (%s) and is started again\n", v.Called, describe(status))
			time.Sleep(200 * time.Millisecond)
			if ended, err = s.start(v); err != nil {
				fmt.Fprintf(os.Stderr, "%v\n", err)
				return
			}
		}
	}()
	return nil
}

func describe(status unix.WaitStatus) string {
	if status.Signaled() {
		return "killed by " + status.Signal().String()
	}
	return fmt.Sprintf("exit status %d", status.ExitStatus())
}

// start starts what a machine runs, in order: images must be there before the kubelet looks for them, since it
// looks again only after a pause.
func (c bootConfig) start(s *supervisor) error {
	if err := s.keep(c.Containerd); err != nil {
		return err
	}
	if err := wait.Usual.For(context.Background(), func(context.Context) error {
		conn, err := net.Dial("unix", c.Socket)
		if err == nil {
			err = conn.Close()
		}
		return err
	}); err != nil {
		return fmt.Errorf("waiting for containerd: %w", err)
	}
	for _, image := range c.Imports {
		if err := c.importImage(s, image); err != nil {
			return err
		}
	}
	err := wait.Usual.For(context.Background(), func(context.Context) error { _, err := os.Stat(c.Kubeconfig); return err })
	if err != nil {
		return fmt.Errorf("waiting for the cluster: %w", err)
	}
	return s.keep(c.Kubelet)
}

// importImage imports an image unless a note on the machine's disk says that this was done before it was
// rebooted.
func (c bootConfig) importImage(s *supervisor, image string) error {
	note := "/var/lib/imported" + fmt.Sprintf("-%x", image)
	if _, err := os.Stat(note); err == nil {
		return nil
	}
	ended, err := s.start(service{
		Path: c.Import[0], Called: c.Name + "/import", Args: append(c.Import[1:len(c.Import):len(c.Import)], image), Log: c.Containerd.Log,
	})
	if err != nil {
		return err
	}
	if status := <-ended; status != 0 {
		return fmt.Errorf("importing %s: %s; see %s", image, describe(status), c.Containerd.Log)
	}
	return os.WriteFile(note, nil, 0o644)
}
