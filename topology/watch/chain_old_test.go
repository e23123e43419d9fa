package watch

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"
	"gridproxy/topology/state"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// world is what both chains read.
type world struct {
	snapshot *topology.Snapshot // nil = nothing was read yet
	listed   Listed
	now      Loss
	last     PastLoss
	refuses  atomic.Bool // the API proxies do
}

// reading is an API server in a world.
type reading struct {
	*world
	changed pulse
}

func (r reading) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (r reading) Changed() <-chan struct{}      { return r.changed }
func (r reading) Listed() Listed                { return r.listed }
func (r reading) Losses() (Loss, PastLoss)      { return r.now, r.last }
func (r reading) Lost() Loss                    { return r.now }
func (r reading) NodeWatches() (units, all int) { return 0, 0 }
func (r reading) Snapshot() (topology.Snapshot, bool) {
	if r.snapshot == nil {
		return topology.Snapshot{}, false
	}
	return *r.snapshot, true
}

// manifestsOf hides that a source is an API server.
type manifestsOf struct{ input }

// settings are those of a daemon.
type settings struct {
	Manifests, Trial, Written bool
	Grace                     time.Duration
	Saved                     topology.Snapshot
}

// step is what happens in a world, and for how long nothing happens after it.
type step struct {
	Signal bool // the source has changed
	Change func(*world)
	What   string
	Rest   time.Duration
}

func drawSnapshot(t *rapid.T, label string) *topology.Snapshot {
	s := &topology.Snapshot{Node: "bj-1"}
	names := []string{"web"}
	if rapid.IntRange(0, 3).Draw(t, label+" has default/kubernetes") > 0 {
		names = append(names, "kubernetes")
	}
	for _, name := range names {
		s.Services = append(s.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}})
	}
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
	}
	for i := range 3 {
		ready := rapid.Bool().Draw(t, label+" ready")
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{fmt.Sprintf("10.0.0.%d", i+1)}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	s.Slices = append(naming(rapid.SampledFrom([][]int{nil, {1}, {1, 2}}).Draw(t, label+" proxies")...).Slices, topology.NewSlice(slice))
	return s
}

func drawSettings(t *rapid.T) settings {
	draw := func(name string) bool { return rapid.Bool().Draw(t, name) }
	s := settings{Manifests: rapid.IntRange(0, 7).Draw(t, "manifests") == 0, Trial: draw("trial"), Written: draw("written")}
	s.Grace = rapid.SampledFrom([]time.Duration{0, 15 * time.Second, time.Minute}).Draw(t, "grace")
	if !s.Manifests && draw("saved") {
		s.Saved = *drawSnapshot(t, "saved")
		s.Saved.Saved, s.Saved.LastKeys = moment, map[types.UID][]string{"web": {"location"}}
	}
	return s
}

func drawStep(t *rapid.T) step {
	s := step{Rest: rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second, 5 * time.Second, longCut, 40 * time.Second, 4 * time.Minute, HoldLimit}).Draw(t, "rest")}
	s.What = rapid.SampledFrom([]string{"read", "read", "read", "unread", "list", "lose", "find", "proxies", "ask"}).Draw(t, "what")
	switch s.What {
	case "read":
		now, lost := drawSnapshot(t, "now"), rapid.IntRange(0, 5).Draw(t, "Nodes lost") == 0
		s.Signal = true
		s.Change = func(w *world) {
			w.snapshot = now
			has := HasAPIServer(now.Services)
			w.listed = Listed{Service: has, Slice: has, NodesLost: lost}
		}
	case "unread":
		s.Signal, s.Change = true, func(w *world) { w.snapshot = nil }
	case "list":
		listed := Listed{Service: rapid.Bool().Draw(t, "service"), Slice: rapid.Bool().Draw(t, "slice"), NodesLost: rapid.Bool().Draw(t, "Nodes lost")}
		s.Signal, s.Change = true, func(w *world) { w.listed = listed }
	case "lose":
		s.Change = func(w *world) {
			if w.now.Since.IsZero() {
				w.now = Loss{Since: time.Now()}
			}
		}
	case "find":
		s.Change = func(w *world) {
			if !w.now.Since.IsZero() {
				w.now, w.last = Loss{}, PastLoss{Since: w.now.Since, End: time.Now()}
			}
		}
	case "proxies":
		s.Change = func(w *world) { w.refuses.Store(!w.refuses.Load()) }
	case "ask":
		s.Signal, s.Change = true, func(*world) {}
	}
	return s
}

// composed is the parts as the daemon composes them.
type composed struct {
	Source
	hold       *Hold
	remembered *Remembered
	grace      *Grace
	prober     *Prober
	asked      bool
}

func compose(s settings, api reading, probe func(context.Context, netip.AddrPort) error) *composed {
	c := &composed{}
	written := sync.OnceValue(func() bool { c.asked = true; return s.Written })
	c.Source = api
	if !s.Manifests {
		c.hold = NewHold(api, HoldConfig{NodesOnly: s.Trial, Written: func() bool { return HasAPIServer(s.Saved.Services) || written() }})
		c.Source = c.hold
	}
	if !s.Saved.Saved.IsZero() {
		c.remembered = NewRemembered(c.Source, RememberedConfig{State: state.State{Snapshot: s.Saved}, Written: written})
		c.Source = c.remembered
	}
	if !s.Manifests && s.Grace > 0 {
		c.grace = NewGrace(c.Source, GraceConfig{Grace: s.Grace, Losses: api.Losses, Saved: s.Saved})
		c.Source = c.grace
	}
	if !s.Trial {
		c.prober = NewProber(c.Source, ProberConfig{Probe: probe})
		c.Source = c.prober
	}
	c.Source = NewFork(c.Source)
	return c
}

