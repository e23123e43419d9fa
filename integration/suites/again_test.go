package suites

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/integration/env/promise"

	"github.com/google/go-cmp/cmp"
)

// failing returns the events of a package in which TestA passes and TestB, with a subtest, says
// some lines and fails. If ends is false, the process ends before TestB does.
func failing(ends bool, lines ...string) string {
	var events strings.Builder
	add := func(action, test, output string) {
		fmt.Fprintf(&events, `{"Action":%q,"Package":"p","Test":%q,"Output":%q,"Elapsed":40}`+"\n", action, test, output)
	}
	add("run", "TestA", "")
	add("output", "TestA", "PROMISE closure: this test passes\n")
	add("pass", "TestA", "")
	add("run", "TestB", "")
	add("output", "TestB", "    b_test.go:7: seed 7 (repeat with GRIDPROXY_AGREEMENT_SEED=7)\n")
	add("run", "TestB/of(a/b", "")
	for _, line := range lines {
		add("output", "TestB/of(a/b", line+"\n")
	}
	if ends {
		add("fail", "TestB/of(a/b", "")
		add("fail", "TestB", "")
	}
	events.WriteString(`{"Action":"fail","Package":"p"}` + "\n")
	return events.String()
}

// TestProofs: which failures are tried again, of all that a test can say.
func TestProofs(t *testing.T) {
	for _, c := range []struct {
		what   string
		events string
		want   string // why it is not tried again
	}{
		{"an ordinary failure", failing(true, "    b_test.go:9: want 1", "not a panic: 2", "        no PROMISE here"), ""},
		{"no measurement", failing(true, "    b_test.go:9: not measured: 7 % of the queries were sent late"), ""},
		{"a promise", failing(true, "    PROMISE closure: 10.0.0.1 answered"), "TestB: PROMISE closure: 10.0.0.1 answered"},
		{"a promise, as an error", failing(true, "    b_test.go:9: PROMISE closure"), "TestB: PROMISE closure"},
		{"a data race", failing(true, "==================", "WARNING: DATA RACE"), "TestB: WARNING: DATA RACE"},
		{"a data race that another test is said to have", failing(true, "    testing.go:1617: race detected during execution of test"), "TestB: race detected during execution of test"},
		{"a panic", failing(true, "panic: boom [recovered, repanicked]"), "TestB: panic: boom [recovered, repanicked]"},
		{"a panic of another goroutine", failing(false, "panic: boom"), "p: panic: boom"},
		{"a fatal error", failing(false, "fatal error: concurrent map writes"), "p: fatal error: concurrent map writes"},
		{"a property", failing(true, "    b_test.go:9: [rapid] failed after 3 tests: no"), "TestB: [rapid] failed after 3 tests: no"},
		{"a property that holds", failing(true, "    b_test.go:9: [rapid] OK, passed 100 tests (1s)"), ""},
		{"a test that ends the process", failing(false), "p: its tests did not end"},
		{"what does not compile", `{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}` + "\n" + `{"Action":"fail","Package":"p"}`, "p: it failed outside of its tests"},
	} {
		sum, err := Summarize(strings.NewReader(c.events))
		if err != nil {
			t.Fatal(err)
		}
		if got := sum.Proof; got != c.want {
			t.Errorf("%s: %q, want %q", c.what, got, c.want)
		}
		outcome, notes := Judge(Suite{}, sum, errors.New("exit status 1"), false)
		_, tests := ToTryAgain([]Result{{Suite: "s", Outcome: outcome, Notes: notes, Summary: sum}})
		if again := len(tests["s"]) == 1; again != (c.want == "") {
			t.Errorf("%s: it is tried again: %t; notes %q", c.what, again, notes)
		}
	}
	sum := Summary{Failed: 1, FailedTests: []FailedTest{{Name: "TestB"}}}
	if _, tests := ToTryAgain([]Result{{Suite: "s", Outcome: TimedOut, Summary: sum}}); len(tests) > 0 {
		t.Error("a suite that was killed at its limit is tried again")
	}
}

// notedTest is a test whose output is read here.
type notedTest struct {
	testing.TB
	output strings.Builder
}

func (t *notedTest) Output() io.Writer         { return &t.output }
func (*notedTest) Helper()                     {}
func (t *notedTest) Errorf(f string, _ ...any) { t.output.WriteString(f) }

// TestPromise: what package promise prints is a proof.
func TestPromise(t *testing.T) {
	noted := &notedTest{}
	promise.Broken(noted, promise.Closure, "gz-1 answered")
	if got := noted.output.String(); proofIn(got) == "" || !strings.HasSuffix(got, "\ngz-1 answered") {
		t.Errorf("a broken promise prints %q", got)
	}
}

// TestFailedTest: a test and its subtests are one failed test, with what a second try needs, and
// without what grows with the output.
func TestFailedTest(t *testing.T) {
	lines := make([]string, 2000)
	for i := range lines {
		lines[i] = fmt.Sprintf("GRIDPROXY_%c_SEED=%d GRIDPROXY_AGREEMENT_SEED=8 %s", 'A'+i%26, i, strings.Repeat("x", 1000))
	}
	sum, err := Summarize(strings.NewReader(failing(true, lines...)))
	if err != nil || len(sum.FailedTests) != 1 || sum.Failed != 2 {
		t.Fatalf("%+v, %v", sum, err)
	}
	f := sum.FailedTests[0]
	if len(f.Seeds) != maxSeeds || f.Seeds[0] != "GRIDPROXY_A_SEED=0" {
		t.Errorf("the seeds are %q", f.Seeds)
	}
	sum, err = Summarize(strings.NewReader(failing(true)))
	want := []FailedTest{{Package: "p", Name: "TestB", Time: 40 * time.Second, Seeds: []string{"GRIDPROXY_AGREEMENT_SEED=7"}}}
	if diff := cmp.Diff(want, sum.FailedTests); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if got := sum.FailedTests[0].Limit(); got != 80*time.Second {
		t.Errorf("the second try may take %s", got)
	}
	if got := (FailedTest{Time: time.Second}).Limit(); got != time.Minute {
		t.Errorf("the second try of a short test may take %s", got)
	}
}

