package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/suites"
)

// progressPeriod is the time between two lines that list what is running.
const progressPeriod = time.Minute

type runner struct {
	config   config
	root     string // of the repository
	logs     string // folder of the outputs
	prepared *preparation
	starts   *starts
	earlier  []suites.Result // of earlier parts and tiers of this run
}

func newRunner(ctx context.Context, config config) (*runner, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("finding the folder that this runs in: %w", err)
	}
	if _, err := os.Stat(filepath.Join(root, "integration", "suites")); err != nil {
		return nil, fmt.Errorf("%s is not the root of the repository: start this with make, or there", root)
	}
	logs := filepath.Join(root, "bin", "suites")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder for the outputs: %w", err)
	}
	if err := os.Setenv("GRIDPROXY_BUILDS", filepath.Join(logs, "builds")); err != nil {
		return nil, fmt.Errorf("naming the list of linked programs: %w", err)
	}
	starts, err := countStarts(ctx)
	if err != nil {
		fmt.Fprintf(os.Stderr, "warning: %v: the programs that suites start are not counted\n", err)
	}
	return &runner{config: config, root: root, logs: logs, prepared: newPreparation(root), starts: starts}, nil
}

// run runs the suites and returns their results in the order in which they ended.
func (r *runner) run(ctx context.Context, chosen []suites.Suite) []suites.Result {
	waiting := slices.Clone(chosen)
	var running []suites.Suite
	since := map[string]time.Time{} // when a suite started, by name
	var results []suites.Result
	done := make(chan suites.Result)
	tick := time.NewTicker(progressPeriod)
	defer tick.Stop()
	add := func(s suites.Suite, result suites.Result) {
		results = append(results, result)
		r.report(s, result, len(results), len(chosen))
	}
	for len(waiting)+len(running) > 0 {
		pace := suites.Pace(slices.Concat(r.earlier, results), suites.All())
		waiting = slices.DeleteFunc(waiting, func(s suites.Suite) bool {
			outcome := r.refuse(ctx, s, pace)
			if outcome != "" {
				add(s, suites.Result{Suite: s.Name, Tier: s.Tier, Outcome: outcome})
			}
			return outcome != ""
		})
		if i := suites.Next(waiting, running, runtime.NumCPU()); i >= 0 {
			s := waiting[i]
			fuzzTime := r.config.budget.FuzzTime(time.Now(), len(suites.Tiers(waiting, suites.Fuzz)), r.config.fuzzTime)
			waiting = slices.Delete(waiting, i, i+1)
			fmt.Printf("== start %s, about %s\n", s.Name, suites.Seconds(s.Usual))
			running, since[s.Name] = append(running, s), time.Now()
			go func() { done <- r.runSuite(ctx, s, s.Name, pace, fuzzTime) }()
			continue
		}
		if len(running) == 0 {
			continue
		}
		select {
		case result := <-done:
			i := slices.IndexFunc(running, func(s suites.Suite) bool { return s.Name == result.Suite })
			add(running[i], result)
			running = slices.Delete(running, i, i+1)
		case <-tick.C:
			printRunning(running, since, len(waiting))
		}
	}
	return results
}

// refuse returns why a suite does not start; "" if it may.
func (r *runner) refuse(ctx context.Context, s suites.Suite, pace float64) suites.Outcome {
	switch {
	case ctx.Err() != nil:
		return suites.Stopped
	case !r.config.budget.Fits(time.Now(), s, pace):
		return suites.NotRun
	}
	return ""
}

// runSuite installs and builds what a suite needs, runs it and judges how it ended. log names the
// files of its output.
func (r *runner) runSuite(ctx context.Context, s suites.Suite, log string, pace float64, fuzzTime time.Duration) suites.Result {
	begin := time.Now()
	required := r.config.requires(s.Name)
	result := suites.Result{Suite: s.Name, Tier: s.Tier}
	preparing, cancel := r.bound(ctx)
	defer cancel()
	environment, err := r.prepared.ensure(preparing, s)
	overdue := preparing.Err() != nil && ctx.Err() == nil
	result.Prepare = time.Since(begin)
	if outcome := outcomeUnprepared(s, err, overdue, required); outcome != "" {
		result.Outcome, result.Notes = outcome, []string{err.Error()}
		return result
	}
	if outcome := r.refuse(ctx, s, pace); outcome != "" {
		result.Outcome = outcome
		return result
	}
	own := s.HardLimit(pace)
	limit := r.config.budget.Limit(time.Now(), own)
	p := process{
		root: r.root, suite: s, limit: limit, cut: limit < own, starts: r.starts,
		environment: environment, fuzzTime: fuzzTime, output: filepath.Join(r.logs, log),
	}
	if required || s.Kernel != "" { // a guest has all that its tests need
		p.environment = append(p.environment, "REQUIRE=all")
	}
	started := time.Now()
	e := p.run(ctx)
	result.Run = time.Since(started)
	if len(s.Command) == 0 { // events have the time of the wall clock, which may be set meanwhile
		running := min(max(0, e.summary.Run), result.Run)
		result.Build, result.Run = result.Run-running, running
	}
	result.CPU, result.Starts, result.Summary = e.cpu, e.starts, e.summary
	result.Outcome, result.Notes = suites.Judge(s, e.summary, e.err, required)
	if e.timedOut {
		result.Outcome = outcomeAtLimit(p, e.summary)
		result.Notes = append(result.Notes, fmt.Sprintf("its limit was %s; %s.log holds its output", p.limit.Round(time.Second), p.output))
	}
	return result
}

