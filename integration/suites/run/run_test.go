package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"gridproxy/integration/env/wait"
	"gridproxy/integration/suites"
)

// runnerOf returns a runner in a folder of its own, with a suite that is a shell script.
func runnerOf(t *testing.T, script string, limit time.Duration, budget suites.Budget) (*runner, suites.Suite) {
	t.Helper()
	root := t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "bin", "suites"), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &runner{config: config{budget: budget}, root: root, logs: filepath.Join(root, "bin", "suites"), prepared: newPreparation(root), starts: &starts{}}
	return r, suites.Suite{Name: "script", Tier: suites.Extended, Command: []string{"sh", "-c", script}, Env: []string{"SAID=said"}, Usual: time.Second, Limit: limit}
}

// TestOutcomes: how a command ends is how its suite ends, and its output is kept.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	none := func() (b suites.Budget) { return b }
	late := func() suites.Budget { return suites.Budget{Start: time.Now().Add(-time.Hour), Soft: time.Hour} }
	over := func() suites.Budget {
		return suites.Budget{Start: time.Now().Add(-time.Hour), Deadline: time.Hour + 28*time.Second}
	}
	for _, c := range []struct {
		script string
		limit  time.Duration
		budget func() suites.Budget
		want   suites.Outcome
	}{
		{"echo $SAID", time.Minute, none, suites.Passed},
		{"echo said; exit 3", time.Minute, none, suites.Broken},
		{"echo said; sleep 600", time.Second, none, suites.TimedOut},
		{`trap "exit 0" TERM; echo said; sleep 600 & wait`, time.Second, none, suites.TimedOut},
		{"echo said; sleep 600", time.Hour, over, suites.Cut},
		{"echo said", time.Minute, late, suites.NotRun},
	} {
		r, s := runnerOf(t, c.script, c.limit, c.budget())
		results := r.run(t.Context(), []suites.Suite{s})
		if len(results) != 1 || results[0].Outcome != c.want {
			t.Errorf("%s: %+v, want %s", c.script, results, c.want)
			continue
		}
		text, err := os.ReadFile(filepath.Join(r.logs, "script.log"))
		if c.want != suites.NotRun && (err != nil || string(text) != "said\n") {
			t.Errorf("%s: the output is %q, %v", c.script, text, err)
		}
	}
}

// TestPreparationCut: a tool that is still being built at the deadline of the whole run is no
// failure of the suite that needs it; one that cannot be built is.
func TestPreparationCut(t *testing.T) {
	t.Parallel()
	const builder = "package main\n\nimport (\n\t\"os\"\n\t\"time\"\n)\n\nfunc main() { time.Sleep(%s); os.Exit(1) }\n"
	for _, c := range []struct {
		takes  string
		budget suites.Budget
		want   suites.Outcome
	}{
		{"time.Hour", suites.Budget{Start: time.Now(), Deadline: 24 * time.Second}, suites.Cut},
		{"0", suites.Budget{}, suites.Broken},
	} {
		r, s := runnerOf(t, "echo said", time.Minute, c.budget)
		s.Needs = []suites.Need{suites.Helm}
		if err := os.CopyFS(r.root, fstest.MapFS{
			"go.mod":                         {Data: []byte("module gridproxy\n")},
			"integration/suites/run/main.go": {Data: fmt.Appendf(nil, builder, c.takes)},
		}); err != nil {
			t.Fatal(err)
		}
		results := r.run(t.Context(), []suites.Suite{s})
		if len(results) != 1 || results[0].Outcome != c.want {
			t.Errorf("a builder that takes %s: %+v, want %s", c.takes, results, c.want)
		}
	}
}

// TestUnavailable: without a C compiler the race detector cannot be built, so the suite is skipped,
// but not where REQUIRE names it.
func TestUnavailable(t *testing.T) {
	err := fmt.Errorf("race needs gcc: %w", unavailableError{errors.New("there is no package archive")})
	for required, want := range map[bool]suites.Outcome{false: suites.Skipped, true: suites.Broken} {
		if got := outcomeUnprepared(suites.Suite{Race: true}, err, false, required); got != want {
			t.Errorf("required %t: %q, want %q", required, got, want)
		}
	}
}

