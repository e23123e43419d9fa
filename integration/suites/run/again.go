package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gridproxy/integration/suites"
)

// startTime is how long a second try may take beside its test: its package is linked, and a virtual
// machine starts.
const startTime = 3 * time.Minute

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
// by that.
func (r *runner) tryAgain(ctx context.Context, chosen []suites.Suite, results []suites.Result) []suites.Result {
	results, tests := suites.ToTryAgain(results)
	for i, result := range results {
		at := slices.IndexFunc(chosen, func(s suites.Suite) bool { return s.Name == result.Suite })
		var tries []suites.SecondTry
		for _, f := range tests[result.Suite] {
			begin := now()
			fmt.Printf("== start %s of %s once more\n", f.Name, result.Suite)
			try, e := r.secondTry(ctx, chosen[at], f, len(tries))
			fmt.Printf("== %s of %s: %s, %s\n", f.Name, result.Suite, cmp.Or(try.Failure, "passed"), suites.Seconds(now().Sub(begin)))
			tries = append(tries, try)
			results[i].CPU += e.cpu
		}
		results[i] = results[i].AfterSecondTries(tries)
	}
	return results
}

// secondTry runs a failed test of a suite once more, alone. Its output is kept beside that of the
// suite; number tells the second tries of one suite apart.
func (r *runner) secondTry(ctx context.Context, s suites.Suite, f suites.FailedTest, number int) (suites.SecondTry, exit) {
	first := filepath.Join(r.logs, s.Name)
	p := process{root: r.root, suite: s.Again(f), starts: r.starts, testLimit: f.Limit(), output: first + ".again"}
	if number > 0 {
		p.output += fmt.Sprint(number + 1)
	}
	logs := strings.ReplaceAll(first+".log, "+p.output+".log", r.root+string(os.PathSeparator), "")
	ended := func(failure string, e exit) (suites.SecondTry, exit) {
		return suites.SecondTry{Test: f, Failure: failure, Logs: logs}, e
	}
	preparing, cancel := r.bound(ctx)
	defer cancel()
	environment, err := r.prepared.ensure(preparing, s)
	if err != nil {
		return ended("not proven, because something is missing: "+err.Error(), exit{})
	}
	wanted := p.testLimit + startTime
	p.limit = r.config.budget.Limit(now(), wanted)
	p.cut = p.limit < wanted
	required := r.config.requires(s.Name)
	if p.environment = environment; required || s.Kernel != "" {
		p.environment = append(p.environment, "REQUIRE=all")
	}
	begin := now()
	e := p.run(ctx)
	outcome, notes := suites.Judge(p.suite, e.summary, e.err, required)
	switch {
	case ctx.Err() != nil:
		return ended("not proven, because the run was interrupted", e)
	case e.timedOut && p.cut && now().Sub(begin) >= p.limit:
		return ended("not proven, because CI_DEADLINE came", e)
	case e.timedOut:
		return ended(fmt.Sprintf("it did not end within %s", p.testLimit.Round(time.Second)), e)
	case outcome != suites.Passed:
		return ended(strings.Join(slices.Concat(e.summary.Failures, notes), "; "), e)
	}
	return ended("", e)
}
