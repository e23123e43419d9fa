package watch

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	written := expectation{expected: Listed{Service: true}}
	for _, test := range []struct {
		name  string
		start expectation
		looks []look
	}{
		{"a cluster without it, on a new node", expectation{}, []look{{0, none, false}, {m, none, false}, {10 * m, none, false}}},
		{"it was seen, and is gone", expectation{}, []look{{0, all, false}, {m, none, true}, {6*m - 1, none, true}, {6 * m, none, false}, {60 * m, none, false}}},
		{"only the Service is gone", expectation{}, []look{{0, all, false}, {m, noService, true}, {6 * m, noService, false}}},
		{"it comes back", expectation{}, []look{{0, all, false}, {m, noService, true}, {m + 10*s, all, false}, {m + 20*s, all, false}}},
		{"it goes again after it came back", expectation{}, []look{{0, all, false}, {m, noService, true}, {3 * m, all, false}, {5 * m, noService, true}, {10*m - 1, noService, true}, {10 * m, noService, false}}},
		{"it goes again after the limit was over", expectation{}, []look{{0, all, false}, {m, none, true}, {6 * m, none, false}, {7 * m, all, false}, {8 * m, none, true}}},
		{"the limit is one for all that is missing", expectation{}, []look{{0, all, false}, {m, noSlice, true}, {2 * m, noNodes, true}, {3 * m, none, true}, {6 * m, none, false}}},
		{"the kernel holds rules of ours", written, []look{{0, none, true}, {5*m - 1, none, true}, {5 * m, none, false}, {20 * m, none, false}}},
		{"rules of ours, and it appears late", written, []look{{0, none, true}, {s, Listed{Service: true}, false}}},
		{"EndpointSlices are listed first", expectation{}, []look{{0, all, false}, {s, noSlice, true}, {2 * s, all, false}}},
		{"Nodes are listed first", expectation{}, []look{{0, all, false}, {s, noNodes, true}}},
		{"an API server that makes no EndpointSlice", expectation{}, []look{{0, noSlice, false}, {s, noSlice, false}, {2 * s, all, false}, {3 * s, noSlice, true}}},
		{"Nodes come back", expectation{}, []look{{0, all, false}, {s, noNodes, true}, {2 * s, all, false}, {3 * s, noNodes, true}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			state := test.start
			for i, l := range test.looks {
				var held bool
				if state, held = state.next(begin.Add(l.after), l.listed, HoldLimit); held != l.held {
					t.Errorf("look %d after %s: held %v, want %v", i, l.after, held, l.held)
				}
			}
		})
	}
}

// scripted is a Source whose Snapshot a test sets.
type scripted struct {
	now     topology.Snapshot
	whole   bool
	lost    bool // the Nodes
	changed pulse
}

func (s *scripted) Run(ctx context.Context) error       { <-ctx.Done(); return nil }
func (s *scripted) Snapshot() (topology.Snapshot, bool) { return s.now, s.whole }
func (s *scripted) Changed() <-chan struct{}            { return s.changed }

func (s *scripted) set(services ...string) {
	s.now, s.whole = topology.Snapshot{}, true
	for _, full := range services {
		namespace, name, _ := strings.Cut(full, "/")
		s.now.Services = append(s.now.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
}

// Listed is what the Snapshot holds.
func (s *scripted) Listed() Listed {
	return Listed{Service: slices.ContainsFunc(s.now.Services, func(svc *corev1.Service) bool {
		return svc.Namespace+"/"+svc.Name == apiServerKey
	}), NodesLost: s.lost}
}

// TestHoldNodesOnly: a proxy beside another one is not handed default/kubernetes, and expects its
// Nodes.
func TestHoldNodesOnly(t *testing.T) {
	s := &scripted{changed: newPulse()}
	h := NewHold(s, HoldConfig{NodesOnly: true, Written: func() bool { return true }})
	s.set("default/web")
	for lost, held := range map[bool]bool{false: false, true: true} {
		s.lost = lost
		if _, _ = h.Snapshot(); h.Holding() != held {
			t.Errorf("Nodes lost %v: held back %v", lost, h.Holding())
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
	source := &scripted{changed: newPulse()}
	now := time.Now()
	var log bytes.Buffer
	h := NewHold(source, HoldConfig{
		Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(&log, nil)),
		Written: func() bool { t.Error("the kernel is asked although the Service is there"); return true },
	})
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
	source.set("a/web", "default/kubernetes", "z/web")
	expect("at first", "a/web default/kubernetes z/web", true, false, 0)
	source.set("a/other")
	expect("without it", "a/web default/kubernetes z/web", true, true, 1)
	source.set()
	now = now.Add(HoldLimit - 1)
	expect("shortly before the limit", "a/web default/kubernetes z/web", true, true, 1)
	source.set("default/kubernetes")
	expect("when it is back", "default/kubernetes", true, false, 2)
	source.set("default/kubernetes2", "kubernetes/default")
	expect("without it again", "default/kubernetes", true, true, 3)
	now = now.Add(HoldLimit)
	expect("after the limit", "default/kubernetes2 kubernetes/default", true, false, 4)
}

// TestHoldAtStart: before the first Snapshot there is none from before, so that nothing is
// written. The kernel is asked once. The end of the limit is a change.
func TestHoldAtStart(t *testing.T) {
	for _, written := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			source := &scripted{changed: newPulse()}
			asked := 0
			h := NewHold(source, HoldConfig{Written: func() bool { asked++; return written }, Limit: HoldLimit})
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- h.Run(ctx) }()
			source.set("a/web")
			if s, whole := h.Snapshot(); whole == written || whole != (servicesOf(s) == "a/web") {
				t.Errorf("rules of ours %v: %q, whole %v", written, servicesOf(s), whole)
			}
			if written {
				<-h.Changed() // the end of the limit
			}
			if s, whole := h.Snapshot(); !whole || servicesOf(s) != "a/web" || asked != 1 {
				t.Errorf("rules of ours %v, after the limit: %q, whole %v, asked %d times", written, servicesOf(s), whole, asked)
			}
			source.changed.send()
			<-h.Changed()
			cancel()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