// outcomeAtLimit returns the outcome of a suite that reached its limit. If that was the deadline of
// the whole run, only a test that has failed makes it a failure. A fuzz target has no time of its
// own.
func outcomeAtLimit(p process, sum suites.Summary) suites.Outcome {
	switch {
	case !p.cut:
		return suites.TimedOut
	case sum.Failed > 0:
		return suites.Broken
	case p.suite.Tier == suites.Fuzz:
		return suites.NotRun
	}
	return suites.Cut
}

// outcomeUnprepared returns the outcome of a suite whose preparation ended with an error; "" if it
// runs all the same. If only something is not available on this machine, tests that need it skip.
// overdue: the deadline of the whole run has ended the preparation.
func outcomeUnprepared(s suites.Suite, err error, overdue, required bool) suites.Outcome {
	var unavailable unavailableError
	switch {
	case err == nil:
		return ""
	case overdue:
		return suites.Cut
	case required || !errors.As(err, &unavailable):
		return suites.Broken
	case s.Kernel != "" || s.Race || len(s.Command) > 0:
		return suites.Skipped
	}
	return ""
}

// bound returns a context that ends shortly before the deadline of the whole run.
func (r *runner) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	left := r.config.budget.Limit(time.Now(), math.MaxInt64)
	return context.WithTimeoutCause(ctx, left, errors.New("the whole run has reached CI_DEADLINE"))
}

// report prints how a suite ended, with its output if it failed or prints figures.
func (r *runner) report(s suites.Suite, result suites.Result, number, total int) {
	ran := result.Outcome != suites.NotRun && result.Outcome != suites.Stopped
	if ran && (result.Outcome.Failed(s.Tier) || s.Verbose) {
		printEnd(filepath.Join(r.logs, s.Name) + ".log")
	}
	fmt.Printf("== %d/%d %s: %s, %s, %d tests, %d skipped\n", number, total, s.Name, result.Outcome,
		suites.Seconds(result.Took()), result.Summary.Passed+result.Summary.Failed, result.Summary.Skipped)
	for _, note := range result.Notes {
		fmt.Printf("   %s\n", note)
	}
}

// maxPrinted bounds what is printed of the output of a suite, in bytes.
const maxPrinted = 1 << 20

// printEnd prints a file, or its end if it is long.
func printEnd(path string) {
	file, err := os.Open(path)
	if err != nil {
		return // the suite has failed before it had any output
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > maxPrinted {
		fmt.Printf("[… %s has the first %d bytes]\n", path, info.Size()-maxPrinted)
		_, _ = file.Seek(-maxPrinted, io.SeekEnd)
	}
	_, _ = io.Copy(os.Stdout, file)
}

// printRunning prints the suites that run, and for how long.
func printRunning(running []suites.Suite, since map[string]time.Time, waiting int) {
	var names []string
	for _, s := range running {
		names = append(names, fmt.Sprintf("%s (%s of about %s)", s.Name, suites.Seconds(time.Since(since[s.Name])), suites.Seconds(s.Usual)))
	}
	fmt.Printf("== running: %s; %d waiting\n", strings.Join(names, ", "), waiting)
}

// runTiers runs the suites, one tier after the other. At the end of each tier, failed tests run
// once more.
func (r *runner) runTiers(ctx context.Context, chosen []suites.Suite) []suites.Result {
	var all []suites.Result
	for _, tier := range []suites.Tier{suites.Core, suites.Extended, suites.Fuzz} {
		results := r.tryAgain(ctx, chosen, r.run(ctx, suites.Tiers(chosen, tier)))
		all, r.earlier = append(all, results...), slices.Concat(r.earlier, results)
	}
	return all
}

// tryAgain runs the failed tests of a tier once more, one after the other, and judges their suites
// by that. The output of a second try is kept beside that of the suite.
func (r *runner) tryAgain(ctx context.Context, chosen []suites.Suite, results []suites.Result) []suites.Result {
	results, tests := suites.ToTryAgain(results)
	for i, result := range results {
		at := slices.IndexFunc(chosen, func(s suites.Suite) bool { return s.Name == result.Suite })
		for number, f := range tests[result.Suite] {
			log := result.Suite + ".again"
			if number > 0 {
				log += fmt.Sprint(number + 1)
			}
			fmt.Printf("== start %s of %s once more\n", f.Name, result.Suite)
			again := r.runSuite(ctx, chosen[at].Again(f), log, 1, 0)
			fmt.Printf("== %s of %s: %s, %s\n", f.Name, result.Suite, again.Outcome, suites.Seconds(again.Took()))
			logs := filepath.Join(r.logs, result.Suite+".log") + ", " + filepath.Join(r.logs, log+".log")
			results[i] = results[i].AfterSecondTry(f, again, strings.ReplaceAll(logs, r.root+string(os.PathSeparator), ""))
		}
	}
	return results
}
