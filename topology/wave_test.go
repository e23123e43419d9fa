package topology_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

const grace = time.Minute

var cutEnd = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// after is a moment so long after the end of the cut.
func after(d time.Duration) time.Time { return cutEnd.Add(d) }

// site is a cluster seen from a, which shares zone z with b; c is elsewhere. endpoints are
// "ADDRESS@NODE" with a mark: "" ready, "-" not ready, "!" terminating and not ready.
func site(endpoints ...string) topology.Snapshot {
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for _, text := range endpoints {
		addr, node, _ := strings.Cut(strings.TrimRight(text, "-!"), "@")
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{addr}, NodeName: &node,
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(!strings.ContainsAny(text, "-!")), Serving: new(!strings.ContainsAny(text, "-!")), Terminating: new(strings.HasSuffix(text, "!")),
			},
		})
	}
	return topology.Snapshot{
		Node:  "a",
		Nodes: map[string]labels.Set{"a": {"zone": "z"}, "b": {"zone": "z"}, "c": {"zone": "y"}},
		Services: []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "web", Annotations: map[string]string{topology.AnnotationKeys: `["zone"]`},
		}}},
		Slices: []*topology.Slice{topology.NewSlice(slice)},
	}
}

// readyIn are the ready endpoints of a Snapshot, as "ADDRESS".
func readyIn(s topology.Snapshot) string {
	ready := []string{}
	for _, slice := range s.Slices {
		for _, e := range slice.Endpoints {
			if e.Ready && e.Serving {
				ready = append(ready, e.Addr.String())
			}
		}
	}
	return strings.Join(ready, " ")
}

