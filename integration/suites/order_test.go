package suites

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestIsNear(t *testing.T) {
	s := Suite{
		Packages: []string{"./integration/grids", "./integration/sites/..."},
		About:    []string{"controller/grid/expand"},
		Reads:    []string{"deploy/crds", "docs/grids.md"},
	}
	for file, want := range map[string]bool{
		"integration/grids/walk_test.go":                  true,
		"integration/grids/testdata/a.txtar":              true,
		"integration/grids/other/walk_test.go":            false, // another package
		"integration/sites/other/walk_test.go":            true,
		"controller/grid/expand/decide.go":                true,
		"controller/grid/expand/below/decide.go":          true,
		"controller/grid/expand/decide_test.go":           false, // its own suite's
		"controller/grid/expand/testdata/children/a.yaml": false,
		"controller/grid/expanded/decide.go":              false,
		"deploy/crds/a/b.yaml":                            true,
		"deploy/crdsmore.yaml":                            false,
		"docs/grids.md":                                   true,
		"docs/ipvs.md":                                    false,
		"go.mod":                                          false, // all suites depend on it
	} {
		if got := s.IsNear(file); got != want {
			t.Errorf("%s is near: %t, want %t", file, got, want)
		}
	}
	s = Suite{Module: "integration/agreement", Packages: []string{"./..."}}
	if !s.IsNear("integration/agreement/a_test.go") || s.IsNear("integration/a_test.go") || s.IsNear("a.go") {
		t.Error("the packages of a nested module are those below its folder")
	}
}

// TestParts: what is near comes first, then one rare suite, then the others, in each part by the
// seed.
func TestParts(t *testing.T) {
	rare := func(name string, reads ...string) Suite { return Suite{Name: name, Rare: true, Reads: reads} }
	table := []Suite{{Name: "a"}, rare("r1"), {Name: "b", Reads: []string{"x"}}, {Name: "c"}, rare("r2", "x", "y"), {Name: "d"}}
	for _, c := range []struct {
		files []string
		seed  string
		want  string
		near  int
	}{
		{nil, "0a1f2a35", "r1 d a c b", 0},
		{nil, "c1a15c22", "r2 a b c d", 0},
		{[]string{"x"}, "0a1f2a35", "b r2 r1 d a c", 2},
		{[]string{"y", "go.mod"}, "c1a15c22", "r2 r1 a b c d", 1},
	} {
		order, near := Order(table, c.files, c.seed)
		if got := names(order); got != c.want || near != c.near {
			t.Errorf("after %v of %s: %s, %d near; want %s, %d", c.files, c.seed, got, near, c.want, c.near)
		}
	}
}

// TestOrder: where the core tier takes all of its time and nothing is near, each suite has its turn
// within some runs of CI, with the times that .ci/run presets.
func TestOrder(t *testing.T) {
	const runs = 200
	table := Tiers(All(), Extended)
	ran := map[string]int{}
	for i := range runs {
		order, _ := Order(table, nil, fmt.Sprintf("%x", sha256.Sum256([]byte(strconv.Itoa(i)))))
		for _, name := range finished(order) {
			ran[name]++
		}
	}
	slices.SortStableFunc(table, func(a, b Suite) int { return ran[a.Name] - ran[b.Name] })
	for _, s := range table {
		t.Logf("%-20s %s, rare %t: in %d of %d runs", s.Name, Seconds(s.Usual), s.Rare, ran[s.Name], runs)
		if ran[s.Name] == 0 || !s.Rare && ran[s.Name]*100 < 15*runs {
			t.Errorf("%s runs in %d of %d runs of CI: shorten it or others, or split it", s.Name, ran[s.Name], runs)
		}
	}
}

// finished returns the names of the suites that run, in this order, on two cores beside each other,
// after a core tier that took coreTime.
func finished(waiting []Suite) (done []string) {
	type active struct {
		suite Suite
		ends  time.Time
	}
	budget := Budget{Start: time.Unix(0, 0), Soft: 37 * time.Minute, Deadline: 60 * time.Minute}
	now := budget.Start.Add(coreTime)
	var running []active
	for {
		waiting = slices.DeleteFunc(waiting, func(s Suite) bool { return !budget.Fits(now, s, 1) })
		var beside []Suite
		for _, a := range running {
			beside = append(beside, a.suite)
		}
		if i := Next(waiting, beside, 2); i >= 0 {
			s := waiting[i]
			waiting = slices.Delete(waiting, i, i+1)
			running = append(running, active{s, now.Add(s.Usual)})
			done = append(done, s.Name)
			continue
		}
		if len(running) == 0 {
			return done
		}
		first := slices.MinFunc(running, func(a, b active) int { return a.ends.Compare(b.ends) })
		now = first.ends
		running = slices.DeleteFunc(running, func(a active) bool { return a.suite.Name == first.suite.Name })
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
