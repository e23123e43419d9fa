package watch

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/topology"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// oneEndpoint is a Snapshot of an open Service with one endpoint.
func oneEndpoint(ready bool) topology.Snapshot {
	return topology.Snapshot{
		Node:     "bj-1",
		Services: []*corev1.Service{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}},
		Slices: []*topology.Slice{topology.NewSlice(&discoveryv1.EndpointSlice{
			ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
		})},
	}
}

// graceful runs a Chain with a grace of a minute until the test ends. reports gets what it reports.
func graceful(t *testing.T, saved topology.Snapshot) (g *Chain, api *scriptedAPI, reports *[]string) {
	t.Helper()
	api, reports = newScriptedAPI(), &[]string{}
	return startChain(t, Config{ReconnectGrace: time.Minute, Saved: saved, ReportHeld: func(held []topology.HeldEndpoint) {
		*reports = append(*reports, fmt.Sprint(len(held)))
	}}, api), api, reports
}

// wantReady wants whether the endpoint is ready in the Snapshot now.
func wantReady(t *testing.T, g *Chain, want bool) {
	t.Helper()
	s, ok := g.Snapshot()
	if !ok || s.Slices[0].Endpoints[0].Ready != want {
		t.Fatalf("whole %v, ready %v, want %v", ok, s.Slices[0].Endpoints[0].Ready, want)
	}
}

// TestGrace: after a cut of 20 s, and not after a shorter one, a wave is held for a minute, whose
// end is noticed without any other change.
func TestGrace(t *testing.T) {
	for long, held := range map[time.Duration]bool{longCut - time.Second: false, longCut: true, time.Hour: true} {
		synctest.Test(t, func(t *testing.T) {
			g, api, reports := graceful(t, topology.Snapshot{})
			up, down := oneEndpoint(true), oneEndpoint(false)
			api.give(&up)
			wantReady(t, g, true)
			goAway(api, long)
			api.give(&down)
			synctest.Wait()
			<-g.Changed()
			wantReady(t, g, held)
			if !held {
				return
			}
			if held := g.Held(); len(held) != 1 || held[0].Service.Name != "web" {
				t.Errorf("held: %v", held)
			}
			<-g.Changed() // a minute later
			wantReady(t, g, false)
			if want := []string{"1", "0"}; !slices.Equal(*reports, want) {
				t.Errorf("reports %q, want %q", *reports, want)
			}
		})
	}
}

// TestGraceBeforeTheEndIsKnown: slices may be read again before the last other kind is.
func TestGraceBeforeTheEndIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, api, _ := graceful(t, topology.Snapshot{})
		up, down := oneEndpoint(true), oneEndpoint(false)
		api.give(&up)
		wantReady(t, g, true)
		api.loss = Loss{Since: time.Now()}
		time.Sleep(time.Minute)
		api.give(&down)
		wantReady(t, g, true)
	})
}

// TestGraceIsNotForLater: an endpoint that fails long after a cut is not held.
func TestGraceIsNotForLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, api, _ := graceful(t, topology.Snapshot{})
		up, down := oneEndpoint(true), oneEndpoint(false)
		api.give(&up)
		wantReady(t, g, true)
		goAway(api, time.Minute)
		wantReady(t, g, true)
		time.Sleep(topology.WaveWindow + time.Second)
		api.give(&down)
		wantReady(t, g, false)
	})
}

// TestGraceAfterRestart: a daemon that restarts just before the end of a cut does not use the saved
// state, which still says what was ready before. One that does not miss the API server holds
// nothing.
func TestGraceAfterRestart(t *testing.T) {
	for missed, held := range map[bool]bool{false: false, true: true} {
		synctest.Test(t, func(t *testing.T) {
			saved, down := oneEndpoint(true), oneEndpoint(false)
			saved.Saved = moment
			g, api, _ := graceful(t, saved)
			if missed {
				goAway(api, time.Second)
			}
			api.give(&down)
			wantReady(t, g, held)
			time.Sleep(time.Minute)
			wantReady(t, g, false)
		})
	}
}

// TestGraceAfterSavedState: the first Snapshot of the cluster after a saved one may bring a wave.
func TestGraceAfterSavedState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		saved, down := oneEndpoint(true), oneEndpoint(false)
		saved.Saved = moment
		g, api, _ := graceful(t, saved)
		wantReady(t, g, true)
		api.give(&down)
		wantReady(t, g, true)
		time.Sleep(time.Minute)
		wantReady(t, g, false)
	})
	synctest.Test(t, func(t *testing.T) {
		g, api, _ := graceful(t, topology.Snapshot{})
		down := oneEndpoint(false)
		api.give(&down)
		wantReady(t, g, false)
	})
}
