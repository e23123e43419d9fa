package watch

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// naming is a Snapshot whose EndpointSlices name API proxies at these ports.
func naming(ports ...int) *topology.Snapshot {
	s := topology.Snapshot{Node: "bj-1"}
	for _, port := range ports {
		s.Slices = append(s.Slices, topology.NewSlice(&discoveryv1.EndpointSlice{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "kubernetes-" + strconv.Itoa(port), Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"},
				Annotations: map[string]string{topology.AnnotationLocalEndpoint: "169.254.20.11", topology.AnnotationLocalPort: strconv.Itoa(port)},
			},
			AddressType: discoveryv1.AddressTypeIPv4,
		}))
	}
	return &s
}

func proxyAt(port uint16) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr("169.254.20.11"), port)
}

// fakeProxies are API proxies that answer, refuse or hang.
type fakeProxies struct {
	refuse, hang atomic.Bool
	probes       atomic.Int64
}

func (f *fakeProxies) probe(ctx context.Context, _ netip.AddrPort) error {
	f.probes.Add(1)
	switch {
	case f.hang.Load():
		<-ctx.Done()
		return ctx.Err()
	case f.refuse.Load():
		return errors.New("connection refused")
	default:
		return nil
	}
}

// probing runs a Chain with a Prober until the test ends.
func probing(t *testing.T, f *fakeProxies) (*Chain, *scripted) {
	t.Helper()
	source := newScripted()
	return startChain(t, Config{Probe: f.probe}, source), source
}

func wantAnswers(t *testing.T, p *Chain, want topology.ProbedProxies) {
	t.Helper()
	s, whole := p.Snapshot()
	if !whole || s.APIProxies == nil || !maps.Equal(s.APIProxies, want) {
		t.Fatalf("whole %v, API proxies %v, want %v", whole, s.APIProxies, want)
	}
}

// TestProber: an API proxy that answers is used from the first Snapshot on, until two probes in a
// row have failed, and again after one that succeeds.
func TestProber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProxies{}
		p, source := probing(t, f)
		if _, whole := p.Snapshot(); whole {
			t.Fatal("a Snapshot before the source has one")
		}
		up, down := topology.ProbedProxies{proxyAt(51003): true}, topology.ProbedProxies{proxyAt(51003): false}
		source.give(naming(51003))
		wantAnswers(t, p, up)
		synctest.Wait()
		<-p.Changed()
		for _, fault := range []*atomic.Bool{&f.refuse, &f.hang} {
			begin := time.Now()
			fault.Store(true)
			<-p.Changed()
			if took := time.Since(begin); took <= probePeriod || took > 2*probePeriod+probeLimit {
				t.Errorf("noticed after %s", took)
			}
			wantAnswers(t, p, down)
			begin = time.Now()
			fault.Store(false)
			<-p.Changed()
			if took := time.Since(begin); took > probePeriod {
				t.Errorf("the end was noticed after %s", took)
			}
			wantAnswers(t, p, up)
		}
		f.refuse.Store(true)
		time.Sleep(probePeriod) // one failure
		f.refuse.Store(false)
		time.Sleep(10 * probePeriod)
		select {
		case <-p.Changed():
			t.Error("one failure has an effect")
		default:
			wantAnswers(t, p, up)
		}
	})
}

// TestProberNames: a proxy that is named later does not answer until it was probed. What is not
// named is not probed.
func TestProberNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProxies{}
		p, source := probing(t, f)
		source.give(naming())
		wantAnswers(t, p, topology.ProbedProxies{})
		time.Sleep(time.Hour)
		if n := f.probes.Load(); n > 0 {
			t.Fatalf("%d probes of nothing", n)
		}
		<-p.Changed()
		source.give(naming(1))
		wantAnswers(t, p, topology.ProbedProxies{proxyAt(1): false})
		synctest.Wait()
		<-p.Changed()
		wantAnswers(t, p, topology.ProbedProxies{proxyAt(1): true})
		if n := f.probes.Load(); n != 1 {
			t.Fatalf("%d probes at once, want 1", n)
		}
		source.give(naming(1, 2, 3, 4, 5, 6))
		p.Snapshot()
		synctest.Wait()
		wantAnswers(t, p, topology.ProbedProxies{proxyAt(1): true, proxyAt(2): true, proxyAt(3): true, proxyAt(4): true})
		source.give(naming())
		wantAnswers(t, p, topology.ProbedProxies{})
		time.Sleep(probePeriod)
		before := f.probes.Load()
		time.Sleep(time.Hour)
		if n := f.probes.Load() - before; n > 0 {
			t.Fatalf("%d probes of what is not named any more", n)
		}
	})
}

// TestProberAtStart: the first Snapshot waits for a proxy that hangs, for a bounded time.
func TestProberAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeProxies{}
		f.hang.Store(true)
		p, source := probing(t, f)
		source.give(naming(1, 2))
		begin := time.Now()
		wantAnswers(t, p, topology.ProbedProxies{proxyAt(1): false, proxyAt(2): false})
		if took := time.Since(begin); took != probeLimit {
			t.Errorf("the first Snapshot took %s", took)
		}
		begin = time.Now()
		source.give(naming(1, 2, 3))
		wantAnswers(t, p, topology.ProbedProxies{proxyAt(1): false, proxyAt(2): false, proxyAt(3): false})
		if took := time.Since(begin); took != 0 {
			t.Errorf("a later Snapshot took %s", took)
		}
	})
}
