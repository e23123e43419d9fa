package expand

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	v1 "gridproxy/controller/api/v1"

	"pgregory.net/rapid"
)

// maxStatusSize is what a status may take of an object, in bytes of JSON.
const maxStatusSize = 300_000

// crowd is a Grid with many units. Some are refused with long answers, stuck or lost.
type crowd struct {
	units, width int    // how many, and the length of their values
	words        string // of an answer
	every        int    // one unit of so many is refused
	templates    int    // that no unit uses
	prune        bool
	lost         int
}

func (w crowd) cluster(t tester) *cluster {
	c := newCluster(t)
	for i := range w.units {
		c.appear(fmt.Sprintf("%0*d", w.width, i))
	}
	n := 0
	c.refuse = func(s Apply) *Problem {
		if n++; n%w.every != 0 {
			return nil
		}
		return &Problem{ReasonRefused, fmt.Sprintf("%s is refused %d: %s; change the template", s.Child.Name, n%3, w.words)}
	}
	c.grid.Pool, c.grid.AutoPrune = map[string][]byte{}, w.prune
	for i := range w.templates {
		c.grid.Pool[fmt.Sprintf("unused-template-%d", i)] = []byte(deployment)
	}
	c.reconcile()
	for i, name := range c.names() {
		c.objects[name].State, _ = json.Marshal(map[string]string{"message": w.words[:min(len(w.words), 300)]})
		if i%7 == 0 {
			c.objects[name].Stalled = w.words
		}
	}
	c.vanish(slices.Sorted(maps.Keys(c.units))[:w.lost]...)
	c.reconcile()
	return c
}

// TestStatusHasABound: however many units and problems there are, a status is
// small, counts all units, and leaves out healthy ones first.
func TestStatusHasABound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letter := rapid.SampledFrom([]string{"x", "<", `"`, "\n", "京", "\xff"}).Draw(t, "letter")
		w := crowd{
			units: rapid.SampledFrom([]int{1, 20, 50, 200}).Draw(t, "units"), width: rapid.SampledFrom([]int{5, 63}).Draw(t, "length of values"),
			words: strings.Repeat(letter, rapid.SampledFrom([]int{1, 256, 1500, 64 << 10}).Draw(t, "length of an answer")),
			every: rapid.SampledFrom([]int{1, 2, 100, 10000}).Draw(t, "units for one that is refused"),
			prune: rapid.Bool().Draw(t, "prune"), templates: rapid.SampledFrom([]int{0, 1000}).Draw(t, "templates"),
		}
		w.lost = rapid.IntRange(0, w.units).Draw(t, "lost units")
		checkBound(t, w.cluster(t))
	})
}

// TestStatusOfThousandsOfUnits is the same for the largest Grids.
func TestStatusOfThousandsOfUnits(t *testing.T) {
	answer := strings.Repeat(`<&>"`, 2<<10)
	checkBound(t, crowd{units: 5000, width: 63, words: answer, every: 1, templates: 1000, prune: true, lost: 100}.cluster(t))
	checkBound(t, crowd{units: 1500, width: 63, words: answer, every: 500, templates: 1000, lost: 2}.cluster(t))
}

func checkBound(t interface{ Errorf(string, ...any) }, c *cluster) {
	observed := c.observe(nil)
	s := v1.DeploymentGridStatus{WorkloadGridStatus: c.status, States: States(observed)}
	if text, err := json.Marshal(s); err != nil || len(text) > maxStatusSize {
		t.Errorf("the status has %d bytes, %v", len(text), err)
	}
	a := assess(observed)
	phases := map[v1.UnitPhase]int{}
	for _, u := range a.units {
		phases[a.row(u).Phase]++
	}
	if int(s.FailedUnits) != phases[v1.UnitFailed] || int(s.LostUnits) != phases[v1.UnitLost] || len(s.Units)+int(s.OmittedUnits) != len(a.units) {
		t.Errorf("%d failed, %d lost, %d rows, %d omitted, and the units are %v", s.FailedUnits, s.LostUnits, len(s.Units), s.OmittedUnits, phases)
	}
	shown := map[v1.UnitPhase]int{}
	for i, r := range s.Units {
		shown[r.Phase]++
		if len(r.Message) > rowMessageMax {
			t.Errorf("the row of a unit that is %s has a message of %d bytes", r.Phase, len(r.Message))
		}
		if i > 0 && urgency(s.Units[i-1]) > urgency(r) {
			t.Errorf("row %d is %s, and the one before is %s", i, r.Phase, s.Units[i-1].Phase)
		}
	}
	if shown[v1.UnitReady] > 0 && shown[v1.UnitFailed]+shown[v1.UnitLost] < phases[v1.UnitFailed]+phases[v1.UnitLost] {
		t.Errorf("%v are shown of %v", shown, phases)
	}
	for _, condition := range s.Conditions {
		if len(condition.Message) > conditionMessageMax {
			t.Errorf("%s has a message of %d bytes", condition.Type, len(condition.Message))
		}
	}
}

