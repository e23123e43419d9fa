package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/suites"
)

// progressPeriod is how often a line says what is running.
const progressPeriod = time.Minute

// runner runs suites.
type runner struct {
	config   config
	root     string // of the repository
	logs     string // folder of the outputs
	prepared *preparation
}

func newRunner(config config) (*runner, error) {
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
	return &runner{config: config, root: root, logs: logs, prepared: newPreparation(root)}, nil
}

// active is a suite that runs, and since when.
type active struct {
	suite suites.Suite
	since time.Time
}

// ended is a suite that has ended.
type ended struct {
	suite  suites.Suite
	result suites.Result
}

// run runs the suites and returns their results in the order in which they ended.
func (r *runner) run(ctx context.Context, waiting []suites.Suite) []suites.Result {
	waiting = slices.Clone(waiting)
	total := len(waiting)
	var running []active
	var results []suites.Result
	ending := make(chan ended)
	tick := time.NewTicker(progressPeriod)
	defer tick.Stop()
	add := func(e ended) {
		results = append(results, e.result)
		r.report(e, len(results), total)
	}
	for len(waiting)+len(running) > 0 {
		for i := r.next(ctx, waiting, running); i >= 0; i = r.next(ctx, waiting, running) {
			s := waiting[i]
			waiting = slices.Delete(waiting, i, i+1)
			if outcome := r.refuse(ctx, s); outcome != "" {
				add(ended{s, suites.Result{Suite: s.Name, Tier: s.Tier, Outcome: outcome}})
				continue
			}
			targets := len(suites.Tiers(waiting, suites.Fuzz)) + 1
			running = append(running, active{s, now()})
			go func() { ending <- ended{s, r.runSuite(ctx, s, targets)} }()
		}
		if len(running) == 0 {
			continue
		}
		select {
		case e := <-ending:
			running = slices.DeleteFunc(running, func(a active) bool { return a.suite.Name == e.suite.Name })
			add(e)
		case <-tick.C:
			tell(running, len(waiting))
		}
	}
	return results
}

// next is the index of the suite to start; once the run is interrupted, all that wait end at once.
func (r *runner) next(ctx context.Context, waiting []suites.Suite, running []active) int {
	if ctx.Err() != nil {
		return min(len(waiting), 1) - 1
	}
	var beside []suites.Suite
	for _, a := range running {
		beside = append(beside, a.suite)
	}
	return suites.Next(waiting, beside, runtime.NumCPU())
}

// refuse says why a suite is not started; "" = it is. Only the core tier runs whatever time is
// left.
func (r *runner) refuse(ctx context.Context, s suites.Suite) suites.Outcome {
	if ctx.Err() != nil {
		return suites.Stopped
	}
	fits := r.config.budget.Fits(now(), s.Usual)
	if s.Tier == suites.Fuzz {
		fits = r.config.budget.FuzzTime(now(), 1, r.config.fuzzTime) >= minFuzzTime
	}
	if s.Tier != suites.Core && !fits {
		return suites.NotRun
	}
	return ""
}

// minFuzzTime is the shortest search for inputs that is worth compiling the target.
const minFuzzTime = 10 * time.Second

// runSuite installs and builds what a suite needs, runs it and judges how it ended. targets is how
// many fuzz targets share the time that is left.
func (r *runner) runSuite(ctx context.Context, s suites.Suite, targets int) suites.Result {
	begin := now()
	required := r.config.requires(s.Name)
	result := suites.Result{Suite: s.Name, Tier: s.Tier}
	preparing, cancel := r.bound(ctx)
	defer cancel()
	environment, err := r.prepared.ensure(preparing, s)
	if err != nil {
		result.Outcome, result.Notes, result.Took = suites.Skipped, []string{err.Error()}, now().Sub(begin)
		if required || ctx.Err() != nil {
			result.Outcome = suites.Failed
		}
		return result
	}
	limit := r.config.budget.Limit(now(), s.HardLimit())
	p := process{
		root: r.root, suite: s, limit: limit, environment: environment,
		fuzzTime: r.config.budget.FuzzTime(now(), targets, r.config.fuzzTime),
		output:   filepath.Join(r.logs, s.Name),
	}
	if required || s.Kernel != "" { // a guest has all that its tests need
		p.environment = append(p.environment, "REQUIRE=all")
	}
	ending := p.run(ctx)
	result.Took, result.CPU, result.Summary = now().Sub(begin), ending.cpu, ending.summary
	result.Outcome, result.Notes = suites.Judge(s, ending.summary, ending.err, required)
	if ending.killed {
		result.Outcome = suites.TimedOut
		if limit < s.HardLimit() {
			result.Outcome = suites.Aborted
		}
		result.Notes = append(result.Notes, fmt.Sprintf("it was killed after %s; %s.log holds its output", limit.Round(time.Second), p.output))
	}
	return result
}

// bound ends what is done in preparation at the deadline of the whole run.
func (r *runner) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if b := r.config.budget; b.Deadline > 0 {
		return context.WithDeadlineCause(ctx, b.Start.Add(b.Deadline), errors.New("the whole run has reached CI_DEADLINE"))
	}
	return context.WithCancel(ctx)
}

// report prints how a suite ended, with its output if it failed or prints figures.
func (r *runner) report(e ended, number, total int) {
	failed := e.result.Outcome == suites.Failed || e.result.Outcome == suites.TimedOut || e.result.Outcome == suites.Aborted
	if failed || e.suite.Verbose && e.result.Outcome == suites.Passed {
		if text, err := os.ReadFile(filepath.Join(r.logs, e.suite.Name) + ".log"); err == nil {
			fmt.Printf("%s", text)
		}
	}
	fmt.Printf("== %d/%d %s: %s, %s, %d tests, %d skipped\n", number, total, e.suite.Name, e.result.Outcome,
		suites.Seconds(e.result.Took), e.result.Summary.Passed+e.result.Summary.Failed, e.result.Summary.Skipped)
	for _, note := range e.result.Notes {
		fmt.Printf("   %s\n", note)
	}
}

// tell prints what is running.
func tell(running []active, waiting int) {
	var names []string
	for _, a := range running {
		names = append(names, fmt.Sprintf("%s (%s of about %s)", a.suite.Name, suites.Seconds(now().Sub(a.since)), suites.Seconds(a.suite.Usual)))
	}
	fmt.Printf("== running: %s; %d waiting\n", strings.Join(names, ", "), waiting)
}