func TestWave(t *testing.T) {
	type step struct {
		at   time.Duration // after the end of the cut
		next []string
		want string // ready
	}
	all := []string{"10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@b", "10.0.0.4@b", "10.0.0.9@c"}
	s := time.Second
	for name, steps := range map[string][]step{
		"all at once": {
			{0, []string{"10.0.0.1@a-", "10.0.0.2@b-", "10.0.0.3@b-", "10.0.0.4@b-", "10.0.0.9@c-"}, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"},
			{5 * s, []string{"10.0.0.1@a-", "10.0.0.2@b", "10.0.0.3@b-", "10.0.0.4@b-", "10.0.0.9@c-"}, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"},
			{59 * s, []string{"10.0.0.1@a-", "10.0.0.2@b-", "10.0.0.3@b-", "10.0.0.4@b-", "10.0.0.9@c-"}, "10.0.0.1 10.0.0.3 10.0.0.4"}, // it was ready between
			{60 * s, []string{"10.0.0.1@a-", "10.0.0.2@b-", "10.0.0.3@b-", "10.0.0.4@b-", "10.0.0.9@c-"}, ""},
		},
		"one after the other": {
			{0, []string{"10.0.0.1@a-", "10.0.0.2@b", "10.0.0.3@b", "10.0.0.4@b"}, "10.0.0.2 10.0.0.3 10.0.0.4"}, // not half
			{s, []string{"10.0.0.1@a-", "10.0.0.2@b-", "10.0.0.3@b", "10.0.0.4@b"}, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"},
			{10 * s, []string{"10.0.0.1@a-", "10.0.0.2@b-", "10.0.0.3@b-", "10.0.0.4@b"}, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"},
		},
		"too late":     {{11 * s, []string{"10.0.0.1@a-", "10.0.0.2@b-", "10.0.0.3@b-", "10.0.0.4@b-"}, ""}},
		"another unit": {{0, []string{"10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@b", "10.0.0.4@b", "10.0.0.9@c-"}, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"}},
		"deleted":      {{0, []string{"10.0.0.4@b-"}, ""}},
		"deleted while held": {
			{0, []string{"10.0.0.1@a-", "10.0.0.2@b-", "10.0.0.3@b-", "10.0.0.4@b-"}, "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4"},
			{s, []string{"10.0.0.1@a-", "10.0.0.4@b!"}, "10.0.0.1"},
		},
		"terminating":     {{0, []string{"10.0.0.1@a!", "10.0.0.2@b!", "10.0.0.3@b!", "10.0.0.4@b!"}, ""}},
		"another address": {{0, []string{"10.0.0.5@a-", "10.0.0.6@b-"}, ""}},
		"at another node": {{0, []string{"10.0.0.1@b-", "10.0.0.2@a-", "10.0.0.3@a-", "10.0.0.4@a-"}, ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var w topology.Waves
			cut := &topology.Cut{Before: site(all...), End: cutEnd}
			for _, step := range steps {
				next := site(step.next...)
				before := readyIn(next)
				var s topology.Snapshot
				w, s = w.Hold(next, cut, grace, after(step.at))
				if got := readyIn(s); got != step.want {
					t.Errorf("%s after the cut: ready %q, want %q", step.at, got, step.want)
				}
				if got := readyIn(next); got != before {
					t.Errorf("the Snapshot was changed in place: ready %q, before %q", got, before)
				}
			}
		})
	}
}

// TestWaveOfOwnEndpoints: of a Service that is closed to each node's own endpoints, those alone
// make up the wave.
func TestWaveOfOwnEndpoints(t *testing.T) {
	before, next := site("10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@b"), site("10.0.0.1@a-", "10.0.0.2@b", "10.0.0.3@b")
	for _, s := range []topology.Snapshot{before, next} {
		s.Services[0].Annotations[topology.AnnotationKeys] = "malformed"
	}
	_, s := topology.Waves{}.Hold(next, &topology.Cut{Before: before, End: cutEnd}, grace, cutEnd)
	if want, got := "10.0.0.1 10.0.0.2 10.0.0.3", readyIn(s); got != want {
		t.Errorf("ready %q, want %q", got, want)
	}
}

// TestWaveInALongCut: of a cut that does not end, such as one of a single kind, an endpoint is held
// once.
func TestWaveInALongCut(t *testing.T) {
	var w topology.Waves
	cut := &topology.Cut{Before: site("10.0.0.1@a")}
	for minute, want := range []string{"10.0.0.1", "", "", ""} {
		var s topology.Snapshot
		w, s = w.Hold(site("10.0.0.1@a-"), cut, grace, after(time.Duration(minute)*time.Minute))
		if got := readyIn(s); got != want {
			t.Errorf("minute %d: ready %q, want %q", minute, got, want)
		}
	}
}

func TestHeld(t *testing.T) {
	cut := &topology.Cut{Before: site("10.0.0.1@a", "10.0.0.2@b"), End: cutEnd}
	w, _ := topology.Waves{}.Hold(site("10.0.0.1@a-", "10.0.0.2@b-"), cut, grace, cutEnd)
	web := types.NamespacedName{Namespace: "default", Name: "web"}
	want := []topology.HeldEndpoint{
		{Service: web, Addr: netip.MustParseAddr("10.0.0.1"), Node: "a", Until: after(grace)},
		{Service: web, Addr: netip.MustParseAddr("10.0.0.2"), Node: "b", Until: after(grace)},
	}
	if held := w.Held(cutEnd); !slices.Equal(held, want) || !w.Until(cutEnd).Equal(after(grace)) {
		t.Errorf("held %v until %s, want %v", held, w.Until(cutEnd), want)
	}
	if held := w.Held(after(grace)); len(held) > 0 || !w.Until(after(grace)).IsZero() {
		t.Errorf("held after the grace: %v", held)
	}
}

// TestHoldAddsNothing: what is held differs from the cluster in the readiness of endpoints that
// were ready before, and only for the grace. Without a cut or without grace nothing is held.
func TestHoldAddsNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := topologytest.Snapshot(t)
		next := before
		for range rapid.IntRange(0, 6).Draw(t, "changes") {
			next = topologytest.Change(t, next)
		}
		original := states(next)
		cut := &topology.Cut{Before: before, End: cutEnd}
		w, held := topology.Waves{}.Hold(next, cut, grace, after(time.Duration(rapid.IntRange(0, 12).Draw(t, "seconds"))*time.Second))
		if diff := cmp.Diff(original, states(next)); diff != "" {
			t.Fatalf("the Snapshot was changed in place:\n%s", diff)
		}
		was := states(before)
		for e, ready := range states(held) {
			switch wanted, found := original[e]; {
			case !found:
				t.Fatalf("%s is added", e)
			case ready != wanted && (!ready || !was[e]):
				t.Fatalf("%s: ready %v, in the cluster %v, before %v", e, ready, wanted, was[e])
			}
		}
		if len(states(held)) != len(original) {
			t.Fatal("an endpoint is lost")
		}
		_, later := w.Hold(next, nil, grace, after(2*time.Minute))
		_, without := topology.Waves{}.Hold(next, nil, grace, cutEnd)
		_, none := topology.Waves{}.Hold(next, cut, 0, cutEnd)
		for _, s := range []topology.Snapshot{later, without, none} {
			if !slices.Equal(s.Slices, next.Slices) {
				t.Fatal("something is held without reason")
			}
		}
	})
}

// states says of each endpoint, by Service, address and node, whether it is ready in any slice.
func states(s topology.Snapshot) map[string]bool {
	all := map[string]bool{}
	for _, slice := range s.Slices {
		for _, e := range slice.Endpoints {
			id := strings.Join([]string{slice.Namespace, slice.Service, e.Addr.String(), e.Node}, "/")
			all[id] = all[id] || e.Ready
		}
	}
	return all
}

// TestWaveOfNames: a wave of a headless Service is held too, and one in slices that only DNS reads
// is no part of one that rules read.
func TestWaveOfNames(t *testing.T) {
	headless := func(s topology.Snapshot, name string) topology.Snapshot {
		read := s.Slices[0].Object()
		read.Name, read.Labels[topology.LabelHeadless] = name, ""
		s.Slices = []*topology.Slice{topology.NewSliceWithNames(read)}
		return s
	}
	all, gone := []string{"10.0.0.1@a", "10.0.0.2@b"}, []string{"10.0.0.1@a-", "10.0.0.2@b-"}
	cut := &topology.Cut{Before: headless(site(all...), "web-1"), End: cutEnd}
	_, s := topology.Waves{}.Hold(headless(site(gone...), "web-1"), cut, grace, after(0))
	if got := readyIn(s); got != "10.0.0.1 10.0.0.2" {
		t.Errorf("of a wave of a headless Service are ready: %q, want both", got)
	}
	cut.Before = site("10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@b")
	next := site("10.0.0.1@a-", "10.0.0.2@b", "10.0.0.3@b")
	for _, both := range []struct {
		into *topology.Snapshot
		of   []string
	}{{&cut.Before, all}, {&next, gone}} {
		both.into.Slices = append(both.into.Slices, headless(site(both.of...), "web-2").Slices...)
	}
	if _, s = (topology.Waves{}).Hold(next, cut, grace, after(0)); readyIn(s) != "10.0.0.2 10.0.0.3 10.0.0.1 10.0.0.2" {
		t.Errorf("a third of the endpoints of rules turned not ready, and beside them are ready: %s", readyIn(s))
	}
}
