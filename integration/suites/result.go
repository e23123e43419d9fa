package suites

import (
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// Outcome is how a suite ended.
type Outcome string

// The outcomes.
const (
	Passed   Outcome = "passed"
	Unsteady Outcome = "unsteady" // each test that failed passed when it ran once more, alone
	Broken   Outcome = "FAILED"
	TimedOut Outcome = "FAILED: timed out"
	Cut      Outcome = "cut: no time left" // the deadline of the whole run came before its own limit
	Skipped  Outcome = "skipped"           // this machine lacks something that could not be installed
	NotRun   Outcome = "not run: no time left"
	Stopped  Outcome = "not run: interrupted"
)

// Failed reports whether the outcome makes the run a failure. A suite of the core tier must run.
func (o Outcome) Failed(tier Tier) bool {
	switch o {
	case Passed, Unsteady, Skipped:
		return false
	case NotRun, Cut:
		return tier == Core
	}
	return true
}

// Result tells how a suite ended in one run.
type Result struct {
	Suite   string
	Tier    Tier
	Outcome Outcome
	Prepare time.Duration // until what it needs was installed and built
	Build   time.Duration // compiling and linking its tests
	Run     time.Duration
	CPU     time.Duration // of all processes that it started and waited for
	Starts  int           // programs that it started on this machine
	Summary Summary
	Notes   []string // why it failed, besides tests

	Unsteady []string // tests that failed, and passed when they ran once more
}

// Took returns how long the suite took, with what was prepared and built for it.
func (r Result) Took() time.Duration { return r.Prepare + r.Build + r.Run }

// CPU returns the processor time of all suites.
func CPU(results []Result) (sum time.Duration) {
	for _, r := range results {
		sum += r.CPU
	}
	return sum
}

// Judge returns the outcome of a suite whose process was not killed, and why it failed if no test
// did. If required is true, a skip that the table does not expect is a failure.
func Judge(s Suite, sum Summary, exit error, required bool) (Outcome, []string) {
	var notes []string
	if exit != nil && sum.Failed == 0 {
		notes = append(notes, exit.Error())
	}
	nothing := len(s.Command) == 0 && sum.Passed+sum.Failed == 0
	if nothing && sum.Skipped > 0 && exit == nil && !required {
		return Skipped, []string{"all tests were skipped, the first because: " + sum.Skips[0].Text}
	}
	if nothing {
		notes = append(notes, "no test ran: do Run and Skip of its row match any?")
	}
	if sum.Proof != "" {
		notes = append(notes, "not tried again: "+sum.Proof)
	}
	for _, pkg := range sum.Unended {
		notes = append(notes, "the tests of "+pkg+" were ended from outside")
	}
	if required {
		for _, k := range sum.Skips {
			if !s.Expects(k.Text) {
				notes = append(notes, fmt.Sprintf("%s was skipped, which the table does not expect: %s", k.Test, k.Text))
			}
		}
	}
	if exit != nil || sum.Failed > 0 || len(notes) > 0 {
		return Broken, notes
	}
	return Passed, nil
}

// Succeeded reports whether a run with these results is a success: nothing failed, few tests are
// unsteady, and all of the core tier ran.
func Succeeded(results []Result) bool {
	_, tests := tooUnsteady(results)
	return tests == 0 && !slices.ContainsFunc(results, func(r Result) bool { return r.Outcome.Failed(r.Tier) })
}

// Table returns the table of the results of a run that took so long, for people. Its last line is
// one that CI systems read.
func Table(results []Result, machine Machine, took time.Duration) string {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, strings.Join([]string{"SUITE", "TIER", "RESULT", "PREPARE", "BUILD", "RUN", "CPU", "STARTS", "TESTS", "SKIPPED"}, "\t"))
	var passed, failed, skipped int
	for _, r := range results {
		sum := r.Summary
		passed, failed, skipped = passed+sum.Passed, failed+sum.Failed, skipped+sum.Skipped
		switch tests := sum.Passed + sum.Failed + sum.Skipped; {
		case r.Outcome == Passed && tests == 0:
			passed++ // a command counts as one test
		case r.Outcome == Skipped:
			skipped++
		case r.Outcome.Failed(r.Tier) && sum.Failed == 0:
			failed++
		}
		if r.Outcome == NotRun || r.Outcome == Stopped {
			fmt.Fprintf(table, "%s\t%s\t%s\t\t\t\t\t\t\t\n", r.Suite, r.Tier, r.Outcome)
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\n", r.Suite, r.Tier, r.Outcome,
			Seconds(r.Prepare), Seconds(r.Build), Seconds(r.Run), Seconds(r.CPU), r.Starts, sum.Passed+sum.Failed, sum.Skipped)
	}
	_ = table.Flush() // into memory
	text.WriteString(machine.String())
	for _, r := range results {
		for _, f := range slices.Concat(r.Summary.Failures, r.Notes) {
			fmt.Fprintf(&text, "%s: %s\n", r.Suite, f)
		}
	}
	for i, test := range slowest(results) {
		if i == 0 {
			text.WriteString("The slowest tests:\n")
		}
		fmt.Fprintf(&text, "  %5s  %s\n", Seconds(test.Time), test.Test)
	}
	for _, r := range results {
		for _, line := range r.Unsteady {
			fmt.Fprintf(&text, "unsteady: %s: %s\n", r.Suite, line)
		}
	}
	if why, tests := tooUnsteady(results); tests > 0 {
		text.WriteString(why + "\n")
		passed, failed = passed-tests, failed+tests
	}
	fmt.Fprintf(&text, "All suites together: %s\n%d passed, %d failed, %d skipped\n", Seconds(took), passed, failed, skipped)
	return text.String()
}

// slowest returns the tests that took longest, with their suites.
func slowest(results []Result) []TimedTest {
	var all []TimedTest
	for _, r := range results {
		for _, test := range r.Summary.Slowest {
			all = append(all, TimedTest{Test: r.Suite + ": " + test.Test, Time: test.Time})
		}
	}
	slices.SortStableFunc(all, func(a, b TimedTest) int { return int(b.Time - a.Time) })
	return all[:min(len(all), maxSlowest)]
}

// Seconds formats a duration in minutes and seconds, such as 7:05.
func Seconds(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
