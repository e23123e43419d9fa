package watch

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// scripted is a Source whose Snapshot a test sets.
type scripted struct {
	changed pulse
	mu      sync.Mutex
	now     *topology.Snapshot // nil = nothing was read yet
}

func newScripted() *scripted { return &scripted{changed: newPulse()} }

func (s *scripted) Run(ctx context.Context) error { <-ctx.Done(); return nil }
func (s *scripted) Changed() <-chan struct{}      { return s.changed }
func (s *scripted) Lost() Loss                    { return Loss{} }

func (s *scripted) Snapshot() (topology.Snapshot, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == nil {
		return topology.Snapshot{}, false
	}
	return *s.now, true
}

func (s *scripted) give(snapshot *topology.Snapshot) {
	s.mu.Lock()
	s.now = snapshot
	s.mu.Unlock()
	s.changed.send()
}

// scriptedAPI is an API server that lists what its Snapshot holds, and is away at times.
type scriptedAPI struct {
	*scripted
	nodesLost bool
	loss      Loss
	last      PastLoss
}

func newScriptedAPI() *scriptedAPI { return &scriptedAPI{scripted: newScripted()} }

func (s *scriptedAPI) Losses() (Loss, PastLoss)      { return s.loss, s.last }
func (s *scriptedAPI) NodeWatches() (units, all int) { return 2, 1 }
func (s *scriptedAPI) Listed() Listed {
	return Listed{Service: HasAPIServer(s.now.Services), NodesLost: s.nodesLost}
}

// goAway loses an API server for that long.
func goAway(s *scriptedAPI, long time.Duration) {
	s.loss = Loss{Since: time.Now()}
	time.Sleep(long)
	s.loss, s.last = Loss{}, PastLoss{Since: s.loss.Since, End: time.Now()}
}

// listing is a Snapshot of these Services.
func listing(services ...string) *topology.Snapshot {
	s := &topology.Snapshot{}
	for _, full := range services {
		namespace, name, _ := strings.Cut(full, "/")
		s.Services = append(s.Services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
	}
	return s
}

// startChain runs a Chain until the test ends.
func startChain(t *testing.T, c Config, source Source) *Chain {
	t.Helper()
	chain := newChain(c, source)
	start(t, chain.Run)
	return chain
}

// wantChanged wants that both followers receive, or neither.
func wantChanged(t *testing.T, c *Chain, want bool) {
	t.Helper()
	synctest.Wait()
	for name, changed := range map[string]<-chan struct{}{"Changed": c.Changed(), "Second": c.Second()} {
		select {
		case <-changed:
			if !want {
				t.Error(name, "receives")
			}
		default:
			if want {
				t.Error(name, "does not receive")
			}
		}
	}
}

// TestAccessorsDoNotWait: who scrapes metrics does not wait for a kernel that hangs. It is asked
// once, although Hold and Remembered both need the answer, whichever asks.
func TestAccessorsDoNotWait(t *testing.T) {
	for _, first := range []*topology.Snapshot{nil, listing("default/web")} { // Remembered asks; Hold does
		asked, answer := make(chan struct{}), make(chan struct{})
		source := newScriptedAPI()
		source.now = first
		c := newChain(Config{Saved: topology.Snapshot{Saved: moment}, ReconnectGrace: time.Minute, Written: func() bool {
			close(asked)
			<-answer
			return true
		}}, source)
		done := make(chan struct{})
		go func() { defer close(done); c.Snapshot() }()
		<-asked
		if c.InUse() || c.Holding() || len(c.Held()) > 0 || len(c.Answers()) > 0 {
			t.Error("something is in use before there is an answer")
		}
		close(answer)
		<-done
		source.give(listing("default/web"))
		if _, whole := c.Snapshot(); whole || !c.Holding() {
			t.Errorf("without default/kubernetes: whole %v, held back %v", whole, c.Holding())
		}
	}
}

// TestEachWaitIsNoticed: Hold and Remembered wait at the same time, and the end of each wait is a
// change.
func TestEachWaitIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, saved, began := newScriptedAPI(), *listing("a/saved"), time.Now()
		saved.Saved = moment
		c := startChain(t, Config{Saved: saved, Written: func() bool { return true }}, source)
		source.give(listing("a/now"))
		for _, want := range []struct {
			after    time.Duration
			services string
		}{{0, ""}, {rememberedAfter, "a/saved"}, {HoldLimit, "a/now"}} {
			<-c.Changed()
			if s, _ := c.Snapshot(); servicesOf(s) != want.services || time.Since(began) != want.after {
				t.Errorf("after %s: %q; want after %s: %q", time.Since(began), servicesOf(s), want.after, want.services)
			}
		}
	})
}

// TestPartsThatAreOff: the accessors answer for them too.
func TestPartsThatAreOff(t *testing.T) {
	source := newScripted()
	c := newChain(Config{Trial: true, ReconnectGrace: time.Minute}, source)
	source.give(listing("default/web"))
	s, whole := c.Snapshot()
	if !whole || s.APIProxies != nil || c.On() != (On{}) {
		t.Errorf("whole %v, API proxies %v, on: %+v", whole, s.APIProxies, c.On())
	}
	if units, all := c.NodeWatches(); c.InUse() || c.Holding() || c.Held() != nil || c.Answers() != nil || c.Lost() != (Loss{}) || units+all > 0 {
		t.Error("a part that is off answers something else than nothing")
	}
	c = newChain(Config{Saved: topology.Snapshot{Saved: moment}, ReconnectGrace: time.Minute}, newScriptedAPI())
	if c.On() != (On{APIServer: true, Remembered: true, Grace: true, Prober: true}) {
		t.Errorf("on: %+v", c.On())
	}
}
