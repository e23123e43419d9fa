package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/program"
	"gridproxy/integration/env/wait"
)

// tests are the paths of vmexec and of the test binary of testdata/guest, and the folder that it
// runs in.
type tests struct{ vmexec, binary, dir string }

// prepare builds both, or skips the test where no machine can be had.
func prepare(t *testing.T, series ...string) tests {
	t.Helper()
	need.That(t, runtime.GOARCH == "amd64", "there are kernels for virtual machines on amd64 only")
	need.Tools(t, "run `go run ./integration/suites/run -install qemu`", slices.Concat(GuestTools(), HostTools(), []string{qemu})...)
	for _, s := range series {
		_, err := EnsureKernel(t.Context(), s, os.Stderr)
		need.That(t, err == nil, fmt.Sprintf("no kernel %[1]s for virtual machines: run `go run ./integration/env/vm -kernel %[1]s -fetch`: %[2]v", s, err))
	}
	dir, err := filepath.Abs("testdata/guest")
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	made := tests{vmexec: filepath.Join(temp, "vmexec"), binary: filepath.Join(temp, "guest.test"), dir: dir}
	for _, args := range [][]string{
		{"build", "-o", made.vmexec, "."},
		{"test", "-c", "-o", made.binary, "./testdata/guest"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", args[0], err, out)
		}
	}
	return made
}

// start runs tests of testdata/guest in a machine.
func (x tests) start(t *testing.T, output *netns.Log, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(x.vmexec, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = x.dir, output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it has ended, unless the test failed
		_ = cmd.Wait()
	})
	return cmd
}

// run runs tests of testdata/guest to their end and returns the exit code.
func (x tests) run(t *testing.T, args ...string) (output string, code int) {
	t.Helper()
	var log netns.Log
	cmd := x.start(t, &log, args...)
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return log.String(), cmd.ProcessState.ExitCode()
}

// TestExec: what becomes of a test binary reaches whoever started vmexec.
func TestExec(t *testing.T) {
	x := prepare(t, "6.1")
	for _, c := range []struct {
		name   string // of a test in testdata/guest
		code   int
		output string
		flag   string
	}{
		{"TestPass", 0, "no newline at the endPASS\n", ""},
		{"TestFail", 1, "it failed", ""},
		{"TestPanic", 2, "panic: it panicked", ""},
		{"TestExit", 7, "no newline before the end", ""},
		{"TestKilled", 128 + 9, "", ""},
		{"TestHang", 2, "panic: test timed out after 2s", "-test.timeout=2s"},
		{"TestCrash", failed, "Kernel panic - not syncing: sysrq triggered crash", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{x.binary, "-test.run=^" + c.name + "$"}
			if c.flag != "" {
				args = append(args, c.flag)
			}
			output, code := x.run(t, args...)
			if code != c.code || !strings.Contains(output, c.output) {
				t.Errorf("code %d, want %d and %q in the output:\n%s", code, c.code, c.output, output)
			}
		})
	}
}

// TestOwnClock: an hour in the machine takes no hour here.
func TestOwnClock(t *testing.T) {
	x := prepare(t, "6.1")
	var log netns.Log
	x.start(t, &log, "-own-clock", x.binary, "-test.timeout=1h", "-test.run=^TestHang$")
	wait.Until(t, "the hour of the machine is over", func() error {
		want := "panic: test timed out after 1h0m0s"
		return wait.Check(log.Contains(want), "%q is not in the output: %s", want, log.String())
	})
}

