package services

import (
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// attempt is one scenario against one proxy: a test whose failure is a result to be told, not yet the
// failure of the test that it is a part of. Whatever takes a testing.TB can be used in a scenario.
type attempt struct {
	testing.TB
	mu      sync.Mutex
	failed  []string
	skipped string
}

// try runs a scenario to its end in a goroutine of its own, so that FailNow ends the scenario only.
func try(t testing.TB, run func(testing.TB)) *attempt {
	a := &attempt{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(a)
	}()
	<-done
	return a
}

// verdict is what the table says: passed, skipped, or FAILED.
func (a *attempt) verdict() string {
	switch {
	case a.Failed():
		return failedVerdict
	case a.Skipped():
		return "skipped"
	}
	return "passed"
}

const failedVerdict = "FAILED"

// why says what went wrong, or what is missing.
func (a *attempt) why() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(append(a.failed, a.skipped), "\n")
}

func (a *attempt) note(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.failed = append(a.failed, where()+": "+strings.TrimSpace(text))
}

// where is the line of a scenario that is being run.
func where() string {
	callers := make([]uintptr, 30)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		file := filepath.Base(frame.File)
		if strings.HasPrefix(file, "scenarios_") {
			return fmt.Sprintf("%s:%d", file, frame.Line)
		}
		if !more {
			return "before the first line"
		}
	}
}

// Error notes a failure and goes on.
func (a *attempt) Error(args ...any) { a.note(fmt.Sprintln(args...)) }

// Errorf notes a failure and goes on.
func (a *attempt) Errorf(format string, args ...any) { a.note(fmt.Sprintf(format, args...)) }

// Fail notes a failure without a description.
func (a *attempt) Fail() { a.note("failed") }

// FailNow ends the scenario.
func (a *attempt) FailNow() { a.Fail(); runtime.Goexit() }

// Fatal notes a failure and ends the scenario.
func (a *attempt) Fatal(args ...any) { a.Error(args...); runtime.Goexit() }

// Fatalf notes a failure and ends the scenario.
func (a *attempt) Fatalf(format string, args ...any) { a.Errorf(format, args...); runtime.Goexit() }

// Failed says whether something went wrong so far.
func (a *attempt) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.failed) > 0
}

// Skip ends a scenario that this machine cannot run.
func (a *attempt) Skip(args ...any) {
	a.mu.Lock()
	a.skipped = strings.TrimSpace(fmt.Sprintln(args...))
	a.mu.Unlock()
	runtime.Goexit()
}

// Skipf ends a scenario that this machine cannot run.
func (a *attempt) Skipf(format string, args ...any) { a.Skip(fmt.Sprintf(format, args...)) }

// SkipNow ends a scenario that this machine cannot run.
func (a *attempt) SkipNow() { a.Skip("without a reason") }

// Skipped says whether the scenario could not be run.
func (a *attempt) Skipped() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.skipped != ""
}
