package suites

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const someEvents = `{"Action":"start","Package":"p"}
{"Action":"start","Package":"killed"}
{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA/sub","Elapsed":9}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":9.5}
{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"LONG\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: SKIPPED: this kernel has no IPVS\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB","Elapsed":0}
{"Action":"output","Package":"p","Test":"TestC","Output":"    c_test.go:9: want 1\n"}
{"Action":"output","Package":"p","Test":"TestC","Output":"LONG"}
{"Action":"output","Package":"p","Test":"TestC","Output":"\n    c_test.go:12: its log\n"}
{"Action":"fail","Package":"p","Test":"TestC","Elapsed":0.5}
{"Action":"fail","Package":"p","Elapsed":10}
{"Action":"skip","Package":"no/tests"}
{"Action":"fail","Package":"broken","Elapsed":0}
{"Action":"output","Package":"p","Te`

func TestSummarize(t *testing.T) {
	got, err := Summarize(strings.NewReader(strings.ReplaceAll(someEvents, "LONG", strings.Repeat("x", 1000))))
	if err != nil {
		t.Fatal(err)
	}
	want := Summary{
		Passed: 2, Failed: 2, Skipped: 1,
		Failures: []string{"p TestC: c_test.go:9: want 1 … c_test.go:12: its log", "broken"},
		Skips:    []SkippedTest{{"p TestB", "b_test.go:7: SKIPPED: this kernel has no IPVS"}},
		Slowest:  []TimedTest{{"p TestA", 9500 * time.Millisecond}, {"p TestC", 500 * time.Millisecond}, {"p TestB", 0}},
		Unended:  []string{"killed"},

		FailedTests: []FailedTest{{Package: "p", Name: "TestC", Time: 500 * time.Millisecond}},
		Proof:       "broken: it failed outside of its tests",
	}
	for i, k := range got.Skips {
		got.Skips[i].Text = k.Text[strings.Index(k.Text, "b_test"):]
	}
	got.Failures[0] = regexp.MustCompile(`x+ \[…\] x+`).ReplaceAllString(got.Failures[0], "…")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRunIsAUnion: packages that run side by side count once, and what is built between them does
// not.
func TestRunIsAUnion(t *testing.T) {
	var events strings.Builder
	for _, e := range []struct {
		second       int
		action, name string
	}{
		{0, "start", "a"}, {2, "start", "b"}, {5, "pass", "a"}, {7, "fail", "b"},
		{20, "start", "c"}, {21, "skip", "c"}, {30, "start", "killed"}, {34, "output", "killed"},
	} {
		fmt.Fprintf(&events, `{"Action":"build-output"}`+"\n"+`{"Time":"2026-01-01T00:00:%02dZ","Action":%q,"Package":%q}`+"\n", e.second, e.action, e.name)
	}
	got, err := Summarize(strings.NewReader(events.String()))
	if want := 12 * time.Second; err != nil || got.Run != want {
		t.Errorf("tests ran for %s, %v; want %s", got.Run, err, want)
	}
}

// TestSummarizeIsBounded: a line or a text without end is not kept.
func TestSummarizeIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<21)
	said := strings.Repeat(`{"Action":"output","Package":"p","Test":"T","Output":"`+strings.Repeat("y", 100)+`"}`+"\n", 1000)
	got, err := Summarize(strings.NewReader(long + "\n" + said + `{"Action":"skip","Package":"p","Test":"T"}` + "\n"))
	if err != nil || got.Skipped != 1 || len(got.Skips[0].Text) > maxText {
		t.Errorf("%v, %d skipped", err, got.Skipped)
	}
	got, err = Summarize(strings.NewReader(said + `{"Action":"fail","Package":"p","Test":"T"}` + "\n"))
	if err != nil || got.Failed != 1 || len(got.Failures[0]) > 2*maxText+20 {
		t.Errorf("%v, %d failed", err, got.Failed)
	}
}

