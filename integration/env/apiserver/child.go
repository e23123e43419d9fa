package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"gridproxy/integration/env/wait"
)

// Namespace is a network namespace that functions can be run in. Do runs f on a thread of its own
// that stands in the namespace, and returns when f does.
type Namespace interface {
	Do(f func() error) error
}

// Spec says how to start a Child.
type Spec struct {
	Name      string // of the log file too
	Path      string
	Called    string    // the program's name for itself and for ps; "": Path
	Args      []string  // without the program's name
	Env       []string  // added to the caller's
	Dir       string    // where NAME.log is written, appended to
	Namespace Namespace // nil: the caller's
	// Cloneflags make further namespaces for it.
	Cloneflags uintptr
}

// Child is a running process. It cannot outlive the caller: the kernel kills it when the thread that
// started it ends, and that thread is kept for as long as the child lives.
type Child struct {
	spec    Spec
	process *os.Process
	done    chan struct{} // closed once the process is reaped
	err     error         // valid after done
}

// StartChild starts a process. What it prints goes to its log file.
func StartChild(spec Spec) (*Child, error) {
	c := &Child{spec: spec, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := Within(c.spec.Namespace, func() error { return c.keep(started) })
		select {
		case started <- err:
		default:
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("starting %s: %w", spec.Name, err)
	}
	return c, nil
}

// Within runs f in a namespace; nil is the caller's.
func Within(ns Namespace, f func() error) error {
	if ns == nil {
		return f()
	}
	return ns.Do(f)
}

// keep starts the process, reports that, and stays on its thread until the process has ended.
func (c *Child) keep(started chan<- error) error {
	log, err := os.OpenFile(c.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("opening its log: %w", err)
	}
	defer log.Close()
	cmd := exec.Command(c.spec.Path, c.spec.Args...)
	if c.spec.Called != "" {
		cmd.Args[0] = c.spec.Called
	}
	cmd.Env = append(os.Environ(), c.spec.Env...)
	cmd.Dir = c.spec.Dir
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Cloneflags: c.spec.Cloneflags}
	if err := cmd.Start(); err != nil {
		return err
	}
	c.process = cmd.Process
	started <- nil
	c.err = cmd.Wait()
	close(c.done)
	return nil
}

// Log is the path of the log file.
func (c *Child) Log() string { return filepath.Join(c.spec.Dir, c.spec.Name+".log") }

// PID is the process's id.
func (c *Child) PID() int { return c.process.Pid }

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Stop sends a signal and waits until the process has ended; after grace it is killed.
func (c *Child) Stop(signal os.Signal, grace time.Duration) {
	if c == nil {
		return
	}
	_ = c.process.Signal(signal) // an error is that it has ended, which is what is wanted
	select {
	case <-c.done:
		return
	case <-time.After(grace):
	}
	_ = c.process.Kill()
	<-c.done
}

// WaitFor polls until ready returns nil. It fails when the process ends or ctx does, with the end of
// the log and the last thing that ready complained about.
func (c *Child) WaitFor(ctx context.Context, ready func(context.Context) error) error {
	err := wait.For(ctx, func(ctx context.Context) error {
		err := ready(ctx)
		select {
		case <-c.done:
			if err != nil {
				err = wait.Stop(fmt.Errorf("it ended: %w", orSuccess(c.err)))
			}
		default:
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("waiting for %s: %w; the end of its log:\n%s", c.spec.Name, err, c.Tail(20))
	}
	return nil
}

func orSuccess(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// Tail is the last lines of the log.
func (c *Child) Tail(lines int) string { return Tail(c.Log(), lines) }

// Tail is the last lines of a file; of one that cannot be read, the reason.
func Tail(path string, lines int) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	at := len(content)
	for seen := 0; at > 0; at-- {
		if content[at-1] == '\n' {
			if seen > lines {
				break
			}
			seen++
		}
	}
	return string(content[at:])
}

// healthy asks for a URL that answers 200 when all is well, and returns what it says otherwise.
func healthy(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}
