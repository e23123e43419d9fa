package suites

import (
	"testing"
	"time"
)

func TestInputs(t *testing.T) {
	in := Inputs{
		Tested:  []string{"integration/grids"},
		Depends: []string{"integration/grids", "controller/expand", "controller/api/v1"},
		Reads:   []string{"deploy/crds", "docs/grids.md"},
	}
	for file, want := range map[string]bool{
		"integration/grids/walk_test.go":             true,
		"integration/grids/testdata/a.txtar":         true,
		"controller/expand/decide.go":                true,
		"controller/expand/decide_test.go":           false, // its own suite's
		"controller/expand/testdata/children/a.yaml": false,
		"controller/expand/other/file.go":            false, // another package
		"controller/api/v1/embedded.yaml":            true,
		"deploy/crds/a/b.yaml":                       true,
		"deploy/crdsmore.yaml":                       false,
		"docs/grids.md":                              true,
		"docs/ipvs.md":                               false,
		"go.mod":                                     true,
		"integration/agreement/go.mod":               false,
		"Makefile":                                   false,
	} {
		if got := in.Has(file); got != want {
			t.Errorf("%s is an input: %t, want %t", file, got, want)
		}
	}
}

// TestOrder: what changed comes first, in the order of the table; the others take turns.
func TestOrder(t *testing.T) {
	table := []Suite{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}}
	inputs := map[string]Inputs{"b": {Reads: []string{"x"}}, "d": {Reads: []string{"x", "y"}}}
	day := func(n int) time.Time { return time.Unix(0, 0).AddDate(0, 0, n) }
	for _, c := range []struct {
		files   []string
		day     int
		want    string
		changed int
	}{
		{nil, 0, "a b c d", 0}, {nil, 1, "b c d a", 0}, {nil, 7, "d a b c", 0},
		{[]string{"x"}, 0, "b d a c", 2}, {[]string{"x"}, 1, "b d c a", 2}, {[]string{"y"}, 0, "d a b c", 1},
		{[]string{"go.mod"}, 3, "a b c d", 4}, {[]string{"unknown"}, 0, "a b c d", 0},
	} {
		order, changed := Order(table, inputs, c.files, day(c.day))
		if got := names(order); got != c.want || changed != c.changed {
			t.Errorf("after %v on day %d: %s, %d changed; want %s, %d", c.files, c.day, got, changed, c.want, c.changed)
		}
	}
}

func TestNext(t *testing.T) {
	small, half, alone := Suite{Name: "small", Load: 30}, Suite{Name: "half"}, Suite{Name: "alone", Alone: true, Load: 1}
	huge := Suite{Name: "huge", Load: 1000}
	for _, c := range []struct {
		what             string
		waiting, running []Suite
		want             int
	}{
		{"nothing waits", nil, nil, -1},
		{"the first starts on an idle machine, whatever it needs", []Suite{huge, small}, nil, 0},
		{"two that need one processor each", []Suite{half, half}, []Suite{half}, 0},
		{"no third one", []Suite{half}, []Suite{half, half}, -1},
		{"a small one passes", []Suite{half, small}, []Suite{half, half}, 1},
		{"nothing beside one that is alone", []Suite{small}, []Suite{alone}, -1},
		{"one that is alone waits for the others", []Suite{alone}, []Suite{small}, -1},
		{"and nothing passes it", []Suite{half, alone, small}, []Suite{half, half}, -1},
		{"it starts on an idle machine", []Suite{alone}, nil, 0},
	} {
		if got := Next(c.waiting, c.running, 2); got != c.want {
			t.Errorf("%s: %d, want %d", c.what, got, c.want)
		}
	}
}

func TestBudget(t *testing.T) {
	start := time.Unix(1000, 0)
	b := Budget{Start: start, Soft: 75 * time.Minute, Deadline: 79 * time.Minute}
	after := func(m int) time.Time { return start.Add(time.Duration(m) * time.Minute) }
	for _, c := range []struct {
		now  int
		tier Tier
		want bool
	}{
		{0, Extended, true}, {59, Extended, true}, {60, Extended, false}, {80, Extended, false},
		{74, Core, true}, {79, Core, false}, {72, Fuzz, true}, {73, Fuzz, false},
	} {
		if got := b.Fits(after(c.now), Suite{Tier: c.tier, Usual: 10 * time.Minute}, 1); got != c.want {
			t.Errorf("after %d minutes, a suite of 10 minutes (%s) fits: %t", c.now, c.tier, got)
		}
	}
	if !b.Fits(after(44), Suite{Tier: Extended, Usual: 10 * time.Minute}, 3) || b.Fits(after(45), Suite{Tier: Extended, Usual: 10 * time.Minute}, 3) {
		t.Error("on a machine of a third of the speed a suite does not need three times the time")
	}
	if !(Budget{}).Fits(after(1000), Suite{Tier: Extended, Usual: time.Hour}, 1) {
		t.Error("without a budget something does not fit")
	}
	for _, c := range []struct {
		now       int
		own, want time.Duration
	}{
		{0, 10 * time.Minute, 10 * time.Minute}, {74, 10 * time.Minute, 5*time.Minute - reserve},
		{79, 10 * time.Minute, 0}, {200, 10 * time.Minute, 0},
	} {
		if got := b.Limit(after(c.now), c.own); got != c.want {
			t.Errorf("after %d minutes a suite with %s may run %s, want %s", c.now, c.own, got, c.want)
		}
	}
	for _, c := range []struct {
		now, targets int
		want         time.Duration
	}{
		{50, 4, 2 * time.Minute}, {63, 4, time.Minute}, {70, 4, 30 * time.Second}, {72, 4, time.Minute},
		{73, 1, 0}, {74, 4, 0}, {90, 4, 0},
	} {
		if got := b.FuzzTime(after(c.now), c.targets, 30*time.Second); got != c.want {
			t.Errorf("after %d minutes each of %d targets has %s, want %s", c.now, c.targets, got, c.want)
		}
	}
}

// TestPace: only suites that passed say how slow the machine is, and a fast one shortens nothing.
func TestPace(t *testing.T) {
	table := []Suite{{Name: "a", Usual: time.Minute}, {Name: "b", Usual: 3 * time.Minute}}
	result := func(name string, outcome Outcome, minutes int) Result {
		return Result{Suite: name, Outcome: outcome, Build: time.Hour, Run: time.Duration(minutes) * time.Minute}
	}
	for _, c := range []struct {
		results []Result
		want    float64
	}{
		{nil, 1},
		{[]Result{result("a", Passed, 2)}, 2},
		{[]Result{result("a", Passed, 2), result("b", Passed, 4)}, 1.5},
		{[]Result{result("a", Passed, 2), result("b", TimedOut, 30), result("gone", Passed, 30)}, 2},
		{[]Result{result("a", Passed, 0)}, 1},
		{[]Result{result("a", Passed, 60)}, maxPace},
	} {
		if got := Pace(c.results, table); got != c.want {
			t.Errorf("after %+v the pace is %v, want %v", c.results, got, c.want)
		}
	}
}
