package grid

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func noRetries() retries {
	return retries{texts: map[string]string{}, groups: map[string]*retryGroup{}}
}

// allBlocked returns expand.Plan's Blocked if all refused children are wanted.
func allBlocked(r retries) map[string]bool {
	blocked := map[string]bool{}
	for child := range r.texts {
		blocked[child] = true
	}
	return blocked
}

// TestPauseOfRights: a child that was tried after a long pause, and then refused for lack of
// rights, waits no longer than their last pause. A pause in which no child may be tried does not
// double.
func TestPauseOfRights(t *testing.T) {
	r, now := noRetries(), time.Unix(1000, 0)
	for range 8 {
		r.refuse("web-a", "quota", false, false, now)
		now = now.Add(r.wait(now))
		r.due(allBlocked(r), now)
	}
	r.refuse("web-a", "rights", true, true, now)
	if got := r.groups["rights"].pause; got != rightsDelayMax {
		t.Errorf("the pause is %s, want %s", got, rightsDelayMax)
	}
	now = now.Add(refusedDelayMax)
	if due := r.due(map[string]bool{"web-a": false}, now); len(due) > 0 || r.groups["rights"].pause != rightsDelayMax {
		t.Errorf("%v is tried, and the pause is %s", due, r.groups["rights"].pause)
	}
}

// TestPauses: no refusal is final; the pauses double up to a limit, and begin again after a
// success.
func TestPauses(t *testing.T) {
	for _, c := range []struct {
		rights bool
		want   []time.Duration // in seconds
	}{
		{false, []time.Duration{10, 20, 40, 80, 160, 320, 600, 600}},
		{true, []time.Duration{1, 2, 4, 8, 16, 30, 30}},
	} {
		r, now := noRetries(), time.Unix(1000, 0)
		for _, pause := range c.want {
			pause *= time.Second
			r.refuse("web-a", "taken", false, c.rights, now)
			if got := r.wait(now); got != pause {
				t.Fatalf("the pause is %s, want %s", got, pause)
			}
			r.endPauses() // of no such refusal
			if early := r.due(allBlocked(r), now.Add(pause-1)); len(early) > 0 {
				t.Fatalf("%v is tried before the end of a pause of %s", early, pause)
			}
			now = now.Add(pause)
			if due := r.due(allBlocked(r), now); !slices.Equal(due, []string{"web-a"}) {
				t.Fatalf("after a pause of %s %v is tried", pause, due)
			}
		}
		r.take("web-a")
		if got := r.wait(now); got != 0 {
			t.Errorf("nothing is refused, and a pause is %s", got)
		}
		r.refuse("web-a", "taken", false, c.rights, now)
		if got := r.wait(now); got != c.want[0]*time.Second {
			t.Errorf("after a success the pause is %s", got)
		}
	}
}

// TestTextsThatChange: a text that is new each time, as with the number of a request, does not keep
// the pauses from growing.
func TestTextsThatChange(t *testing.T) {
	r, now := noRetries(), time.Unix(1000, 0)
	r.refuse("web-a", "request 0", false, false, now)
	for i, want := range []time.Duration{20, 40, 80, 160, 320, 600, 600} {
		var due []string
		for range 2 { // a text that no child has any more ends first
			if now = now.Add(r.wait(now)); len(due) == 0 {
				due = r.due(allBlocked(r), now)
			}
		}
		if !slices.Equal(due, []string{"web-a"}) {
			t.Fatalf("%v is tried", due)
		}
		r.refuse("web-a", fmt.Sprintf("request %d", i+1), false, false, now)
		if got := r.groups[fmt.Sprintf("request %d", i+1)].pause; got != want*time.Second {
			t.Errorf("pause %d is %s, want %s", i, got, want*time.Second)
		}
	}
}

