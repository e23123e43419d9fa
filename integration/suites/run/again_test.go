package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"gridproxy/integration/suites"
)

// The tests of a module in which each test is a suite. A test that says again() fails the first
// time.
const trialTests = `package trial

import (
	"os"
	"testing"
)

func again(t *testing.T) bool {
	_, err := os.Stat(t.Name())
	if err := os.WriteFile(t.Name(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return err == nil
}

func TestRepeats(t *testing.T) { t.Error("no") }

func TestSeed(t *testing.T) {
	seed := os.Getenv("GRIDPROXY_AGREEMENT_SEED")
	if seed == "" {
		t.Error("repeat with GRIDPROXY_AGREEMENT_SEED=7")
	} else if seed != "7" {
		t.Error("another seed")
	}
}

func TestSubtest(t *testing.T) {
	second, before := again(t), false
	t.Run("before", func(*testing.T) { before = true })
	t.Run("a/b (c", func(t *testing.T) {
		if !second || !before {
			t.Error("no")
		}
	})
}

func TestSkips(t *testing.T) {
	if again(t) {
		t.Skip("the second time")
	}
	t.Error("no")
}

func TestHangs(t *testing.T) {
	if again(t) {
		select {}
	}
	t.Error("no")
}

func TestPanics(t *testing.T) {
	if !again(t) {
		panic("no")
	}
}
`

// trialModule writes the module, and returns a runner of its suites.
func trialModule(t *testing.T) (*runner, func(test string) suites.Suite) {
	t.Helper()
	dir := t.TempDir()
	files := fstest.MapFS{
		"go.mod": {Data: []byte("module trial\n\ngo 1.26\n")}, "trial_test.go": {Data: []byte(trialTests)}, "logs": {Mode: fs.ModeDir},
	}
	root, errRoot := filepath.Abs("../../..")
	module, errModule := filepath.Rel(root, dir)
	if err := errors.Join(errRoot, errModule, os.CopyFS(dir, files)); err != nil {
		t.Fatal(err)
	}
	r := &runner{root: root, logs: filepath.Join(dir, "logs"), prepared: newPreparation(root), starts: &starts{}}
	return r, func(test string) suites.Suite {
		return suites.Suite{Name: strings.ToLower(test), Tier: suites.Extended, Module: module, Packages: []string{"./..."}, Run: "^" + test + "$", Usual: time.Second}
	}
}

// TestSecondTry: a failure that repeats is refused, and one that does not is unsteady, with the
// seed of the first try. A proof of a fault gets no second try.
func TestSecondTry(t *testing.T) {
	t.Parallel()
	r, suiteOf := trialModule(t)
	for _, c := range []struct {
		test  string
		want  suites.Outcome
		again bool   // whether there is a second try
		said  string // in the notes and unsteady tests
	}{
		{"TestRepeats", suites.Broken, true, "TestRepeats failed, and then alone: trial TestRepeats: trial_test.go:"},
		{"TestSeed", suites.Unsteady, true, "TestSeed failed, and passed alone with the same seed: "},
		{"TestSubtest", suites.Unsteady, true, "TestSubtest failed, and passed alone: "},
		{"TestSkips", suites.Broken, true, "all tests were skipped"},
		{"TestPanics", suites.Broken, false, "not tried again: TestPanics: panic: no"},
	} {
		s := suiteOf(c.test)
		results := r.runTiers(t.Context(), []suites.Suite{s})
		said := strings.Join(append(results[0].Notes, results[0].Unsteady...), "\n")
		if len(results) != 1 || results[0].Outcome != c.want || !strings.Contains(said, c.said) {
			t.Errorf("%s: %+v, want %s and %q", c.test, results, c.want, c.said)
		}
		first, second := filepath.Join(r.logs, s.Name+".log"), filepath.Join(r.logs, s.Name+".again.log")
		_, err := os.Stat(second)
		if (err == nil) != c.again || c.again && !strings.Contains(said, first+", "+second) {
			t.Errorf("%s: a second try: %v; want it: %t", c.test, err, c.again)
		}
	}
}

// TestSecondTryIsCut: a second try that the deadline of the run ends proves nothing.
func TestSecondTryIsCut(t *testing.T) {
	t.Parallel()
	r, suiteOf := trialModule(t)
	s := suiteOf("TestHangs")
	first := r.run(t.Context(), []suites.Suite{s})
	if len(first[0].Summary.FailedTests) != 1 {
		t.Fatalf("%+v", first)
	}
	r.config.budget = suites.Budget{Start: time.Now(), Deadline: 30 * time.Second}
	got := r.tryAgain(t.Context(), []suites.Suite{s}, first)
	if got[0].Outcome != suites.Broken || len(got[0].Notes) != 1 || !strings.Contains(got[0].Notes[0], "not proven: cut: no time left") {
		t.Errorf("%+v", got)
	}
}
