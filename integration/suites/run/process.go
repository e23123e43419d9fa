package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/suites"
)

// process is one run of a suite.
type process struct {
	root        string
	suite       suites.Suite
	limit       time.Duration // after it, the process and all that it started are killed
	environment []string
	fuzzTime    time.Duration
	output      string // path of the files for its output, without .log and .json
}

// ending is how a process ended.
type ending struct {
	summary suites.Summary
	err     error // what went wrong besides tests, or the exit code
	killed  bool  // it reached its limit
	cpu     time.Duration
}

// quitGrace is how long a program may take to print its stacks after SIGQUIT.
const quitGrace = 10 * time.Second

func (p process) run(ctx context.Context) ending {
	args, err := p.arguments(ctx)
	if err != nil {
		return ending{err: err}
	}
	log, err := os.Create(p.output + ".log")
	if err != nil {
		return ending{err: fmt.Errorf("making a file for the output: %w", err)}
	}
	defer log.Close()
	_ = os.Remove(p.output + ".json") // of an earlier run
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(p.root, p.suite.Module), log, log
	cmd.Env = slices.Concat(os.Environ(), p.suite.Env, p.environment)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return ending{err: fmt.Errorf("starting %s: %w", args[0], err)}
	}
	killed, err := p.wait(ctx, cmd)
	end := ending{err: err, killed: killed, cpu: cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
	var sumErr error
	end.summary, sumErr = p.summary()
	end.err = errors.Join(end.err, sumErr)
	return end
}

// wait waits for the process. At its limit, and when the run is interrupted, the whole group of
// processes is asked for its stacks and killed.
func (p process) wait(ctx context.Context, cmd *exec.Cmd) (killed bool, err error) {
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	limit := time.NewTimer(p.limit)
	defer limit.Stop()
	select {
	case err := <-done:
		return false, err
	case <-limit.C:
		killed = true
	case <-ctx.Done():
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGQUIT) // fails only if all of them have ended
	select {
	case err = <-done:
	case <-time.After(quitGrace):
	}
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	if err == nil {
		err = <-done
	}
	return killed, err
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

// arguments are the program to start and its arguments.
func (p process) arguments(ctx context.Context) ([]string, error) {
	s := p.suite
	if len(s.Command) > 0 {
		return s.Command, nil
	}
	packages, err := p.packages(ctx)
	if err != nil {
		return nil, err
	}
	format := "pkgname"
	if s.Verbose {
		format = "standard-verbose"
	}
	args := []string{
		"go", "tool", "-modfile=" + filepath.Join(p.root, "go.mod"), "gotestsum",
		"--format", format, "--format-hide-empty-pkg", "--hide-summary", "skipped", "--jsonfile", p.output + ".json",
		"--", "-count=1", "-vet=off", // the suite vet does that once
		"-p", fmt.Sprint(max(s.Parallel, 1)), "-timeout", max(p.limit-2*quitGrace, quitGrace).String(),
	}
	if s.Fuzz != "" {
		args = append(args, "-run", "^$", "-fuzz", "^"+s.Fuzz+"$", "-fuzztime", p.fuzzTime.String(), "-fuzzminimizetime", "10x")
	}
	if s.Run != "" {
		args = append(args, "-run", s.Run)
	}
	if s.Skip != "" {
		args = append(args, "-skip", s.Skip)
	}
	if s.Kernel != "" {
		args = append(args, "-exec", fmt.Sprintf("'%s' -kernel %s", filepath.Join(p.root, "bin", "vm", "vmexec"), s.Kernel))
	}
	return slices.Concat(args, packages, s.Args), nil
}

// packages are the suite's packages without those of other suites.
func (p process) packages(ctx context.Context) ([]string, error) {
	if len(p.suite.Except) == 0 {
		return p.suite.Packages, nil
	}
	matched, err := p.list(ctx, p.suite.Packages)
	if err != nil {
		return nil, err
	}
	except, err := p.list(ctx, p.suite.Except)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(matched, func(m string) bool { return slices.Contains(except, m) }), nil
}

// list are the packages that patterns match.
func (p process) list(ctx context.Context, patterns []string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"list"}, patterns...)...)
	cmd.Dir, cmd.Stderr = filepath.Join(p.root, p.suite.Module), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages %v: %w", patterns, err)
	}
	return strings.Fields(string(out)), nil
}