// TestOneIsTried: of the children that are refused with one text one is tried at a time, another
// one each time, until one is taken. Then all are.
func TestOneIsTried(t *testing.T) {
	r, now := noRetries(), time.Unix(1000, 0)
	for _, child := range []string{"web-c", "web-a", "web-b"} {
		r.refuse(child, "quota", true, false, now)
	}
	for i, want := range []string{"web-a", "web-b", "web-c", "web-a"} {
		now = now.Add(refusedDelayMax)
		if i == 1 {
			r.endPauses()
		}
		if due := r.due(allBlocked(r), now); !slices.Equal(due, []string{want}) {
			t.Fatalf("%v is tried, want %s", due, want)
		}
		if i < 3 {
			r.refuse(want, "quota", true, false, now)
		}
	}
	others := r.take("web-a")
	if slices.Sort(others); !slices.Equal(others, []string{"web-b", "web-c"}) || r.wait(now) != 0 {
		t.Errorf("%v follow, and the next pause is %s", others, r.wait(now))
	}
}

// TestEveryRefusalEnds: however children are refused, tried and taken, no text has two tries within
// its pause, and once everything is taken, every child is.
func TestEveryRefusalEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, now := noRetries(), time.Unix(1000, 0)
		left := map[string]bool{}
		for i := range rapid.IntRange(1, 12).Draw(t, "children") {
			child := fmt.Sprintf("web-%02d", i)
			left[child] = true
			r.refuse(child, rapid.SampledFrom([]string{"quota", "port", "field"}).Draw(t, "text"), i%2 == 0, false, now)
		}
		open := rapid.IntRange(0, 20).Draw(t, "rounds of refusals")
		for round := 0; len(left) > 0; round++ {
			if round > open+20 {
				t.Fatalf("%v are never taken: %+v", slices.Sorted(maps.Keys(left)), r)
			}
			now = now.Add(r.wait(now))
			if rapid.Bool().Draw(t, "changed") {
				r.endPauses()
			}
			due := r.due(allBlocked(r), now)
			if len(due) > 3 {
				t.Fatalf("%v are tried at once", due)
			}
			for len(due) > 0 {
				child := due[0]
				due = due[1:]
				if round < open {
					r.refuse(child, rapid.SampledFrom([]string{"quota", "port", "field"}).Draw(t, "text"), true, false, now)
					continue
				}
				delete(left, child)
				due = append(due, r.take(child)...)
			}
		}
	})
}

// TestOnlyWantedAreTried: a child that the plan does not want, or would not apply now, takes no
// turn of its text, and every other one has its turn. What is not wanted is forgotten.
func TestOnlyWantedAreTried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, now := noRetries(), time.Unix(1000, 0)
		blocked, turns := map[string]bool{}, map[string]int{}
		for i := range rapid.IntRange(1, 20).Draw(t, "children") {
			child := fmt.Sprintf("web-%02d", i)
			r.refuse(child, "quota", false, false, now)
			switch rapid.IntRange(0, 2).Draw(t, "wish") {
			case 0: // its unit has no Node any more
			case 1:
				blocked[child] = false
			default:
				blocked[child], turns[child] = true, 0
			}
		}
		for range len(turns) {
			now = now.Add(refusedDelayMax)
			due := r.due(blocked, now)
			if len(due) != 1 || !blocked[due[0]] {
				t.Fatalf("%v is tried, and wanted are %v", due, turns)
			}
			turns[due[0]]++
			r.refuse(due[0], "quota", false, false, now)
		}
		if due := r.due(blocked, now); len(due) > 0 {
			t.Fatalf("%v is tried before the pause is over", due)
		}
		for child, n := range turns {
			if n != 1 {
				t.Errorf("%s had %d turns of %d", child, n, len(turns))
			}
		}
		if len(r.texts) != len(blocked) {
			t.Errorf("remembered are %v, and wanted %v", r.texts, blocked)
		}
	})
}

// TestRefusedWithAnotherText: a child that was tried with one text and refused with another one
// says nothing of the first text when it is taken.
func TestRefusedWithAnotherText(t *testing.T) {
	r, now := noRetries(), time.Unix(1000, 0)
	for _, child := range []string{"web-a", "web-b"} {
		r.refuse(child, "quota", false, false, now)
	}
	r.refuse("web-c", "port", false, false, now)
	now = now.Add(r.wait(now))
	if due := r.due(map[string]bool{"web-a": true, "web-b": true, "web-c": false}, now); !slices.Equal(due, []string{"web-a"}) {
		t.Fatalf("%v is tried", due)
	}
	r.refuse("web-a", "port", false, false, now)
	if others := r.take("web-a"); !slices.Equal(others, []string{"web-c"}) {
		t.Errorf("%v follow", others)
	}
}