// TestKernels: go test runs a package on each kernel, which has what the tests of IPVS need.
func TestKernels(t *testing.T) {
	x := prepare(t, "6.1", "6.12")
	packed := t.TempDir()
	for _, name := range []string{"gridproxy", "grid-dns"} {
		if err := os.WriteFile(filepath.Join(packed, name), []byte("#!/bin/sh\necho packed\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, series := range []string{"6.1", "6.12"} {
		t.Run(series, func(t *testing.T) {
			cmd := exec.Command("go", "test", "-count=1", "-json", "-exec", x.vmexec+" -kernel "+series,
				"-run=^(TestKernel|TestSurroundings)$", "./testdata/guest")
			cmd.Env = append(os.Environ(), program.Variable+"="+packed, "GRIDPROXY_SAID=to the guest", "REQUIRE=all", "OTHER_SAID=nothing")
			out, err := cmd.Output()
			output, passed := events(t, out)
			if err != nil || !slices.Equal(passed, []string{"TestKernel", "TestSurroundings"}) {
				t.Errorf("%v: only %v passed:\n%s", err, passed, output)
			}
			if want := "kernel " + series + "."; !strings.Contains(output, want) {
				t.Errorf("%q is not in the output:\n%s", want, output)
			}
			if want := strings.Repeat("x", 100_000) + "\a\b\t\r\x03\x04\x11\x13\ufffd.\n"; !strings.Contains(output, want) {
				t.Error("the output was changed on its way")
			}
		})
	}
}

// events reads what go test -json prints: what the tests wrote, and the names of those that passed.
func events(t *testing.T, text []byte) (output string, passed []string) {
	t.Helper()
	var b strings.Builder
	for decoder := json.NewDecoder(bytes.NewReader(text)); decoder.More(); {
		var e struct{ Action, Test, Output string }
		if err := decoder.Decode(&e); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		b.WriteString(e.Output)
		if e.Action == "pass" && e.Test != "" {
			passed = append(passed, e.Test)
		}
	}
	return b.String(), passed
}

// TestEnd: a machine does not outlive vmexec, whatever ends it, and go test's SIGQUIT is answered
// with what the kernel said.
func TestEnd(t *testing.T) {
	x := prepare(t, "6.1")
	for _, signal := range []syscall.Signal{syscall.SIGQUIT, syscall.SIGKILL} {
		t.Run(signal.String(), func(t *testing.T) {
			must := func(err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
			}
			var log netns.Log
			// Without a time limit Go would see that nothing can happen any more, and end the program.
			cmd := x.start(t, &log, x.binary, "-test.v", "-test.timeout=10m", "-test.run=^TestHang$")
			wait.Until(t, "the test has started", func() error { return wait.Check(log.Contains("RUN   TestHang"), "%s", log.String()) })
			qemu := children(t, cmd.Process.Pid)
			if len(qemu) != 1 {
				t.Fatalf("vmexec has the children %v, want one", qemu)
			}
			must(cmd.Process.Signal(signal))
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); signal == syscall.SIGQUIT && (code != failed || !log.Contains("end of the console")) {
				t.Errorf("code %d, want %d and the console:\n%s", code, failed, log.String())
			}
			wait.Until(t, "QEMU has ended", func() error {
				state := processState(qemu[0])
				return wait.Check(state == "" || state == "Z", "process %d is in state %s", qemu[0], state)
			})
		})
	}
}

func children(t *testing.T, pid int) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var found []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if fields := processFields(child); err == nil && len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			found = append(found, child)
		}
	}
	return found
}

// processState is a letter such as R, S or Z; "" if there is no such process.
func processState(pid int) string {
	if fields := processFields(pid); len(fields) > 0 {
		return fields[0]
	}
	return ""
}

// processFields are the fields of /proc/PID/stat from the state on, which is followed by the
// parent.
func processFields(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	text := string(b)
	return strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
}

// TestRefusal: what cannot work is refused before a machine is started.
func TestRefusal(t *testing.T) {
	x := prepare(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "usage: vmexec"},
		{[]string{"-kernel", "2.6", x.binary}, `no kernel "2.6": choose 6.1 or 6.12`},
		{[]string{x.binary, "-test.coverprofile=c.out"}, "-test.coverprofile: files do not come back"},
		{[]string{"/no/such/binary"}, "/no/such/binary"},
	} {
		output, code := x.run(t, c.args...)
		if code != failed || !strings.Contains(output, c.want) {
			t.Errorf("vmexec %q: code %d, want %d and %q:\n%s", c.args, code, failed, c.want, output)
		}
	}
}