// describe tells what counts of a Snapshot.
func describe(s topology.Snapshot, whole bool) string {
	text := fmt.Sprint("whole ", whole, ", Services ")
	for _, svc := range s.Services {
		text += svc.Name + " "
	}
	for _, slice := range s.Slices {
		for _, e := range slice.Endpoints {
			text += fmt.Sprint(e.Ready, " ")
		}
	}
	return text + fmt.Sprint(s.APIProxies, s.LastKeys, s.Saved)
}

// comparison asks both at the same times.
type comparison struct {
	old      *composed
	chain    *Chain
	asked    bool // by the Chain
	previous topology.Snapshot
	whole    bool
}

// compare returns how the Snapshots or the answers of the accessors differ.
func (c *comparison) compare(signalled bool) error {
	before, beforeWhole := c.previous, c.whole
	var want topology.Snapshot
	var wantWhole bool
	var asking sync.WaitGroup
	asking.Go(func() { want, wantWhole = c.old.Snapshot() })
	asking.Go(func() { c.previous, c.whole = c.chain.Snapshot() })
	asking.Wait()                         // a first Snapshot waits for probes
	before.LastKeys = c.previous.LastKeys // only the first Snapshot has those that were saved
	switch {
	case wantWhole != c.whole || !reflect.DeepEqual(want, c.previous):
		return fmt.Errorf("Snapshots differ: %s; in the chain %s", describe(want, wantWhole), describe(c.previous, c.whole))
	case !signalled && (c.whole != beforeWhole || !reflect.DeepEqual(before, c.previous)):
		return fmt.Errorf("the chain does not signal: %s; then %s", describe(before, beforeWhole), describe(c.previous, c.whole))
	case c.old.asked != c.asked:
		return fmt.Errorf("the kernel is asked %v, by the chain %v", c.old.asked, c.asked)
	case c.old.hold != nil && c.old.hold.Holding() != c.chain.Holding():
		return errors.New("Holding differs")
	case c.old.remembered != nil && c.old.remembered.InUse() != c.chain.InUse():
		return errors.New("InUse differs")
	case c.old.grace != nil && !reflect.DeepEqual(c.old.grace.Held(), c.chain.Held()):
		return fmt.Errorf("held: %v, %v", c.old.grace.Held(), c.chain.Held())
	case c.old.prober != nil && !reflect.DeepEqual(c.old.prober.Answers(), c.chain.Answers()):
		return errors.New("Answers differ")
	case (c.chain.On() != On{APIServer: c.old.hold != nil, Remembered: c.old.remembered != nil, Grace: c.old.grace != nil, Prober: c.old.prober != nil}):
		return fmt.Errorf("on: %+v", c.chain.On())
	}
	return nil
}

// follow asks both whenever one signals, for a time.
func (c *comparison) follow(long time.Duration) error {
	end := time.After(long)
	for {
		signalled := false
		select {
		case <-end:
			return nil
		case <-c.old.Changed():
		case <-c.chain.Changed():
			signalled = true
		}
		synctest.Wait() // for what else happens at this time
		for _, more := range []<-chan struct{}{c.old.Changed(), c.chain.Changed()} {
			select {
			case <-more:
				signalled = signalled || more == c.chain.Changed()
			default:
			}
		}
		if err := c.compare(signalled); err != nil {
			return err
		}
	}
}

// playHistory plays a history for both.
func playHistory(ctx context.Context, s settings, steps []step) error {
	w := &world{}
	probe := func(context.Context, netip.AddrPort) error {
		time.Sleep(1) // no Snapshot that is put together meanwhile has the outcome
		if w.refuses.Load() {
			return errors.New("refused")
		}
		return nil
	}
	first, second := reading{w, newPulse()}, reading{w, newPulse()}
	c := &comparison{old: compose(s, first, probe)}
	var source input = second
	if s.Manifests {
		source = manifestsOf{second}
	}
	c.chain = newChain(Config{
		Trial: s.Trial, Saved: s.Saved, ReconnectGrace: s.Grace, Probe: probe,
		Written: func() bool { c.asked = true; return s.Written },
	}, source)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	running.Go(func() { _ = c.old.Run(ctx) })
	running.Go(func() { _ = c.chain.Run(ctx) })
	synctest.Wait()
	err := c.compare(true)
	for i := 0; err == nil && i < len(steps); i++ {
		steps[i].Change(w)
		if steps[i].Signal {
			first.changed.send()
			second.changed.send()
		}
		if err = c.follow(steps[i].Rest + 7*time.Microsecond); err != nil { // so no step is at the moment of a probe
			err = fmt.Errorf("after step %d: %w", i, err)
		}
	}
	return err
}

// TestChainAsComposed: in random histories the parts composed one after the other and a Chain
// have equal Snapshots at equal times.
func TestChainAsComposed(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := drawSettings(r)
		var steps []step
		for range rapid.IntRange(1, 25).Draw(r, "steps") {
			steps = append(steps, drawStep(r))
		}
		var err error
		synctest.Test(t, func(t *testing.T) { err = playHistory(t.Context(), s, steps) })
		if err != nil {
			r.Fatal(err)
		}
	})
}