func TestJudge(t *testing.T) {
	ipvs := Suite{Skips: []Skip{{Text: "no IPVS"}}}
	command := Suite{Command: []string{"true"}}
	skips := Summary{Passed: 1, Skipped: 1, Skips: []SkippedTest{{"p TestB", "this kernel has no IPVS"}}}
	strange := Summary{Passed: 1, Skipped: 1, Skips: []SkippedTest{{"p TestB", "curl is not installed"}}}
	exit := errors.New("exit status 1")
	for _, c := range []struct {
		what     string
		suite    Suite
		sum      Summary
		err      error
		required bool
		want     Outcome
		notes    int
	}{
		{"a test passed", ipvs, Summary{Passed: 1}, nil, true, Passed, 0},
		{"an expected skip", ipvs, skips, nil, true, Passed, 0},
		{"another skip", ipvs, strange, nil, true, Broken, 1},
		{"another skip where none is required", ipvs, strange, nil, false, Passed, 0},
		{"a test failed", ipvs, Summary{Passed: 1, Failed: 1}, exit, true, Broken, 0},
		{"no test ran", ipvs, Summary{}, nil, false, Broken, 1},
		{"everything was skipped", ipvs, Summary{Skipped: 1, Skips: skips.Skips}, nil, false, Skipped, 1},
		{"everything was skipped, as expected, where tests are required", ipvs, Summary{Skipped: 1, Skips: skips.Skips}, nil, true, Broken, 1},
		{"go test failed without a test", ipvs, Summary{Passed: 1}, exit, false, Broken, 1},
		{"go test was ended from outside", ipvs, Summary{Passed: 1, Unended: []string{"p"}}, nil, true, Broken, 1},
		{"a command", command, Summary{}, nil, true, Passed, 0},
		{"a command that failed", command, Summary{}, exit, true, Broken, 1},
	} {
		if got, notes := Judge(c.suite, c.sum, c.err, c.required); got != c.want || len(notes) != c.notes {
			t.Errorf("%s: %s, %q; want %s and %d notes", c.what, got, notes, c.want, c.notes)
		}
	}
}

func TestSucceeded(t *testing.T) {
	for _, c := range []struct {
		tier    Tier
		outcome Outcome
		want    bool
	}{
		{Core, Passed, true}, {Core, Skipped, true}, {Core, Broken, false}, {Core, NotRun, false}, {Core, Stopped, false},
		{Extended, NotRun, true}, {Extended, TimedOut, false}, {Extended, Cut, true}, {Core, Cut, false}, {Extended, Stopped, false}, {Fuzz, NotRun, true},
	} {
		if got := Succeeded([]Result{{Tier: c.tier, Outcome: c.outcome}}); got != c.want {
			t.Errorf("a suite of tier %s that is %q: success %t", c.tier, c.outcome, got)
		}
	}
}

// TestTable: the last line is one that CI systems read.
func TestTable(t *testing.T) {
	got := Table([]Result{
		{Suite: "unit", Tier: Core, Outcome: Passed, Prepare: 5 * time.Second, Build: 10 * time.Second, Run: 50 * time.Second, CPU: 100 * time.Second, Starts: 1500, Summary: Summary{Passed: 10, Skipped: 2, Slowest: []TimedTest{{"p TestA", 61 * time.Second}}}},
		{Suite: "vet", Tier: Core, Outcome: Passed, Run: time.Second},
		{Suite: "grids", Tier: Core, Outcome: Broken, Run: time.Second, Summary: Summary{Passed: 1, Failed: 1, Failures: []string{"p TestX"}}},
		{Suite: "sites", Tier: Core, Outcome: Unsteady, Run: time.Second, Summary: Summary{Passed: 3}, Unsteady: []string{"TestY failed, and passed alone: a.log, b.log"}},
		{Suite: "hangs", Tier: Extended, Outcome: TimedOut, Run: time.Second, Notes: []string{"it was killed"}},
		{Suite: "late", Tier: Extended, Outcome: NotRun},
	}, Machine{Cores: 2}, 2*time.Minute)
	want := `SUITE  TIER      RESULT                 PREPARE  BUILD  RUN   CPU   STARTS  TESTS  SKIPPED
unit   core      passed                 0:05     0:10   0:50  1:40  1500    10     2
vet    core      passed                 0:00     0:00   0:01  0:00  0       0      0
grids  core      FAILED                 0:00     0:00   0:01  0:00  0       2      0
sites  core      unsteady               0:00     0:00   0:01  0:00  0       3      0
hangs  extended  FAILED: timed out      0:00     0:00   0:01  0:00  0       0      0
late   extended  not run: no time left                                             
` + Machine{Cores: 2}.String() + `grids: p TestX
hangs: it was killed
The slowest tests:
   1:01  unit: p TestA
unsteady: sites: TestY failed, and passed alone: a.log, b.log
All suites together: 2:00
15 passed, 2 failed, 2 skipped
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
