package suites

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Bounds of second tries.
const (
	minSecondTry    = time.Minute     // the least that a second try may take
	startTime       = 3 * time.Minute // for linking its package and starting a virtual machine
	maxSecondTries  = 5               // of a tier; more tests fail only if something is broken
	maxUnsteadyCore = 1               // tests in the core tier; one more refuses the run
	maxUnsteady     = 2               // tests in a run
	maxSeeds        = 10              // of a test
)

// FailedTest is a test of the top level that failed, or whose subtests failed.
type FailedTest struct {
	Package, Name string
	Time          time.Duration
	Seeds         []string // variables that its output names, as NAME=value
}

// Limit returns how long the second try of the test may take.
func (f FailedTest) Limit() time.Duration { return max(2*f.Time, minSecondTry) }

// proofPattern matches a line that shows a fault without a second try: a broken promise (package
// promise), a data race, a panic, or a property that does not hold. The race detector prints its
// report as the output of any test, and package testing adds a line to the tests that ran. Package
// testing also puts the position in the file before the message of a test.
var proofPattern = regexp.MustCompile(`^\s*(?:\S+\.go:\d+: )?((?:` +
	`PROMISE |WARNING: DATA RACE|race detected during execution of test|panic: |fatal error: |\[rapid\] (?:failed|panic)).*)`)

// proofIn returns the proof of a fault in a line of output; "" if it has none.
func proofIn(line string) string {
	if match := proofPattern.FindStringSubmatch(line); match != nil {
		return match[1][:min(len(match[1]), maxText)]
	}
	return ""
}

// seedPattern matches the variable that repeats a random test.
var seedPattern = regexp.MustCompile(`GRIDPROXY_[A-Z_]*SEED=[0-9]+`)

// withSeeds adds variables of seeds. A variable that is already there keeps its value.
func withSeeds(seeds, more []string) []string {
	for _, seed := range more {
		name, _, _ := strings.Cut(seed, "=")
		known := slices.ContainsFunc(seeds, func(s string) bool { return strings.HasPrefix(s, name+"=") })
		if !known && len(seeds) < maxSeeds {
			seeds = append(seeds, seed)
		}
	}
	return seeds
}

// addFailure adds a failed test, or a failed subtest of one.
func (sum *Summary) addFailure(e event, output testOutput) {
	name, _, isSubtest := strings.Cut(e.Test, "/")
	i := slices.IndexFunc(sum.FailedTests, func(f FailedTest) bool { return f.Package == e.Package && f.Name == name })
	if i < 0 {
		i, sum.FailedTests = len(sum.FailedTests), append(sum.FailedTests, FailedTest{Package: e.Package, Name: name})
	}
	f := &sum.FailedTests[i]
	f.Seeds = withSeeds(f.Seeds, output.seeds)
	if !isSubtest {
		f.Time = elapsed(e)
	}
	if output.proof != "" {
		sum.Proof = cmp.Or(sum.Proof, name+": "+output.proof)
	}
}

// addFailedPackage adds a failed package. If more than its tests failed, that is a proof: it did
// not compile, or a panic or a time limit ended its tests.
func (sum *Summary) addFailedPackage(pkg string, outputs map[string]testOutput) {
	reason, ended := outputs[pkg+" "].proof, true
	for name, o := range outputs {
		if o.running && strings.HasPrefix(name, pkg+" ") {
			reason, ended = cmp.Or(reason, o.proof), false
		}
	}
	failedTest := slices.ContainsFunc(sum.FailedTests, func(f FailedTest) bool { return f.Package == pkg })
	if !failedTest {
		sum.Failed++
		sum.Failures = append(sum.Failures, pkg)
	}
	switch {
	case reason == "" && !ended:
		reason = "its tests did not end"
	case reason == "" && !failedTest:
		reason = "it failed outside of its tests"
	}
	if reason != "" {
		sum.Proof = cmp.Or(sum.Proof, pkg+": "+reason)
	}
}

// Again returns the run of one failed test of the suite, alone. It runs the whole test of the top
// level, because subtests may depend on those before them, but only the subtests that the suite
// has. It is not of the extended tier, whose suites only start while CI has time for them.
func (s Suite) Again(f FailedTest) Suite {
	s.Tier, s.Limit = Core, f.Limit()+startTime
	s.Args = slices.Concat(s.Args, []string{"-test.timeout=" + f.Limit().String()})
	if len(s.Packages) > 1 || strings.HasSuffix(s.Packages[0], "...") {
		s.Packages = []string{f.Package}
	}
	_, below, found := strings.Cut(s.Run, "/")
	s.Run, s.Fuzz = "^"+regexp.QuoteMeta(f.Name)+"$", ""
	if found {
		s.Run += "/" + below
	}
	s.Env = slices.Concat(s.Env, f.Seeds)
	return s
}

// ToTryAgain returns the results of a tier, and how many tests of each one run once more. Only a
// suite whose tests failed and which has no other reason to be refused gets second tries. If too
// many tests failed, none does.
func ToTryAgain(results []Result) ([]Result, map[string][]FailedTest) {
	results = slices.Clone(results)
	tests, count := map[string][]FailedTest{}, 0
	for _, r := range results {
		if r.Outcome == Broken && len(r.Notes) == 0 {
			tests[r.Suite] = r.Summary.FailedTests
			count += len(r.Summary.FailedTests)
		}
	}
	if count <= maxSecondTries {
		return results, tests
	}
	for i, r := range results {
		if len(tests[r.Suite]) > 0 {
			results[i].Notes = []string{fmt.Sprintf("not tried again: %d tests failed, and at most %d run once more", count, maxSecondTries)}
		}
	}
	return results, nil
}

// AfterSecondTry returns the result with that of a second try of one of its failed tests. If all of
// them have passed alone, the suite is unsteady.
func (r Result) AfterSecondTry(f FailedTest, again Result, logs string) Result {
	r.CPU += again.CPU
	if again.Outcome != Passed {
		why := slices.Concat(again.Summary.Failures, again.Notes)
		if again.Outcome != Broken {
			why = slices.Insert(why, 0, "not proven: "+string(again.Outcome))
		}
		r.Notes = append(r.Notes, fmt.Sprintf("%s failed, and then alone: %s: %s", f.Name, strings.Join(why, "; "), logs))
		return r
	}
	seed := ""
	if len(f.Seeds) > 0 {
		seed = " with the same seed"
	}
	r.Unsteady = append(r.Unsteady, fmt.Sprintf("%s failed, and passed alone%s: %s", f.Name, seed, logs))
	if len(r.Unsteady) == len(r.Summary.FailedTests) {
		r.Outcome = Unsteady
		r.Summary.Passed, r.Summary.Failed, r.Summary.Failures = r.Summary.Passed+r.Summary.Failed, 0, nil
	}
	return r
}

// tooUnsteady returns why unsteady tests refuse a run, and how many do; "" and 0 if they do not.
func tooUnsteady(results []Result) (why string, tests int) {
	inCore, all := 0, 0
	for _, r := range results {
		all += len(r.Unsteady)
		if r.Tier == Core {
			inCore += len(r.Unsteady)
		}
	}
	switch {
	case inCore > maxUnsteadyCore:
		return fmt.Sprintf("refused: %d tests of the core tier are unsteady, and at most %d may be", inCore, maxUnsteadyCore), all
	case all > maxUnsteady:
		return fmt.Sprintf("refused: %d tests are unsteady, and at most %d may be", all, maxUnsteady), all
	}
	return "", 0
}
