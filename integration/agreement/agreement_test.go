package agreement

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"gridproxy/integration/env/need"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// What a person may set to repeat or widen a run.
const (
	envSeed     = "GRIDPROXY_AGREEMENT_SEED"     // else a new one each run
	envClusters = "GRIDPROXY_AGREEMENT_CLUSTERS" // else 500
	envNumber   = "GRIDPROXY_AGREEMENT_NUMBER"   // only this Cluster of the seed
)

const defaultClusters = 500

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // kube-proxy tells of every port it ignores
	os.Exit(m.Run())
}

func newMachines(t *testing.T) *Machines {
	t.Helper()
	m := &Machines{}
	t.Cleanup(func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
	return m
}

// requireNamespace skips a test, loudly, where no network namespace can be made.
func requireNamespace(t *testing.T) {
	t.Helper()
	machines := newMachines(t)
	err := machines.in(nil, func() error { return nil })
	need.That(t, err == nil, fmt.Sprintf("kube-proxy needs a network namespace of its own: %v; run the test as root, or under `unshare -rn`", err))
}

func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text, found := os.LookupEnv(name)
	if !found {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q is not a whole number: %v", name, text, err)
	}
	return n
}

// drawn returns a seed, the number of its first Cluster and the one behind that of its last.
func drawn(t *testing.T, count string, otherwise uint64) (seed, first, last uint64) {
	t.Helper()
	seed, last = number(t, envSeed, rand.Uint64()), number(t, count, otherwise)
	if _, found := os.LookupEnv(envNumber); found {
		first = number(t, envNumber, 0)
		last = first + 1
	}
	t.Logf("seed %d (repeat with %s=%d)", seed, envSeed, seed)
	return seed, first, last
}

// wantEnds fails a test in which too few packets met one of the ends.
func wantEnds(t *testing.T, met map[string]int, least int) {
	t.Helper()
	for _, kind := range []string{"accept", "drop", "endpoint", "endpoint masqueraded", "reject"} {
		if met[kind] < least {
			t.Errorf("only %d packets met %q: the clusters drawn do not test it", met[kind], kind)
		}
	}
}

// TestAgreement: gridproxy enforces for every Cluster what kube-proxy would, had it been
// given only the endpoints of the unit, and what refusedOutput says.
func TestAgreement(t *testing.T) {
	requireNamespace(t)
	seed, first, last := drawn(t, envClusters, defaultClusters)
	total := compareAll(t, seed, first, last)
	t.Logf("%d clusters, %d differences: %d packets walked, %d rules of kube-proxy compared, %d health checks asked",
		last-first, len(total.Differences), total.Flows, total.Rules, total.HealthChecks)
	for _, kind := range slices.Sorted(maps.Keys(total.Ends)) {
		t.Logf("  %8d times: %s", total.Ends[kind], kind)
	}
	t.Logf("  %8d rules on purpose: %s", total.Deviating, refusedOutput)
	if last-first >= defaultClusters && !t.Failed() {
		checkCoverage(t, total)
	}
}

// compareAll compares Clusters first to last-1 of a seed. It gives up after a few findings.
func compareAll(t *testing.T, seed, first, last uint64) Comparison {
	var (
		workers sync.WaitGroup
		mu      sync.Mutex // guards total and findings
		total   Comparison
		found   int
	)
	next := atomic.Uint64{}
	next.Store(first)
	for range runtime.GOMAXPROCS(0) {
		machines := newMachines(t)
		workers.Go(func() {
			for n := next.Add(1) - 1; n < last; n = next.Add(1) - 1 {
				c := comparableWith(Draw(seed, n))
				result, err := machines.Compare(c)
				mu.Lock()
				if err != nil {
					t.Errorf("seed %d, cluster %d: %v", seed, n, err)
				}
				if total.add(result); len(result.Differences) > 0 && found < 3 {
					found++
					report(t, machines, c, result)
				}
				stop := err != nil || found == 3
				mu.Unlock()
				if stop {
					return
				}
			}
		})
	}
	workers.Wait()
	return total
}

// checkCoverage fails a run that compared too little to have found anything.
func checkCoverage(t *testing.T, total Comparison) {
	t.Helper()
	wantEnds(t, total.Ends, 1000)
	if total.Deviating < 100 {
		t.Errorf("only %d rules showed %q: the clusters drawn do not test it", total.Deviating, refusedOutput)
	}
	if total.HealthChecks < 100 {
		t.Errorf("only %d health checks were asked", total.HealthChecks)
	}
}

func (r *Comparison) add(other Comparison) {
	if r.Ends == nil {
		r.Ends = map[string]int{}
	}
	r.Flows += other.Flows
	r.Rules += other.Rules
	r.HealthChecks += other.HealthChecks
	r.Deviating += other.Deviating
	r.Differences = append(r.Differences, other.Differences...)
	for kind, n := range other.Ends {
		r.Ends[kind] += n
	}
}

// report fails the test with the smallest Cluster that still shows the first difference's
// kind.
func report(t *testing.T, machines *Machines, c Cluster, result Comparison) {
	t.Helper()
	first := result.Differences[0]
	small := Shrink(c, func(c Cluster) bool {
		r, err := machines.Compare(c)
		return err == nil && len(r.Differences) > 0 && r.Differences[0].Kind == first.Kind
	})
	shown, err := machines.Compare(small)
	if err != nil || len(shown.Differences) == 0 {
		t.Errorf("the smallest cluster does not repeat: %v\n%s", err, small.Manifests())
		return
	}
	t.Errorf("%d differences in one cluster (repeat with %s=%d %s=%d). The first, without what does not matter to it:\n%v\n%s",
		len(result.Differences), envSeed, c.Seed, envNumber, c.Number, shown.Differences[0], small.Manifests())
}