// TestStatesOfUnhealthyUnitsComeFirst where there is no room for all.
func TestStatesOfUnhealthyUnitsComeFirst(t *testing.T) {
	c := newCluster(t)
	for i := range 500 {
		c.appear(fmt.Sprintf("u%03d", i))
	}
	c.reconcile()
	for _, l := range c.objects {
		l.State = fmt.Appendf(nil, `{"text":%q}`, strings.Repeat("x", 500))
	}
	c.objects["web-u499"].Available = 0
	states := States(c.observe(nil))
	if _, found := states["u499"]; !found || len(states) < 100 || len(states) > 200 {
		t.Errorf("%d states, with that of u499: %t", len(states), found)
	}
	check(t, "the first that is left out", slices.Sorted(maps.Keys(states))[len(states)-2], fmt.Sprintf("u%03d", len(states)-2))
}

// TestPruningStopsWhereTheStatusIsFull: what is removed and not named could be removed again and
// again.
func TestPruningStopsWhereTheStatusIsFull(t *testing.T) {
	c := newCluster(t, "a")
	c.grid.AutoPrune, c.grid.Pool = true, map[string][]byte{}
	for i := range 1000 {
		c.grid.Pool[fmt.Sprintf("template-%03d", i)] = []byte(deployment)
	}
	c.reconcile()
	pruned := len(c.status.PrunedTemplates)
	if left := len(c.grid.Pool); pruned < 100 || left != 1000-pruned {
		t.Errorf("%d templates are named, and %d are left of 1000", pruned, left)
	}
	c.expect()
}

// TestFailures: units with the same problem are one Failure, although the messages name the units.
func TestFailures(t *testing.T) {
	row := func(value, reason, message string) v1.UnitStatus {
		return v1.UnitStatus{Value: value, Child: "web-" + value, Reason: reason, Message: message}
	}
	got := Failures([]v1.UnitStatus{
		row("a", "Refused", "web-a is forbidden"), row("bb", "Refused", "web-bb is forbidden"), row("c", "Refused", "web-c is too large"),
		row("d", "Stalled", `ReplicaSet "web-d-5c9f" is stuck`), row("e", "Stalled", `ReplicaSet "web-e-77d4b" is stuck`),
		row("f", "Stalled", `ReplicaSet "web-f-77d4b" is stuck`),
		row("g", "UnitLost", "no Node has zone=g"), row("h", "UnitLost", "no Node has zone=h"), row("i", "Other", "web-a is forbidden"),
	})
	var text []string
	for _, f := range got {
		text = append(text, fmt.Sprintf("%s %v %s", f.Reason, f.Values, f.Message))
	}
	check(t, "failures", strings.Join(text, "\n"), strings.Join([]string{
		`Stalled [d e f] ReplicaSet "web-d-5c9f" is stuck`, "Refused [a bb] web-a is forbidden", "UnitLost [g h] no Node has zone=g",
		"Refused [c] web-c is too large", "Other [i] web-a is forbidden",
	}, "\n"))
	check(t, "explained", explained(got), `d, e, f: ReplicaSet "web-d-5c9f" is stuck; a, bb: web-a is forbidden; g, h: no Node has zone=g; and 2 other problems`)
	check(t, "many units", Failure{Values: strings.Fields("a b c d e")}.Units(), "a, b, c and 2 more")
}