func TestAgain(t *testing.T) {
	f := FailedTest{Package: "gridproxy/a/b", Name: "TestX", Time: 40 * time.Second, Seeds: []string{"GRIDPROXY_A_SEED=7"}}
	for _, c := range []struct{ suite, want Suite }{
		{Suite{Packages: []string{"./a/..."}, Skip: "^TestY$"}, Suite{Packages: []string{"gridproxy/a/b"}, Run: "^TestX$", Skip: "^TestY$"}},
		{Suite{Packages: []string{"./a/b", "./c"}, Run: "^(TestX|TestY)$"}, Suite{Packages: []string{"gridproxy/a/b"}, Run: "^TestX$"}},
		{Suite{Packages: []string{"./a/b"}, Run: "/^ipvs", Kernel: "6.1"}, Suite{Packages: []string{"./a/b"}, Run: "^TestX$/^ipvs", Kernel: "6.1"}},
		{Suite{Packages: []string{"./a/b"}, Fuzz: "FuzzX", Tier: Fuzz}, Suite{Packages: []string{"./a/b"}, Run: "^TestX$"}},
	} {
		c.suite.Env, c.want.Env = []string{"A=1"}, []string{"A=1", "GRIDPROXY_A_SEED=7"}
		c.suite.Args, c.want.Args = []string{"-a"}, []string{"-a", "-test.timeout=1m20s"}
		c.want.Tier, c.want.Limit = Core, 80*time.Second+startTime
		if diff := cmp.Diff(c.want, c.suite.Again(f)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

// TestRunsOfRows: Again splits the pattern Run of a row at its first slash, so all alternatives of
// tests must share what follows.
func TestRunsOfRows(t *testing.T) {
	group := regexp.MustCompile(`^(\^\([^()]*\)\$|[^|]*)$`)
	for _, s := range All() {
		if above, _, found := strings.Cut(s.Run, "/"); found && !group.MatchString(above) {
			t.Errorf("%s: Run is %q: write one group of tests before the slash", s.Name, s.Run)
		}
	}
}

// TestAfterSecondTry: a failure that repeats is refused, one that does not is unsteady, and so many
// unsteady tests refuse the run.
func TestAfterSecondTry(t *testing.T) {
	broken := func(tier Tier, tests ...string) Result {
		r := Result{Suite: "s", Tier: tier, Outcome: Broken, Summary: Summary{Passed: 3}}
		for _, name := range tests {
			r.Summary.Failed, r.Summary.Failures = r.Summary.Failed+2, append(r.Summary.Failures, "p "+name, "p "+name+"/sub")
			r.Summary.FailedTests = append(r.Summary.FailedTests, FailedTest{Name: name, Seeds: []string{"GRIDPROXY_A_SEED=7"}})
		}
		return r
	}
	passed := Result{Outcome: Passed, CPU: time.Second}
	tried := func(r Result, again ...Result) Result {
		for i, f := range r.Summary.FailedTests {
			r = r.AfterSecondTry(f, again[i], "a.log, b.log")
		}
		return r
	}
	core, two := tried(broken(Core, "TestX"), passed), tried(broken(Core, "TestX", "TestY"), passed, passed)
	extended := tried(broken(Extended, "TestZ"), passed)
	repeated := tried(broken(Core, "TestX", "TestY"), Result{Outcome: Broken, Notes: []string{"exit status 1"}}, passed)
	for _, c := range []struct {
		what    string
		results []Result
		want    bool
		last    string
	}{
		{"one test in core", []Result{core}, true, "5 passed, 0 failed, 0 skipped"},
		{"two tests in core", []Result{two}, false, "5 passed, 2 failed, 0 skipped"},
		{"two tests, one of them in core", []Result{core, extended}, true, "10 passed, 0 failed, 0 skipped"},
		{"a third test", []Result{core, extended, extended}, false, "12 passed, 3 failed, 0 skipped"},
		{"a failure that repeats", []Result{repeated}, false, "3 passed, 4 failed, 0 skipped"},
	} {
		text := Table(c.results, Machine{}, 0)
		if got := Succeeded(c.results); got != c.want || !strings.HasSuffix(text, "\n"+c.last+"\n") || strings.Contains(text, "refused: ") == (c.want || c.results[0].Outcome == Broken) {
			t.Errorf("%s: success %t, and\n%s", c.what, got, text)
		}
	}
	if core.Outcome != Unsteady || core.CPU != time.Second || !slices.Equal(core.Unsteady, []string{"TestX failed, and passed alone with the same seed: a.log, b.log"}) {
		t.Errorf("%+v", core)
	}
	if repeated.Outcome != Broken || !slices.Equal(repeated.Notes, []string{"TestX failed, and then alone: exit status 1: a.log, b.log"}) || len(repeated.Unsteady) != 1 {
		t.Errorf("%+v", repeated)
	}
	six := broken(Core, "TestU", "TestV", "TestW", "TestX", "TestY", "TestZ")
	if results, tests := ToTryAgain([]Result{six}); len(tests) > 0 || len(results[0].Notes) != 1 {
		t.Errorf("six tests are tried again: %v; %+v", tests, results)
	}
}