// TestKillsAll: at the limit, what the command has started ends too, even if it ignores SIGTERM.
func TestKillsAll(t *testing.T) {
	t.Parallel()
	r, s := runnerOf(t, `trap "" TERM; sleep 600 & echo $! > child; wait; sleep 600`, time.Second, suites.Budget{})
	r.run(t.Context(), []suites.Suite{s})
	text, err := os.ReadFile(filepath.Join(r.root, "child"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	wait.Until(t, "what the suite started has ended", func() error { return wait.Check(!alive(pid), "process %d runs", pid) })
}

// alive reports whether a process runs. A zombie does not.
func alive(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	return err == nil && syscall.Kill(pid, 0) == nil && !strings.Contains(string(stat), ") Z ")
}

// TestInterrupted: Ctrl-C ends what runs and starts nothing more.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	r, s := runnerOf(t, "echo started; sleep 600", time.Hour, suites.Budget{})
	alone := s
	alone.Name, alone.Alone = "alone", true
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		defer cancel()
		_ = wait.Usual.For(t.Context(), func(context.Context) error { // without its log the outcome is wrong
			text, err := os.ReadFile(filepath.Join(r.logs, "script.log"))
			if err == nil && len(text) == 0 {
				err = errors.New("the script has not started")
			}
			return err
		})
	}()
	results := r.run(ctx, []suites.Suite{s, alone})
	if len(results) != 2 || results[0].Outcome != suites.Broken || results[1].Outcome != suites.Stopped {
		t.Errorf("%+v", results)
	}
}

// TestResultsOfParts: the second part of a run sees what the first one left; a damaged file is an
// error.
func TestResultsOfParts(t *testing.T) {
	dir := t.TempDir()
	if got, err := readResults(dir); err != nil || got != nil {
		t.Errorf("of a new folder: %v, %v", got, err)
	}
	if err := writeResults(dir, []suites.Result{{Suite: "a", Outcome: suites.Passed}}); err != nil {
		t.Fatal(err)
	}
	if got, err := readResults(dir); err != nil || len(got) != 1 || got[0].Suite != "a" {
		t.Errorf("%v, %v", got, err)
	}
	unsteady := suites.Result{Suite: "b", Outcome: suites.Unsteady, Unsteady: []string{"TestA", "TestB", "TestC"}}
	if err := writeResults(dir, []suites.Result{unsteady}); err != nil {
		t.Fatal(err)
	}
	if got, err := readResults(dir); err != nil || suites.Succeeded(got) {
		t.Errorf("three unsteady tests of the first part do not refuse the run: %v, %v", got, err)
	}
	if err := os.WriteFile(resultsFile(dir), []byte("[{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readResults(dir); err == nil {
		t.Error("a damaged file is taken for results")
	}
}

func TestEnvironment(t *testing.T) {
	read := func(text string) (config, error) {
		values := map[string]string{}
		for word := range strings.FieldsSeq(text) {
			name, value, _ := strings.Cut(word, "=")
			values[name] = value
		}
		return readEnvironment(func(name string) string { return values[name] })
	}
	c, err := read("REQUIRE=streams,right* CI_START=100 CI_BUDGET=37m CI_BASE=0a1f2a35 FUZZTIME=5s BURDEN=2")
	if err != nil || !c.requires("rights") || c.requires("unit") || c.budget.Start.Unix() != 100 ||
		c.budget.Soft != 37*time.Minute || c.base != "0a1f2a35" || c.budget.Deadline != 0 || c.fuzzTime != 5*time.Second || c.burden != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	if c, err := read("REQUIRE=all"); err != nil || !c.requires("unit") || c.fuzzTime != 30*time.Second {
		t.Errorf("%+v, %v", c, err)
	}
	for _, wrong := range []string{"REQUIRE=stream", "CI_START=today", "CI_BUDGET=75", "CI_DEADLINE=-1m", "FUZZTIME=long", "BURDEN=many", "BURDEN=-1", "BURDEN=1000"} {
		if _, err := read(wrong); err == nil {
			t.Errorf("%s is accepted", wrong)
		}
	}
}
