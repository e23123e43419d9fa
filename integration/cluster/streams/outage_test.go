package streams

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/traffic"
)

// outage is a time in which every short connection on a way had to send a packet again. One now and then has to on a
// busy machine; all of them have to where packets are dropped, though TCP hides it from whoever asks.
type outage struct {
	way         traffic.Way
	begin       time.Time
	lasted      time.Duration // from the begin of the first connection to that of the last
	connections int
}

func (o outage) String() string {
	return fmt.Sprintf("%s: from %s on for %s all of %d connections had to send a packet again",
		o.way, o.begin.Format("15:04:05.000"), o.lasted.Round(time.Millisecond), o.connections)
}

// What is an outage: so long, and so many connections in a row. Those that a machine makes up for after it stood still
// begin all at once.
const (
	outageLasts = time.Second
	outageHits  = 5
)

// outages finds them among short connections.
func outages(attempts []traffic.Attempt) []outage {
	attempts = slices.SortedFunc(slices.Values(attempts), func(a, b traffic.Attempt) int { return a.Begin.Compare(b.Begin) })
	var found []outage
	at := map[traffic.Way]outage{}
	end := func(o outage) {
		if o.lasted >= outageLasts && o.connections >= outageHits {
			found = append(found, o)
		}
	}
	for _, a := range attempts {
		o, under := at[a.Way]
		switch {
		case a.Resent == 0:
			end(o)
			delete(at, a.Way)
			continue
		case !under:
			o = outage{way: a.Way, begin: a.Begin}
		}
		o.lasted, o.connections = a.Begin.Sub(o.begin), o.connections+1
		at[a.Way] = o
	}
	for _, o := range at {
		end(o)
	}
	return found
}

// TestOutages: what lasts on one way is found among others that are well, and what comes by chance is not.
func TestOutages(t *testing.T) {
	begin := time.Now()
	const pause = 200 * time.Millisecond
	client := &netns.Namespace{Name: "client"}
	way, other := traffic.Way{From: client, Name: "one"}, traffic.Way{From: client, Name: "another"}
	// on makes a connection on a way for each letter: r had to send a packet again.
	on := func(w traffic.Way, pause time.Duration, letters string) []traffic.Attempt {
		var all []traffic.Attempt
		for i, l := range letters {
			a := traffic.Attempt{Way: w, Begin: begin.Add(time.Duration(i) * pause)}
			if l == 'r' {
				a.Resent = 1
			}
			all = append(all, a)
		}
		slices.Reverse(all) // they are in the order of their ends
		return all
	}
	for name, test := range map[string]struct {
		attempts []traffic.Attempt
		want     int
	}{
		"none":                {on(way, pause, "........"), 0},
		"now and then":        {on(way, pause, "rr.rrrr.rrrrr.rr.r.rrr"), 0},
		"a second":            {on(way, pause, "..rrrrrr.."), 1},
		"on one of two ways":  {append(on(way, pause, "..rrrrrr.."), on(other, pause, "..........")...), 1},
		"on both, in turn":    {append(on(way, pause, ".rrr...."), on(other, pause, "....rrr.")...), 0},
		"until the end":       {on(way, pause, "..rrrrrrrrr"), 1},
		"twice":               {on(way, pause, "rrrrrr.rrrrrrr"), 2},
		"all at once":         {on(way, time.Millisecond, "rrrrrrrrrrrrrrrrrr"), 0},
		"few and far between": {on(way, 2*time.Second, "rrr"), 0},
	} {
		if got := outages(test.attempts); len(got) != test.want {
			t.Errorf("%s: %v, want %d", name, got, test.want)
		}
	}
}
