package delivery

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestKeptUntilKnown: a Grid that is withdrawn leaves when Flux knows it, and so can prune it.
func TestKeptUntilKnown(t *testing.T) {
	pos, till, other := grid("shop", "pos", "1"), grid("shop", "till", "2"), grid("shop", "till", "3")
	for name, c := range map[string]struct {
		change func(*Observed)
		want   []string
		remove bool
	}{
		"Flux does not know it": {change: func(*Observed) {}, want: []string{"pos", "till"}},
		"Flux knows it":         {change: func(o *Observed) { o.Applied = map[string]Applied{"shop": {Known: map[Key]bool{till.Key: true}}} }, want: []string{"pos"}},
		"it is gone":            {change: func(o *Observed) { delete(o.Grids, till.Key) }, want: []string{"pos"}},
		"Flux may be making it": {change: func(o *Observed) {
			o.Grids = map[Key]Live{}
			o.Applied = map[string]Applied{"shop": {Busy: true}}
		}, want: []string{"pos", "till"}},
		"Flux does not react": {change: func(o *Observed) {
			o.Grids = map[Key]Live{}
			o.Applied = map[string]Applied{"shop": {Busy: true, Idle: true}}
		}, want: []string{"pos"}},
		"it has lost its annotation": {change: func(o *Observed) { o.Grids[till.Key] = Live{} }, want: []string{"pos", "till"}},
		"it is another hub's":        {change: func(o *Observed) { o.Grids[till.Key] = Live{From: "hub-2/2"} }, want: []string{"pos"}},
		"another one gets its name":  {change: func(o *Observed) { o.Bundles["books"] = Bundle{Objects: []Object{other}} }, want: []string{"pos"}},
		"it is the last one":         {change: func(o *Observed) { o.Bundles["shop"] = Bundle{}; o.Fleet = fleet("1", "2") }, want: []string{"till"}},
		"it is the last one, and out": {change: func(o *Observed) {
			o.Bundles["shop"], o.Fleet, o.Grids = Bundle{}, fleet("1", "2"), map[Key]Live{}
		}, remove: true},
		"the removal has begun": {change: func(o *Observed) { o.Copies["shop"] = Bundle{Objects: []Object{pos, till}, Removing: true} }, remove: true},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed(pos)
			o.Fleet, o.Copies["shop"] = fleet("2"), Bundle{Objects: []Object{pos, till}}
			o.Grids[till.Key] = Live{From: till.From}
			c.change(&o)
			d := Decide(o)
			var got []string
			for _, g := range d.Apply["shop"] {
				got = append(got, g.Name)
			}
			if diff := cmp.Diff(c.want, got); diff != "" || slices.Contains(d.Remove, "shop") != c.remove {
				t.Errorf("removed: %v, applied (-want +got):\n%s", d.Remove, diff)
			}
		})
	}
}

// TestKeptAsItLives: a Grid that waits until Flux knows it cannot keep the set from being applied,
// and one that Flux leaves out is reported.
func TestKeptAsItLives(t *testing.T) {
	till := grid("shop", "till", "2")
	o := observed(grid("shop", "pos", "1"))
	o.Fleet, o.Copies["shop"] = fleet("2"), Bundle{Objects: []Object{till}}
	o.Grids[till.Key] = Live{From: till.From, Revision: "r0", JSON: func() []byte { return []byte("as it lives") }}
	kept := func() Object { return Decide(o).Apply["shop"][1] }
	if got := kept(); string(got.JSON) != string(till.JSON) {
		t.Errorf("%s is applied", got.JSON)
	}
	o.Applied = map[string]Applied{"shop": {Failure: "field not declared in schema"}}
	if got := kept(); string(got.JSON) != "as it lives" || got.Revision != "r0" {
		t.Errorf("%s of revision %s is applied", got.JSON, got.Revision)
	}
	o.Applied = map[string]Applied{"shop": {Known: map[Key]bool{}}}
	if got := reasonOf(t, Decide(o), "till"); got != ReasonNotPruned {
		t.Errorf("it is reported as %q", got)
	}
}

// TestStoppedRemoval: while a cluster is suspended a removal that has begun does not go on, and its
// Kustomization ends without removing anything. What still lives is applied again then, and nothing
// else.
func TestStoppedRemoval(t *testing.T) {
	pos, till := grid("shop", "pos", "1"), grid("shop", "till", "2")
	living := func(from string) Live { return Live{From: from, JSON: func() []byte { return nil }} }
	ending := map[string]Applied{"shop": {Deleting: true}}
	for name, c := range map[string]struct {
		suspended, stopped, away bool
		applied                  map[string]Applied
		alive                    map[Key]Live
		want                     string
	}{
		"suspended":                         {suspended: true, applied: ending, want: "stop"},
		"suspended, and it has ended":       {suspended: true, stopped: true, want: "stop"},
		"the hub is away":                   {away: true, applied: ending, want: "remove"},
		"the hub is away after it stopped":  {away: true, stopped: true, want: "stop"},
		"it goes on, and has not ended yet": {stopped: true, applied: ending, want: "stop"},
		"it has ended":                      {stopped: true, alive: map[Key]Live{till.Key: living(till.From), pos.Key: {From: pos.From}}, want: "revive till"},
		"it has ended, another is there":    {stopped: true, alive: map[Key]Live{till.Key: living("hub-2/2")}, want: "remove"},
		"all are gone":                      {stopped: true, want: "remove"},
		"never stopped":                     {alive: map[Key]Live{till.Key: living(till.From)}, want: "remove"},
	} {
		o := observed()
		o.Fleet = fleet("1", "2")
		o.Fleet.Spec.Suspend = c.suspended
		if c.away {
			o.Fleet, o.Bundles = nil, nil
		}
		o.Copies["shop"] = Bundle{Objects: []Object{pos, till}, Removing: true, Stopped: c.stopped}
		o.Applied = c.applied
		if c.alive != nil {
			o.Grids = c.alive
		}
		d := Decide(o)
		var got []string
		if slices.Contains(d.Stop, "shop") {
			got = append(got, "stop")
		}
		if slices.Contains(d.Remove, "shop") {
			got = append(got, "remove")
		}
		for _, g := range d.Revive["shop"] {
			got = append(got, "revive "+g.Name)
		}
		if diff := cmp.Diff([]string{c.want}, got); diff != "" || len(d.Apply) > 0 {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
