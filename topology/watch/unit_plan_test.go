package watch

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// TestUnitPlan goes through what a plan decides, one fact after the other.
func TestUnitPlan(t *testing.T) {
	p := newPlanTest(t)
	p.labels = labels.Set{"k0": "x", "k1": "x", "empty": ""}
	p.name("k0", "empty", "other")
	p.want("the first unit is read before there is a Snapshot", "k0=x", "", false)
	p.complete("k0")
	p.want("it is complete", "k0=x", "k0", true)
	p.name("k0", "k1")
	p.want("another key is not in use before its watch is complete", "k0=x k1=x", "k0", true)
	p.complete("k1")
	p.want("then it is", "k0=x k1=x", "k0 k1", true)

	p.labels = labels.Set{"k0": "y", "k1": "x"}
	p.want("other labels: the old unit stays", "k0=x k0=y k1=x", "k0 k1", true)
	p.wantLabels(labels.Set{"k0": "x", "k1": "x", "empty": ""})
	p.complete("k0")
	p.want("until the new one is complete", "k0=y k1=x", "k0 k1", true)
	p.wantLabels(p.labels)

	p.name("k1")
	p.pass(lingering - 1)
	p.want("a key less: its watch lingers", "k0=y k1=x", "k0 k1", true)
	p.pass(1)
	p.want("and ends", "k1=x", "k1", true)

	p.labels = labels.Set{"k1": "z"}
	p.want("a unit that cannot be read", "k1=x k1=z", "k1", true)
	p.pass(HoldLimit - 1)
	p.want("is waited for", "k1=x k1=z", "k1", true)
	p.pass(1)
	p.want("not for ever", "k1=z", "", true)
	p.wantLabels(p.labels)
	p.labels, p.exists = nil, false
	p.want("this Node is deleted", "", "", true)
}

// TestFirstLabelsWait: without any Snapshot the Nodes of a unit are waited for, but not long on a
// machine that has no rules yet.
func TestFirstLabelsWait(t *testing.T) {
	for _, test := range []struct {
		written bool
		limit   time.Duration
	}{{false, bootLimit}, {true, HoldLimit}} {
		p := newPlanTest(t)
		asked := 0
		p.written = func() bool { asked++; return test.written }
		p.labels = labels.Set{"k": "x"}
		p.name("k")
		p.want("a unit that cannot be read", "k=x", "", false)
		p.pass(bootLimit - 1)
		p.want("is waited for", "k=x", "", false)
		p.pass(test.limit - bootLimit)
		p.want("until the limit", "k=x", "", false)
		if at := p.plan.deadline(); at.IsZero() || at != time.Unix(1, 0).Add(test.limit) && test.limit == bootLimit {
			t.Errorf("the plan wakes at %v, want it at the limit of %v", at, test.limit)
		}
		p.pass(1)
		p.want("then it has no Nodes", "k=x", "", true)
		if asked != 1 {
			t.Errorf("the kernel was asked %d times, want once", asked)
		}
		p.labels = labels.Set{"k": "y"}
		p.next()
		p.pass(HoldLimit - 1)
		p.next()
		p.wantLabels(labels.Set{"k": "x"})
	}
}

// TestUnitPlanWatchesAll: above the bound one watch takes all Nodes. The others stay until it is
// complete, and it stays until they are.
func TestUnitPlanWatchesAll(t *testing.T) {
	p := newPlanTest(t)
	p.labels = labels.Set{}
	var names []string
	for i := range unitsMax + 1 {
		names = append(names, string(rune('a'+i)))
		p.labels[names[i]] = "x"
	}
	few, units := names[:unitsMax], "a=x b=x c=x d=x e=x f=x g=x h=x"
	p.name(few...)
	p.want("as many as the bound: one after the other, because their sizes are not known", "a=x", "", false)
	for range few {
		p.complete(few[:len(p.plan.watches)]...)
		p.next()
	}
	p.want("complete", units, "a b c d e f g h", true)
	p.name(names...)
	p.want("one more", "every "+units, "a b c d e f g h", true)
	p.pass(2 * lingering)
	p.want("as long as it takes", "every "+units, "a b c d e f g h", true)
	p.completed[unit{}] = true
	p.want("all Nodes are known", "every "+units, "all", true)
	p.pass(lingering)
	p.want("the units end", "every", "all", true)
	p.name(few...)
	p.want("one less", "every "+units, "all", true)
	p.pass(2 * lingering)
	p.want("as long as it takes", "every "+units, "all", true)
	p.complete(few...)
	p.want("complete again", "every "+units, "all", true)
	p.pass(lingering)
	p.want("the units alone", units, "a b c d e f g h", true)
}

// TestLargeUnits: if several units hold many Nodes, one watch takes all Nodes, and goes on after
// the others have ended. One unit stays one, however large.
func TestLargeUnits(t *testing.T) {
	p := newPlanTest(t)
	p.size = func(u unit) int { return unitNodesMax }
	p.labels = labels.Set{"os": "x", "arch": "x"}
	p.name("os")
	p.want("one unit", "os=x", "", false)
	p.complete("os")
	p.want("one large unit", "os=x", "os", true)
	p.name("os", "arch")
	p.want("another one", "arch=x os=x", "os", true)
	p.complete("arch")
	p.want("it is large too", "every arch=x os=x", "arch os", true)
	p.completed[unit{}] = true
	p.pass(lingering)
	p.want("one watch instead", "every", "all", true)
	p.pass(3 * lingering)
	p.want("for as long as both are named", "every", "all", true)
	p.name("arch")
	p.want("one key less", "every arch=x", "all", true)
	p.complete("arch")
	p.pass(lingering)
	p.want("one unit again", "arch=x", "arch", true)
}

