package syncer

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"gridproxy/rules"
	"gridproxy/topology"
	"gridproxy/topology/topologytest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// event is something that happens to the daemon; afterwards time passes.
type event struct {
	snapshot     *topology.Snapshot // the cluster changes
	host         *topology.Host     // the machine's addresses change
	hostFailures int                // ... and cannot be read so many times
	failures     int                // the next writes of the first Backend fail
	tamper       bool               // another process deletes a Service's rules
	pause        time.Duration
}

func (e event) String() string {
	return fmt.Sprintf("snapshot:%t host:%t/%d failures:%d tamper:%t pause:%v", e.snapshot != nil, e.host != nil, e.hostFailures, e.failures, e.tamper, e.pause)
}

func drawEvents(t *rapid.T) []event {
	snapshot := topologytest.Snapshot(t)
	snapshot.LastKeys = map[types.UID][]string{}
	events := []event{{snapshot: &snapshot}}
	for range rapid.IntRange(1, 12).Draw(t, "events") {
		e := event{pause: time.Duration(rapid.IntRange(0, 15000).Draw(t, "pause")) * time.Millisecond}
		switch rapid.SampledFrom([]string{"change", "change", "change", "fail", "tamper", "host"}).Draw(t, "event") {
		case "change":
			next := topologytest.Change(t, snapshot)
			next.LastKeys = snapshot.LastKeys // the Syncer's affair
			snapshot = next
			e.snapshot = &next
		case "fail":
			e.failures = rapid.IntRange(1, 4).Draw(t, "failures")
		case "tamper":
			e.tamper = true
		case "host":
			e.host = &topology.Host{IPv4: true, IPv6: rapid.Bool().Draw(t, "IPv6"), Addrs: []netip.Addr{
				netip.AddrFrom4([4]byte{192, 0, 2, byte(rapid.IntRange(1, 3).Draw(t, "address"))}),
			}}
			e.hostFailures = rapid.IntRange(0, 2).Draw(t, "host failures")
		}
		events = append(events, e)
	}
	return events
}

// TestKernelEndsRight: whatever happens, in whatever order, once nothing has happened for
// some time every Backend's kernel holds exactly what the last Snapshot comes to.
func TestKernelEndsRight(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		events := drawEvents(rt)
		var failure error
		reads := time.Duration(rapid.SampledFrom([]int{0, 100, 700, 1500}).Draw(rt, "reads")) * time.Millisecond
		synctest.Test(t, func(t *testing.T) { failure = play(t, events, reads) })
		if failure != nil {
			rt.Fatalf("%v\nevents:\n%v", failure, events)
		}
	})
}

const (
	testMin    = time.Second
	testVerify = 10 * time.Second
)

// play lets events happen to a Syncer whose first Backend takes so long to read the kernel back.
func play(t *testing.T, events []event, reads time.Duration) error {
	src, here, seen := newSource(), newMachine(), &observer{}
	first := &backend{t: t, took: 300 * time.Millisecond, reads: reads}
	second := &backend{t: t, took: 50 * time.Millisecond, drains: 3}
	here.host = topology.Host{IPv4: true, IPv6: true}
	config := Config{
		Source: src, Host: here.read, HostMoved: here.moved,
		Backends:      []NamedBackend{{"first", first}, {"second", second}},
		Rules:         rules.Config{LocalhostNodePorts: true},
		MinSyncPeriod: testMin, VerifyPeriod: testVerify, Observers: []Observer{seen},
	}
	s := New(config)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- s.Run(ctx) }()
	for _, e := range events {
		happen(e, src, here, first)
		time.Sleep(e.pause)
	}
	time.Sleep(10 * max(testVerify, verifyDelayFactor*reads)) // failures that are left, and a verified run after them
	synctest.Wait()
	if !s.Progress().IsZero() { // a verification is under way, which is pending while it lasts
		time.Sleep(testMin/2 + reads)
		synctest.Wait()
	}
	pending := earlier(s.PendingOf(rules.IPv4), s.PendingOf(rules.IPv6))
	cancel()
	if err := <-ended; err != nil {
		return fmt.Errorf("Run returned %w", err)
	}
	if !pending.IsZero() {
		return fmt.Errorf("a change of %s is still pending at the end", pending)
	}
	wanted, err := fromScratch(seen.all(), src.snapshot, here.host, config)
	if err != nil {
		return err
	}
	for _, b := range config.Backends {
		if err := sameRuleset(wanted, b.Backend.(*backend).enforced()); err != nil {
			return fmt.Errorf("backend %s: %w", b.Name, err)
		}
	}
	return errors.Join(spaced(seen.all()), verified(seen.all()), prompt(seen.all()), wentOn(seen.all()))
}

func happen(e event, src *source, here *machine, b *backend) {
	if e.failures > 0 {
		b.fail(e.failures)
	}
	if e.tamper {
		b.tamper()
	}
	if e.host != nil {
		here.set(*e.host, e.hostFailures)
	}
	if e.snapshot != nil {
		src.set(*e.snapshot)
	}
}

