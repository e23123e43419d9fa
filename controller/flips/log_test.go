package flips

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func start() time.Time { return time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC) }

// cluster is Nodes that take values, and the units that were made.
type cluster struct {
	now    time.Time
	values map[string]string // by Node
	units  map[string]bool
	log    Log
}

func (w *cluster) step(t interface{ Fatal(...any) }, allowed int) Admission {
	fresh := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(w.values)) {
		if value := w.values[name]; !w.units[value] {
			fresh[value] = append(fresh[value], name)
		}
	}
	before := fmt.Sprint(w.log)
	a := w.log.Admit("site", fresh, allowed, w.now)
	if fmt.Sprint(w.log) != before {
		t.Fatal("Admit has changed the Log")
	}
	for value := range fresh {
		if _, refused := a.Refused[value]; !refused {
			w.units[value] = true
		}
	}
	w.log = a.Log
	return a
}

// TestBound: whatever Nodes do, the units that they have made within a Window are at most as many
// as all of them together are allowed, and a Node that has brought none is admitted immediately.
func TestBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		allowed := rapid.IntRange(1, 5).Draw(t, "allowed")
		w := &cluster{now: start(), values: map[string]string{}, units: map[string]bool{"home": true}}
		made := map[string]time.Time{} // when a unit was made first within a Window
		evil := rapid.IntRange(1, 3).Draw(t, "Nodes")
		for i := range rapid.IntRange(1, 100).Draw(t, "turns") {
			w.now = w.now.Add(time.Duration(rapid.IntRange(0, 4*3600).Draw(t, "seconds")) * time.Second)
			for n := range evil {
				w.values[fmt.Sprint("evil-", n)] = rapid.SampledFrom([]string{"home", "a", "b", fmt.Sprint("new-", i), fmt.Sprint("new-", i, "-", n)}).Draw(t, "value")
			}
			units := maps.Clone(w.units)
			a := w.step(t, allowed)
			for value := range w.units {
				if at, before := made[value]; !units[value] && (!before || w.now.Sub(at) >= Window) {
					made[value] = w.now
				}
			}
			within := 0
			for _, at := range made {
				if w.now.Sub(at) < Window {
					within++
				}
			}
			if within > evil*allowed {
				t.Fatalf("%d Nodes have brought %d units within a Window, allowed are %d each", evil, within, allowed)
			}
			if next := a.Next(); len(a.Refused) > 0 && !next.After(w.now) {
				t.Fatalf("at %s the refused values wait until %s", w.now, next)
			}
			if rapid.IntRange(0, 3).Draw(t, "lose units") == 0 { // as after the grace
				delete(w.units, "a")
			}
		}
		// Evil Nodes carry the values of a new site too.
		w.values["z-honest"] = "site"
		for n := range evil {
			w.values[fmt.Sprint("evil-", n)] = "site"
		}
		if w.step(t, allowed); !w.units["site"] {
			t.Fatal("a new site is refused")
		}
	})
}

// TestFlips: a Node that takes a thousand values brings five, is reported once an hour, and has
// room again as soon as Next says so.
func TestFlips(t *testing.T) {
	w := &cluster{now: start(), values: map[string]string{}, units: map[string]bool{}}
	var reports int
	for i := range 1000 {
		w.values["evil"] = fmt.Sprint(i)
		reports += len(w.step(t, 5).Report)
		w.now = w.now.Add(10 * time.Second) // 2 h 47 min in all
	}
	if len(w.units) != 5 || reports != 3 {
		t.Fatalf("%d units, %d reports", len(w.units), reports)
	}
	w.now = w.step(t, 5).Next()
	if w.step(t, 5); len(w.units) != 6 || !w.now.Equal(start().Add(Window)) {
		t.Fatalf("at %s there are %d units", w.now, len(w.units))
	}
	w.now = w.now.Add(-365 * 24 * time.Hour) // a clock that is set back
	w.values["evil"] = "back"
	if w.step(t, 5); !w.units["back"] {
		t.Fatal("times in the future count")
	}
}

func TestAdmit(t *testing.T) {
	full := Log{}.Admit("site", map[string][]string{"a": {"n"}, "b": {"m", "n"}}, 1, start())
	if len(full.Refused) > 0 || len(full.Report) > 0 || !full.Next().IsZero() {
		t.Fatalf("two Nodes may not bring a value each: %+v", full)
	}
	for name, test := range map[string]struct {
		key     string
		fresh   map[string][]string
		allowed int
		refused string
	}{
		"again":             {"site", map[string][]string{"a": {"n"}, "b": {"m"}}, 1, ""},
		"one more":          {"site", map[string][]string{"c": {"n"}}, 1, "c"},
		"one more, allowed": {"site", map[string][]string{"c": {"n"}}, 2, ""},
		"any number":        {"site", map[string][]string{"c": {"n"}}, 0, ""},
		"with a Node":       {"site", map[string][]string{"c": {"n", "o"}}, 1, ""},
		"another key":       {"zone", map[string][]string{"c": {"n"}}, 1, ""},
	} {
		a := full.Log.Admit(test.key, test.fresh, test.allowed, start().Add(time.Hour))
		if got := slices.Collect(maps.Keys(a.Refused)); len(got) > 1 || len(got) == 1 && got[0] != test.refused || len(got) == 0 && test.refused != "" {
			t.Errorf("%s: refused are %q, want %q", name, got, test.refused)
		}
	}
}
