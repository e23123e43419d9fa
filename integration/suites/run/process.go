package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"gridproxy/integration/suites"
)

type process struct {
	root        string
	suite       suites.Suite
	limit       time.Duration // after it, the process and all that it started are killed
	cut         bool          // whether the deadline of the whole run comes before the suite's own limit
	environment []string
	starts      *starts
	fuzzTime    time.Duration
	output      string // path of the files for its output, without .log and .json
}

// exit tells how a process ended.
type exit struct {
	summary  suites.Summary
	err      error // what went wrong besides tests, or the exit code
	timedOut bool
	cpu      time.Duration
	starts   int // of programs
}

// stackTime is the time before its limit at which go test itself ends a suite, so that stacks are
// in the output.
const stackTime = 20 * time.Second

func (p process) run(ctx context.Context) exit {
	log, err := os.Create(p.output + ".log")
	if err != nil {
		return exit{err: fmt.Errorf("making a file for the output: %w", err)}
	}
	defer log.Close()
	_ = os.Remove(p.output + ".json") // of an earlier run
	ctx, cancel := context.WithTimeout(ctx, p.limit)
	defer cancel()
	args := p.arguments()
	cmd := command(ctx, p.folder(), args[0], args[1:]...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.Concat(os.Environ(), p.suite.Env, p.environment)
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return exit{err: fmt.Errorf("starting %s: %w", args[0], err)}
	}
	err = cmd.Wait()
	e := exit{
		err: err, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(),
		timedOut: err != nil && (errors.Is(ctx.Err(), context.DeadlineExceeded) || time.Since(begin) >= p.testTimeout()),
	}
	killGroup(cmd.Process.Pid) // what it may have left running
	e.starts = p.starts.of(cmd.Process.Pid)
	var sumErr error
	e.summary, sumErr = p.summary()
	e.err = errors.Join(e.err, sumErr)
	return e
}

// testTimeout returns the time limit for go test. It does not fail tests that are only cut.
func (p process) testTimeout() time.Duration {
	if p.cut {
		return p.limit + stackTime
	}
	return max(p.limit-stackTime, p.limit/2)
}

// summary reads the events of go test. A command has none.
func (p process) summary() (suites.Summary, error) {
	if len(p.suite.Command) > 0 {
		return suites.Summary{}, nil
	}
	events, err := os.Open(p.output + ".json")
	if err != nil {
		return suites.Summary{}, fmt.Errorf("opening the events of go test: %w", err)
	}
	defer events.Close()
	return suites.Summarize(events)
}

func (p process) arguments() []string {
	s := p.suite
	if len(s.Command) > 0 {
		return s.Command
	}
	format := "pkgname"
	if s.Verbose {
		format = "standard-verbose"
	}
	args := []string{
		"go", "tool", "-modfile=" + filepath.Join(p.root, "go.mod"), "gotestsum",
		"--format", format, "--format-hide-empty-pkg", "--hide-summary", "skipped", "--jsonfile", p.output + ".json",
	}
	chosen := []string{"-test.timeout=" + p.testTimeout().String(), "-test.run=" + s.Run, "-test.skip=" + s.Skip}
	if s.TestBinary() != "" {
		args = append(args, "--raw-command", "--", "go", "tool", "test2json", "-t", "-p", path.Join("gridproxy", s.Module, s.Packages[0]))
		if s.Kernel != "" {
			args = append(args, filepath.Join(p.root, "bin", "programs", "vm"), "-kernel="+s.Kernel, fmt.Sprintf("-own-clock=%t", s.OwnClock))
		}
		args = append(args, testBinary(p.root, s), "-test.v=test2json", "-test.paniconexit0")
		return slices.Concat(args, chosen, s.Args)
	}
	args = append(args, "--", "-count=1", "-vet=off", "-p", fmt.Sprint(max(s.Parallel, 1))) // the suite vet runs go vet once
	args = append(args, s.BuildFlags()...)
	if s.Fuzz != "" {
		chosen = append(chosen, "-run=^$", "-fuzz=^"+s.Fuzz+"$", "-fuzztime="+p.fuzzTime.String(), "-fuzzminimizetime=10x")
	}
	return slices.Concat(args, chosen, s.Packages, s.Args)
}

// folder returns where the process runs: as with go test, tests of one package run in its folder.
func (p process) folder() string {
	folder := filepath.Join(p.root, p.suite.Module)
	if p.suite.TestBinary() != "" {
		folder = filepath.Join(folder, p.suite.Packages[0])
	}
	return folder
}

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