// fromScratch is what the last Snapshot comes to, with the keys remembered from those that
// were seen before it.
func fromScratch(seen []Result, last topology.Snapshot, host topology.Host, c Config) (rules.Ruleset, error) {
	var keys topology.Snapshot
	for _, r := range seen {
		if r.Backends == nil {
			continue // the machine could not be read: nothing was decided
		}
		s := r.Snapshot
		if !cmp.Equal(s.LastKeys, keys.LastKeys, cmpopts.EquateEmpty()) {
			return rules.Ruleset{}, fmt.Errorf("a run had LastKeys %v, those before it come to %v", s.LastKeys, keys.LastKeys)
		}
		keys.LastKeys = topology.Resolve(s, c.Topology).LastKeys
	}
	if len(seen) == 0 {
		return rules.Ruleset{}, errors.New("no run at all")
	}
	last.LastKeys, last.Host = keys.LastKeys, host
	return rules.Compile(topology.Resolve(last, c.Topology), c.Rules), nil
}

func sameRuleset(want, got rules.Ruleset) error {
	// A Service appears in the order of its text here, and in that of its name there.
	byText := cmpopts.SortSlices(func(a, b *rules.Service) bool { return a != nil && b != nil && nameOf(a) < nameOf(b) })
	equal := cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })
	addr := cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
	prefix := cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })
	if diff := cmp.Diff(want, got, byText, equal, addr, prefix, cmpopts.EquateEmpty()); diff != "" {
		return fmt.Errorf("the kernel differs (-want +kernel):\n%s", diff)
	}
	return nil
}

// spaced checks that the minimum period lies between the end of a run that takes up changes and the
// start of the next one, and that a kernel is not trusted before it was read, nor after a failure.
func spaced(seen []Result) error {
	var wrote time.Time
	for i, r := range seen {
		if (i == 0 || seen[i-1].Err != nil) && !r.Verify {
			return fmt.Errorf("run %d is the first or follows a failure, and does not read the kernel back", i)
		}
		if r.plan.alone {
			continue
		}
		if gap := r.Start.Sub(wrote); i > 0 && gap < testMin {
			return fmt.Errorf("run %d starts %v after the one before it, want %v at least", i, gap, testMin)
		}
		wrote = r.End
	}
	return nil
}

// verified checks that a kernel is read back when it is time to, not whenever a run starts: after a
// period that follows what reading has cost, at the latest after three of them, and alone.
func verified(seen []Result) error {
	var last, tried Result // the last runs that verified completely, and at all
	for i, r := range seen {
		required := i == 0 || seen[i-1].Err != nil
		if r.Verify != (required || r.plan.alone) || required && r.plan.alone {
			return fmt.Errorf("run %d at %v: verify = %t, alone = %t", i, r.Start, r.Verify, r.plan.alone)
		}
		period := max(testVerify, verifyDelayFactor*last.Changes.VerifyTime)
		rested := tried.End.Add(verifyDelayFactor * tried.Changes.VerifyTime)
		if r.plan.alone && (r.Start.Before(last.End.Add(period)) || r.Start.Before(rested)) {
			return fmt.Errorf("run %d verifies at %v, %v after the last one, want %v and not before %v", i, r.Start, r.Start.Sub(last.End), period, rested)
		}
		if late := r.Start.Sub(last.End.Add(3 * max(period, verifyDelayFactor*tried.Changes.VerifyTime))); !required && late > 0 {
			return fmt.Errorf("run %d at %v starts with a verification overdue since %v", i, r.Start, late)
		}
		if r.Verify && r.Err == nil && r.plan.reading != skipped {
			if tried = r; !r.Changes.Interrupted {
				last = r
			}
		}
		if required && r.Err == nil && last.End.IsZero() {
			last = r
		}
	}
	return nil
}

// prompt checks that a change waits for the minimum period and for the run in progress, and that
// a verification in progress ends for it.
func prompt(seen []Result) error {
	const writing = 350 * time.Millisecond // by both Backends, after reading
	var wrote time.Time
	for i, r := range seen {
		if i > 0 && !r.Queued.IsZero() && seen[i-1].Err == nil {
			before := seen[i-1]
			from := r.Queued
			if earliest := wrote.Add(testMin); from.Before(earliest) {
				from = earliest
			}
			if wait := r.Start.Sub(from); wait > 0 && !(before.plan.alone && (wait <= writing || before.plan.reading == toTheEnd)) {
				return fmt.Errorf("run %d at %v comes %v late for a change of %v; before it: %+v", i, r.Start, wait, r.Queued, before.plan)
			}
		}
		if !r.plan.alone {
			wrote = r.End
		}
	}
	return nil
}

// wentOn checks that what is not done is gone on with in the time that was asked for.
func wentOn(seen []Result) error {
	for i, r := range seen {
		if r.Err != nil || r.Changes.Again == 0 {
			continue
		}
		if i == len(seen)-1 {
			return errors.New("a run that asked for another one is the last")
		}
		if wait := seen[i+1].Start.Sub(r.End); wait > max(r.Changes.Again, testMin) {
			return fmt.Errorf("run %d starts %v after the one before it, which asked for %v", i+1, wait, r.Changes.Again)
		}
	}
	return nil
}

// someSnapshot is a cluster of one Service with an endpoint on this node.
func someSnapshot(resourceVersion string) topology.Snapshot {
	svc := &corev1.Service{Spec: corev1.ServiceSpec{
		ClusterIP: "10.96.0.10", ClusterIPs: []string{"10.96.0.10"},
		Ports: []corev1.ServicePort{{Port: 53, Protocol: corev1.ProtocolUDP}},
	}}
	svc.Namespace, svc.Name, svc.UID, svc.ResourceVersion = "default", "dns", "uid", resourceVersion
	return topology.Snapshot{Node: "a", Services: []*corev1.Service{svc}}
}
