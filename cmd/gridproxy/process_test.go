package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// deadline is how long a test waits for something that should happen soon. Virtual machines are
// slow.
const deadline = 2 * time.Minute

// process is a daemon in a network namespace of its own, which outlives it until the test
// ends.
type process struct {
	cmd    *exec.Cmd
	ns     netns.NsHandle
	output *safeBuffer
	ended  chan struct{}
}

// start runs `gridproxy run` with args. The machine's own sysctls are left alone.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	need.IPTables(t)
	return startIn(t, newNamespace(t), args...)
}

func startIn(t *testing.T, ns netns.NsHandle, args ...string) *process {
	t.Helper()
	return startCommand(t, ns, gridproxy(append([]string{"run", "--iptables-variant=nft", "--conntrack-max-per-core=0", "-v=4"}, args...)...))
}

// startCommand starts a program that the kernel kills if this process ends first. The kernel does
// so when the thread ends that started the program, so this thread waits for the program.
func startCommand(t *testing.T, ns netns.NsHandle, cmd *exec.Cmd) *process {
	t.Helper()
	output := &safeBuffer{}
	cmd.Stdout, cmd.Stderr = output, output
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &process{cmd: cmd, ns: ns, output: output, ended: make(chan struct{})}
	started := make(chan struct{})
	done := inside(ns, func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		close(started)
		_ = cmd.Wait() // the code is read from ProcessState
		close(p.ended)
		return nil
	})
	select {
	case <-started:
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // an error means that it has ended already
		<-p.ended
		if t.Failed() {
			t.Logf("the daemon said:\n%s", output.String())
		}
	})
	return p
}

// gridproxy is a command of the program. A daemon has no status socket, unless args name one: every
// test would have the same.
func gridproxy(args ...string) *exec.Cmd {
	if args[0] == "run" {
		args = slices.Insert(slices.Clone(args), 1, "--status-socket=")
	}
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asGridproxy+"=1")
	return cmd
}

// finish runs a command to its end. It fails only if the command cannot be started.
func finish(cmd *exec.Cmd) (code int, text, said string, err error) {
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	if err = cmd.Run(); errors.As(err, new(*exec.ExitError)) {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), out.String(), problems.String(), err
}

// container is a daemon that is process 1 of a PID namespace, in its own mount namespace.
type container struct {
	*process
	program string
}

func startContainer(t *testing.T, ns netns.NsHandle, flags ...string) container {
	t.Helper()
	program := filepath.Join(t.TempDir(), "gridproxy")
	if err := os.Symlink(os.Args[0], program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", `mount --make-rprivate / && mount -t proc proc /proc && exec "$0" "$@"`, program, "run", "--status-socket=")
	cmd.Args = append(cmd.Args, flags...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	return container{startCommand(t, ns, cmd).ready(t), program}
}

// run runs a command in the container.
func (c container) run(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	inside := append([]string{"-t", fmt.Sprint(c.cmd.Process.Pid), "-p", "-m", c.program}, args...)
	p := startCommand(t, c.ns, exec.Command("nsenter", inside...))
	return p.wait(t), p.output.String()
}

// newNamespace makes a network namespace without a name, with loopback up. It is gone with
// its last handle and process.
func newNamespace(t *testing.T) netns.NsHandle {
	t.Helper()
	made := make(chan netns.NsHandle, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ns, err := netns.New()
		if err != nil {
			t.Errorf("making a network namespace: %v", err)
		}
		made <- ns
	}()
	ns := <-made
	if t.Failed() {
		t.FailNow()
	}
	t.Cleanup(func() { _ = ns.Close() })
	handle, err := netlink.NewHandleAt(ns)
	if err != nil {
		t.Fatal(err)
	}
	defer handle.Close()
	lo, err := handle.LinkByName("lo")
	if err == nil {
		err = handle.LinkSetUp(lo)
	}
	if err != nil {
		t.Fatalf("bringing lo up: %v", err)
	}
	within(t, ns, need.Settings)
	return ns
}

// setSysctl sets what a test relies on. Without nf_conntrack its settings do not exist yet.
func setSysctl(t *testing.T, ns netns.NsHandle, name, value string) {
	t.Helper()
	within(t, ns, func() error {
		err := os.WriteFile("/proc/sys/"+name, []byte(value), 0)
		if errors.Is(err, fs.ErrNotExist) && strings.Contains(name, "nf_conntrack") {
			return nil
		}
		return err
	})
}

// within runs f on a thread inside the namespace. Processes that f starts are in it too.
func within(t *testing.T, ns netns.NsHandle, f func() error) {
	t.Helper()
	if err := <-inside(ns, f); err != nil {
		t.Fatal(err)
	}
}

// inside is like within, but does not wait for f. The thread ends with f, which must not end the
// test.
func inside(ns netns.NsHandle, f func() error) <-chan error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		if err := netns.Set(ns); err != nil {
			done <- fmt.Errorf("entering the namespace: %w", err)
			return
		}
		done <- f()
	}()
	return done
}

