package removal

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func start() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) }

func TestBudget(t *testing.T) {
	for _, test := range []struct {
		text  string
		units int
		want  int // -1: refused
	}{
		{"5%", 100, 5}, {"5%", 119, 5}, {"5%", 3, 1}, {"5%", 0, 1}, {"100%", 7, 7}, {"0%", 100, 0},
		{"3", 100, 3}, {"0", 100, 0}, {"1000000", 1, 1000000},
		{"", 1, -1}, {"%", 1, -1}, {"101%", 1, -1}, {"-1", 1, -1}, {"+1", 1, -1}, {"5 %", 1, -1}, {"5.5%", 1, -1}, {"1000001", 1, -1},
		{"never", 1, -1}, {"99999999999999999999", 1, -1},
	} {
		b, err := ParseBudget(test.text)
		if (err != nil) != (test.want < 0) {
			t.Errorf("%q: error %v", test.text, err)
			continue
		}
		if err == nil && b.Of(test.units) != test.want {
			t.Errorf("%q of %d units: got %d, want %d", test.text, test.units, b.Of(test.units), test.want)
		}
		if err == nil && b.String() != test.text {
			t.Errorf("%q is written as %q", test.text, b)
		}
		if err != nil && b.Of(100) != 0 {
			t.Errorf("%q is refused and allows %d", test.text, b.Of(100))
		}
	}
	if Default().Of(100) != 5 || Default().String() != "5%" {
		t.Errorf("the default is %s", Default())
	}
}

// TestSpent: whatever is removed when, no more are removed within any hour than allowed, the list
// stays short, and there is room again when next says so.
func TestSpent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allowed := rapid.IntRange(0, 5).Draw(t, "allowed")
		now := start()
		var spent []Spent
		var removed []time.Time
		for range rapid.IntRange(1, 200).Draw(t, "turns") {
			now = now.Add(time.Duration(rapid.IntRange(0, 1200).Draw(t, "seconds")) * time.Second)
			left, next := Left(allowed, spent, now)
			if left == 0 && allowed > 0 {
				if !next.After(now) {
					t.Fatalf("at %s nothing is left, and next is %s", now, next)
				}
				if later, _ := Left(allowed, spent, next); later == 0 {
					t.Fatalf("nothing is left at %s either", next)
				}
			}
			n := rapid.IntRange(0, left).Draw(t, "n")
			spent = Spend(spent, n, now)
			for range n {
				removed = append(removed, now)
			}
			within := 0
			for _, at := range removed {
				if at.Add(Window).After(now) {
					within++
				}
			}
			if within > allowed {
				t.Fatalf("%d are removed within an hour, %d are allowed", within, allowed)
			}
			if len(spent) > spentMax || !slices.IsSortedFunc(spent, func(a, b Spent) int { return a.At.Compare(b.At) }) {
				t.Fatalf("spent is %v", spent)
			}
		}
	})
}

// TestManySpent: a long list, which an edited status may have, is shortened without giving back
// what is spent.
func TestManySpent(t *testing.T) {
	var spent []Spent
	for i := range 500 {
		spent = append(spent, Spent{At: start().Add(time.Duration(i) * time.Second), Count: 1})
	}
	spent = Spend(spent, 1, start())
	sum := 0
	for _, s := range spent {
		sum += s.Count
	}
	if len(spent) > spentMax || sum != 501 {
		t.Errorf("%d entries with %d removals", len(spent), sum)
	}
	if left, _ := Left(502, spent, start().Add(30*time.Minute)); left != 1 {
		t.Errorf("%d are left", left)
	}
}

func TestReleases(t *testing.T) {
	lost := map[string]time.Time{"a": start(), "b": start(), "c": start(), "d": {}}
	r := ReadReleases(" b@2026-03-01T10:00:00Z,a, c@2026-03-01T09:00:00Z,,c@yesterday,e@2026-03-01T10:00:00Z,b@2026-03-01T08:00:00Z,d@, " +
		"f@2026-03-01T11:00:00+01:00,*")
	for unit, want := range map[string]bool{"a": false, "b": true, "c": false, "d": false, "f": true} {
		at := lost[unit]
		if unit == "f" {
			at = start()
		}
		if r.Allow(unit, at) != want {
			t.Errorf("unit %s is released: %v", unit, !want)
		}
	}
	want := []Unmatched{
		{Text: "*"}, {Text: "a", Entry: "a@2026-03-01T10:00:00Z"},
		{Text: "c@2026-03-01T09:00:00Z", Entry: "c@2026-03-01T10:00:00Z"}, {Text: "c@yesterday", Entry: "c@2026-03-01T10:00:00Z"},
		{Text: "d@"}, {Text: "e@2026-03-01T10:00:00Z"}, {Text: "f@2026-03-01T11:00:00+01:00"},
	}
	if got := r.Unmatched(lost); !slices.Equal(got, want) {
		t.Errorf("unmatched:\n got %v\nwant %v", got, want)
	}
	if got := ReadReleases(Entry("a", start().In(time.FixedZone("", 3600)))); !got.Allow("a", start()) {
		t.Errorf("an entry of ours releases nothing: %v", got)
	}
}

// TestManyReleases: an annotation as long as the API server takes it is read once for each unit.
func TestManyReleases(t *testing.T) {
	r := ReadReleases(strings.Repeat("a@x,", 60000))
	if got := len(r.Unmatched(map[string]time.Time{"a": start()})); got != 60000 {
		t.Errorf("%d entries are unmatched", got)
	}
}