// TestPlanWithoutNode: without a Node of its own, a program has no Snapshot before all Nodes are
// read, whatever Services name.
func TestPlanWithoutNode(t *testing.T) {
	p := newPlanTest(t)
	p.exists, p.nodeless = false, true
	p.name()
	p.want("no key is named", "every", "", false)
	p.name("k")
	p.pass(bootLimit - 1)
	p.want("a key is named", "every", "", false)
	p.completed[unit{}] = true
	p.want("all Nodes are read", "every", "all", true)
	p.pass(3 * lingering)
	p.want("they stay watched", "every", "all", true)
}

// TestKeysOfAllNodes: if a Service names several keys that all Nodes share, all Nodes are read
// twice, not once for each key. Their sizes stay known: when they are named again, all Nodes are
// read once.
func TestKeysOfAllNodes(t *testing.T) {
	p := newPlanTest(t)
	p.size = func(unit) int { return 5 * unitNodesMax }
	p.labels = labels.Set{"unit": "x"}
	keys := []string{"a", "b", "c", "d", "e", "f", "g"}
	for _, key := range keys {
		p.labels[key] = "linux"
	}
	begun := map[unit]int{}
	settle := func() {
		for range 2 * len(keys) {
			before := p.plan.watches
			p.next()
			for u := range p.plan.watches {
				if _, ran := before[u]; !ran {
					begun[u]++
				}
				p.completed[u] = true
			}
		}
	}
	p.name(keys...)
	settle()
	if want := map[unit]int{{"a", "linux"}: 1, {}: 1}; !maps.Equal(begun, want) {
		t.Errorf("watches began %v, want %v", begun, want)
	}
	p.name("unit")
	settle()
	p.pass(lingering)
	settle()
	clear(begun)
	p.name(append(keys, "unit")...)
	settle()
	if want := map[unit]int{{}: 1}; !maps.Equal(begun, want) {
		t.Errorf("named again, watches began %v, want %v", begun, want)
	}
}

// TestLostNodeKeepsItsUnits: while this Node is missing in a list, though no event deleted it, its
// labels and watches stay, for as long as the Snapshot is held back.
func TestLostNodeKeepsItsUnits(t *testing.T) {
	p := newPlanTest(t)
	p.labels = labels.Set{"k": "x"}
	p.name("k")
	p.next()
	p.complete("k")
	p.want("at first", "k=x", "k", true)
	p.labels, p.exists, p.lost = nil, false, true
	p.want("lost", "k=x", "k", true)
	p.pass(HoldLimit - 1)
	p.want("for long", "k=x", "k", true)
	p.wantLabels(labels.Set{"k": "x"})
	p.pass(1)
	p.want("not for ever", "", "", true)
	p.wantLabels(nil)
}

// TestNamesThatComeAndGo: keys that are named for a moment, one after the other, cause no more
// watches than the bound.
func TestNamesThatComeAndGo(t *testing.T) {
	p := newPlanTest(t)
	p.labels = labels.Set{}
	for i := range 5 * unitsMax {
		p.labels[string(rune('A'+i))] = "x"
	}
	begun := map[unit]bool{}
	for key := range p.labels {
		p.name(key)
		for range 2 {
			p.next()
			for u := range p.plan.watches {
				begun[u] = true
				p.completed[u] = true
			}
		}
	}
	if len(begun) != unitsMax+1 || !begun[unit{}] {
		t.Errorf("%d watches began, want %d and one for all Nodes", len(begun), unitsMax)
	}
}

// planTest is a plan and its facts.
type planTest struct {
	*testing.T
	facts
	plan      unitPlan
	completed map[unit]bool
}

func newPlanTest(t *testing.T) *planTest {
	p := &planTest{T: t, completed: map[unit]bool{}}
	p.exists, p.written = true, func() bool { return false }
	p.facts.complete = func(u unit) bool { return p.completed[u] }
	p.size = func(unit) int { return 1 }
	p.now = time.Unix(1, 0)
	return p
}

func (p *planTest) name(keys ...string) {
	p.named = func(key string) bool { return slices.Contains(keys, key) }
}

// next plans. A watch that ended is not complete when it runs again.
func (p *planTest) next() {
	p.plan = p.plan.next(p.facts)
	maps.DeleteFunc(p.completed, func(u unit, _ bool) bool { _, runs := p.plan.watches[u]; return !runs })
}

// complete completes the watches for the latest labels.
func (p *planTest) complete(keys ...string) {
	for _, key := range keys {
		p.completed[unit{key, p.labels[key]}] = true
	}
}

// pass lets time pass, after the facts of now.
func (p *planTest) pass(d time.Duration) {
	p.next()
	p.now = p.now.Add(d)
}

// want compares watches, complete keys ("all" = every Node is known), and whether there is a
// Snapshot.
func (p *planTest) want(when, watches, keys string, whole bool) {
	p.Helper()
	p.next()
	var running []string
	for _, u := range slices.SortedFunc(maps.Keys(p.plan.watches), compareUnits) {
		running = append(running, cmp.Or(u.selector(), "every"))
	}
	complete := "all"
	if watched := p.plan.watched(); watched != nil {
		complete = strings.Join(slices.Sorted(maps.Keys(watched)), " ")
	}
	if got := strings.Join(running, " "); got != watches || complete != keys || p.plan.whole != whole {
		p.Errorf("%s: watches %q, complete %q, whole %v; want %q, %q, %v", when, got, complete, p.plan.whole, watches, keys, whole)
	}
}

func (p *planTest) wantLabels(want labels.Set) {
	p.Helper()
	if p.next(); !maps.Equal(p.plan.labels, want) {
		p.Errorf("labels %v are in force, want %v", p.plan.labels, want)
	}
}