// rules are the rules in the kernel of the namespace, without the lines that always change.
func (p *process) rules(t *testing.T) string {
	t.Helper()
	return p.savedBy(t, "nft")
}

// savedBy is rules, of one variant.
func (p *process) savedBy(t *testing.T, variant string) string {
	t.Helper()
	var out bytes.Buffer
	within(t, p.ns, func() error {
		cmd := exec.Command("iptables-" + variant + "-save")
		cmd.Stdout = &out
		return cmd.Run()
	})
	var kept []string
	for line := range strings.Lines(out.String()) {
		if !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

type answer struct {
	code int
	body string
}

// get sends a request to the daemon over loopback; code 0 = no answer.
func (p *process) get(path string, port int) answer {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: p.dial}}
	r, err := client.Get(fmt.Sprintf("http://127.0.0.1:%d%s", port, path))
	if err != nil {
		return answer{}
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return answer{}
	}
	return answer{r.StatusCode, string(body)}
}

func (p *process) dial(ctx context.Context, network, addr string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if err = netns.Set(p.ns); err == nil {
			conn, err = (&net.Dialer{FallbackDelay: -1}).DialContext(ctx, network, addr)
		}
	}()
	<-done
	return conn, err
}

// until waits for a condition.
func (p *process) until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	wait.Until(t, what, func() error {
		last := errors.New("not yet")
		select {
		case <-p.ended:
			last = wait.Stop(errors.New("the daemon has ended"))
		default:
		}
		if ok() {
			return nil
		}
		return last
	})
}

// ready waits until /readyz answers with 200, and returns the daemon.
func (p *process) ready(t *testing.T) *process {
	t.Helper()
	p.until(t, "ready", func() bool { return p.get("/readyz", 10256).code == 200 })
	return p
}

// logged counts the lines of the daemon that contain text.
func (p *process) logged(text string) int {
	n := 0
	for line := range strings.Lines(p.output.String()) {
		if strings.Contains(line, text) {
			n++
		}
	}
	return n
}

func (p *process) stop(t *testing.T, with syscall.Signal) int {
	t.Helper()
	if err := p.cmd.Process.Signal(with); err != nil {
		t.Fatal(err)
	}
	return p.wait(t)
}

func (p *process) wait(t *testing.T) int {
	t.Helper()
	wait.Receive(t, "the daemon ends", p.ended)
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) cleanup(t *testing.T) {
	t.Helper()
	within(t, p.ns, func() error {
		if out, err := gridproxy("cleanup", "--iptables-variant=nft").CombinedOutput(); err != nil {
			return fmt.Errorf("gridproxy cleanup: %w: %s", err, out)
		}
		return nil
	})
}

// safeBuffer collects what a process prints while a test reads it.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
