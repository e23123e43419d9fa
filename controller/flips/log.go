package flips

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"gridproxy/topology/excerpt"
)

const (
	// Default is how many new values of a key a Node may bring within a Window.
	Default = 5
	// Window is for how long a value counts that a Node has brought.
	Window = 24 * time.Hour
	// reportPause is how often the same Node is reported at most.
	reportPause = time.Hour
)

// Log is which Nodes have brought new values of one label key, or of several keys together. The
// zero Log is empty. A Log is never changed: Admit returns another one. It can be lost: then each
// Node may bring as many again.
type Log struct {
	key   string
	nodes map[string]node // by name
}

type node struct {
	brought  map[string]time.Time // when, by value; at most as many as allowed
	reported time.Time
}

// Refusal is a new value that a Node may not bring now.
type Refusal struct {
	Node, Value string
	Until       time.Time // when it may
}

// Message returns the text of an Event: what has been refused, and what to do. what names the
// value's key.
func (r Refusal) Message(what string, allowed int) string {
	return fmt.Sprintf("Node %s has brought %d new values of %s within %s, as many as --new-units-per-node allows; %s is no unit until %s: "+
		"find out who labels the Node, or raise the flag", r.Node, allowed, what, Window, excerpt.Quoted(r.Value), r.Until.UTC().Format(time.RFC3339))
}

// Admission is what Admit returns.
type Admission struct {
	Log Log
	// Refused are the values that no Node may bring now, with the time when one may.
	Refused map[string]time.Time
	// Report are the refusals that are due to be reported: of each Node one within reportPause.
	Report []Refusal
}

// Next returns when the first refused value may be brought; zero if none is refused.
func (a Admission) Next() time.Time {
	if len(a.Refused) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(slices.Collect(maps.Values(a.Refused)), time.Time.Compare)
}

// Admit decides which new values of a key make a unit. fresh has the Nodes that carry each of
// them, sorted; a value is new if there is no unit of it. A value that one of its Nodes has
// brought before is admitted. Otherwise the first Node with room brings it. allowed is how many
// each Node may bring within a Window; 0: any number. With another key than before, nothing
// counts yet.
func (l Log) Admit(key string, fresh map[string][]string, allowed int, now time.Time) Admission {
	if l.key != key || allowed == 0 {
		l = Log{}
	}
	if len(fresh) == 0 || allowed == 0 {
		return Admission{Log: l}
	}
	a := Admission{Log: Log{key: key, nodes: l.current(now)}, Refused: map[string]time.Time{}}
	for _, value := range slices.Sorted(maps.Keys(fresh)) {
		until := a.Log.bring(value, fresh[value], allowed, now)
		if until.IsZero() {
			continue
		}
		a.Refused[value] = until
		for _, name := range fresh[value] {
			if n := a.Log.nodes[name]; n.reported.IsZero() {
				n.reported = now
				a.Log.nodes[name] = n
				a.Report = append(a.Report, Refusal{Node: name, Value: value, Until: until})
			}
		}
	}
	return a
}

// current returns what still counts. A time in the future is from a clock that was wrong.
func (l Log) current(now time.Time) map[string]node {
	isWithin := func(at time.Time, age time.Duration) bool { return !at.After(now) && now.Sub(at) < age }
	nodes := make(map[string]node, len(l.nodes))
	for name, n := range l.nodes {
		n.brought = maps.Clone(n.brought)
		maps.DeleteFunc(n.brought, func(_ string, at time.Time) bool { return !isWithin(at, Window) })
		if !isWithin(n.reported, reportPause) {
			n.reported = time.Time{}
		}
		if len(n.brought) > 0 || !n.reported.IsZero() {
			nodes[name] = n
		}
	}
	return nodes
}

// bring records which Node brings the value and returns zero, or returns when one has room.
func (l Log) bring(value string, names []string, allowed int, now time.Time) (until time.Time) {
	bring := func(name string) {
		n := l.nodes[name]
		if n.brought == nil {
			n.brought = map[string]time.Time{}
		}
		n.brought[value] = now // a value that it has brought before counts from now on
		l.nodes[name] = n
	}
	for _, name := range names {
		if _, before := l.nodes[name].brought[value]; before {
			bring(name)
			return time.Time{}
		}
	}
	for _, name := range names {
		if len(l.nodes[name].brought) < allowed {
			bring(name)
			return time.Time{}
		}
		room := slices.MinFunc(slices.Collect(maps.Values(l.nodes[name].brought)), time.Time.Compare).Add(Window)
		if until.IsZero() || room.Before(until) {
			until = room
		}
	}
	return until
}
