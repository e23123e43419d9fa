package netns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
)

// Process is a program that runs in a namespace until it is stopped.
type Process struct {
	cmd  *exec.Cmd
	log  *Log
	done chan struct{}
	err  error // of Wait; read only after done
}

// Start starts a program in the namespace; what it writes is kept in its Log. It runs until it
// exits, is stopped, or the lab is closed.
func (n *Namespace) Start(name string, args ...string) (*Process, error) {
	p := &Process{cmd: exec.Command(name, args...), log: &Log{}, done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), n.Env...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := n.spawn.start(n.ns, p.cmd); err != nil {
		return nil, fmt.Errorf("starting %s on %s: %w", name, n.Name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	n.spawn.adopt(p)
	return p, nil
}

// PID is the program's process id.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Log is what the program wrote so far.
func (p *Process) Log() *Log { return p.log }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is the code that an ended program left; -1 while it runs and after a signal.
func (p *Process) ExitCode() int {
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	default:
		return -1
	}
}

// Stop asks the program to end (SIGTERM), kills it if ctx ends first, and waits for it.
// The error says that it had to be killed, or that it ended with a code other than 0.
func (p *Process) Stop(ctx context.Context) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("asking process %d to end: %w", p.PID(), err)
	}
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		p.Kill()
		return fmt.Errorf("process %d did not end when asked to: %w", p.PID(), ctx.Err())
	}
}

// Kill ends the program and those it started at once (SIGKILL) and waits for it. They are
// one process group, which nothing else is in.
func (p *Process) Kill() {
	select {
	case <-p.done:
	default:
		_ = syscall.Kill(-p.PID(), syscall.SIGKILL) // fails only if all have ended, which is what is wanted
	}
	<-p.done
}

// Log collects what a program writes. Safe for concurrent use.
type Log struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

// Write adds to the log.
func (l *Log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

// String is everything written so far.
func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// Contains says whether text was written so far.
func (l *Log) Contains(text string) bool { return strings.Contains(l.String(), text) }
