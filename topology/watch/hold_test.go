package watch

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"
)

// look is one Snapshot: after how long, and what was listed.
type look struct {
	after  time.Duration
	listed Listed
	held   bool // wanted
}

func TestHoldDecides(t *testing.T) {
	const s, m = time.Second, time.Minute
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	all, none := Listed{Service: true, Slice: true}, Listed{}
	without := func(change func(*Listed)) Listed { l := all; change(&l); return l }
	noService, noSlice := without(func(l *Listed) { l.Service = false }), without(func(l *Listed) { l.Slice = false })
	noNodes := without(func(l *Listed) { l.NodesLost = true })
	for _, test := range []struct {
		name    string
		written bool
		looks   []look
	}{
		{"a cluster without it, on a new node", false, []look{{0, none, false}, {m, none, false}, {10 * m, none, false}}},
		{"it was seen, and is gone", false, []look{{0, all, false}, {m, none, true}, {6*m - 1, none, true}, {6 * m, none, false}, {60 * m, none, false}}},
		{"only the Service is gone", false, []look{{0, all, false}, {m, noService, true}, {6 * m, noService, false}}},
		{"it comes back", false, []look{{0, all, false}, {m, noService, true}, {m + 10*s, all, false}, {m + 20*s, all, false}}},
		{"it goes again after it came back", false, []look{
			{0, all, false}, {m, noService, true}, {3 * m, all, false}, {5 * m, noService, true}, {10*m - 1, noService, true}, {10 * m, noService, false},
		}},
		{"it goes again after the limit was over", false, []look{{0, all, false}, {m, none, true}, {6 * m, none, false}, {7 * m, all, false}, {8 * m, none, true}}},
		{"the limit is one for all that is missing", false, []look{{0, all, false}, {m, noSlice, true}, {2 * m, noNodes, true}, {3 * m, none, true}, {6 * m, none, false}}},
		{"the kernel holds rules of ours", true, []look{{0, none, true}, {5*m - 1, none, true}, {5 * m, none, false}, {20 * m, none, false}}},
		{"rules of ours, and it appears late", true, []look{{0, none, true}, {s, Listed{Service: true}, false}}},
		{"EndpointSlices are listed first", false, []look{{0, all, false}, {s, noSlice, true}, {2 * s, all, false}}},
		{"Nodes are listed first", false, []look{{0, all, false}, {s, noNodes, true}}},
		{"an API server that makes no EndpointSlice", false, []look{{0, noSlice, false}, {s, noSlice, false}, {2 * s, all, false}, {3 * s, noSlice, true}}},
		{"Nodes come back", false, []look{{0, all, false}, {s, noNodes, true}, {2 * s, all, false}, {3 * s, noNodes, true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, good := Hold{limit: HoldLimit}, (*topology.Snapshot)(nil)
			for i, l := range test.looks {
				f := Facts{Now: begin.Add(l.after), Snapshot: &topology.Snapshot{}, Listed: l.listed, Written: func() bool { return test.written }}
				after, s, wake := h.Next(f)
				if !l.held {
					good = f.Snapshot
				}
				if after.held != l.held || s != good || wake.After(f.Now) != l.held {
					t.Errorf("look %d after %s: held %v until %s, want %v", i, l.after, after.held, wake, l.held)
				}
				h = after
			}
		})
	}
}

// TestHoldNodesOnly: a proxy beside another one is not handed default/kubernetes, and expects its
// Nodes.
func TestHoldNodesOnly(t *testing.T) {
	s := newScriptedAPI()
	h := newChain(Config{Trial: true, Written: func() bool { return true }}, s)
	s.give(listing("default/web"))
	for _, s.nodesLost = range []bool{false, true} {
		if _, _ = h.Snapshot(); h.Holding() != s.nodesLost {
			t.Errorf("Nodes lost %v: held back %v", s.nodesLost, h.Holding())
		}
	}
}

func servicesOf(s topology.Snapshot) string {
	var all []string
	for _, svc := range s.Services {
		all = append(all, svc.Namespace+"/"+svc.Name)
	}
	return strings.Join(all, " ")
}

// TestHold: while a Snapshot is held back the one from before stays, and each transition is
// logged once.
func TestHold(t *testing.T) {
	synctest.Test(t, testHold)
}

func testHold(t *testing.T) {
	source := newScriptedAPI()
	var log bytes.Buffer
	h := newChain(Config{
		Log:     slog.New(slog.NewTextHandler(&log, nil)),
		Written: func() bool { t.Error("the kernel is asked although the Service is there"); return true },
	}, source)
	expect := func(when, want string, whole, holding bool, lines int) {
		t.Helper()
		for range 2 {
			s, is := h.Snapshot()
			if servicesOf(s) != want || is != whole || h.Holding() != holding || strings.Count(log.String(), "\n") != lines {
				t.Fatalf("%s: %q, whole %v, holding %v; want %q, %v, %v and %d lines:\n%s", when, servicesOf(s), is, h.Holding(), want, whole, holding, lines, log.String())
			}
		}
	}
	expect("before anything was read", "", false, false, 0)
	source.give(listing("a/web", "default/kubernetes", "z/web"))
	expect("at first", "a/web default/kubernetes z/web", true, false, 0)
	source.give(listing("a/other"))
	expect("without it", "a/web default/kubernetes z/web", true, true, 1)
	source.give(listing())
	time.Sleep(HoldLimit - 1)
	expect("shortly before the limit", "a/web default/kubernetes z/web", true, true, 1)
	source.give(listing("default/kubernetes"))
	expect("when it is back", "default/kubernetes", true, false, 2)
	source.give(listing("default/kubernetes2", "kubernetes/default"))
	expect("without it again", "default/kubernetes", true, true, 3)
	time.Sleep(HoldLimit)
	expect("after the limit", "default/kubernetes2 kubernetes/default", true, false, 4)
}

// TestHoldAtStart: before the first Snapshot there is none from before, so that nothing is
// written. The kernel is asked once. The end of the limit is a change.
func TestHoldAtStart(t *testing.T) {
	for _, written := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source, asked := newScriptedAPI(), 0
			h := startChain(t, Config{Written: func() bool { asked++; return written }}, source)
			source.give(listing("a/web"))
			if s, whole := h.Snapshot(); whole == written || whole != (servicesOf(s) == "a/web") {
				t.Errorf("rules of ours %v: %q, whole %v", written, servicesOf(s), whole)
			}
			wantChanged(t, h, true)
			time.Sleep(HoldLimit - 1)
			wantChanged(t, h, false)
			time.Sleep(time.Nanosecond)
			wantChanged(t, h, written) // the end of the limit
			if s, whole := h.Snapshot(); !whole || servicesOf(s) != "a/web" || asked != 1 {
				t.Errorf("rules of ours %v, after the limit: %q, whole %v, asked %d times", written, servicesOf(s), whole, asked)
			}
		})
	}
}
