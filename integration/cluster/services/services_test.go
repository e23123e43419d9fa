package services

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/need"
	"gridproxy/integration/env/wait"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// abreast is how many scenarios run at the same time: they wait more than they work.
const abreast = 10

// TestScenarios runs all scenarios with gridproxy, then all with kube-proxy, for the table in
// docs/scenarios.md. The suite passes -short, which leaves out kube-proxy: what it does not pass
// is no failure.
func TestScenarios(t *testing.T) {
	need.Cluster(t)
	all := scenarios()
	var names, proxies []string
	for _, s := range all {
		names = append(names, s.name)
	}
	results := map[string]map[string]result{}
	arms := []proxy{gridproxy(), kubeProxy()}
	if testing.Short() {
		arms = arms[:1]
	}
	for _, p := range arms {
		proxies = append(proxies, p.name)
		t.Run(p.name, func(t *testing.T) {
			begin := time.Now()
			a := newArm(t, p)
			t.Logf("images, cluster, %s and shared Pods took %s", p.name, time.Since(begin).Round(time.Second))
			begin = time.Now()
			results[p.name] = runAll(t, a, all, p.name == "gridproxy")
			t.Logf("the scenarios took %s with %s", time.Since(begin).Round(time.Second), p.name)
		})
	}
	t.Logf("Kubernetes' end-to-end scenarios, side by side\n%s", table(names, proxies, results))
}

// runAll runs the scenarios side by side, and then those that must be alone, each as a subtest. mustPass
// says whether a scenario that fails is a failure of the test.
func runAll(t *testing.T, a *arm, all []scenario, mustPass bool) map[string]result {
	var mu sync.Mutex
	results := map[string]result{}
	run := func(i int) {
		t.Run(all[i].name, func(t *testing.T) {
			r := runOne(t, a, all[i], fmt.Sprintf("s%03d", i))
			mu.Lock()
			results[all[i].name] = r
			mu.Unlock()
			switch {
			case r.verdict == "skipped":
				t.Skip(r.why)
			case r.verdict == failedVerdict && mustPass:
				t.Error(r.why)
			case r.verdict == failedVerdict:
				t.Logf("%s does not pass: %s", a.proxy.name, r.why)
			}
		})
	}
	var running sync.WaitGroup
	places := make(chan struct{}, abreast)
	for i := range all {
		if !all[i].alone {
			running.Go(func() {
				places <- struct{}{}
				defer func() { <-places }()
				run(i)
			})
		}
	}
	running.Wait()
	for i := range all {
		if all[i].alone {
			run(i)
		}
	}
	return results
}

func runOne(t *testing.T, a *arm, s scenario, id string) result {
	begin := time.Now()
	attempt := try(t, func(tb testing.TB) {
		w := &world{TB: tb, arm: a, id: id}
		defer func() {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			w.tidy(ctx)
		}()
		s.run(w)
	})
	return result{attempt.verdict(), attempt.why(), time.Since(begin)}
}

// endpoint waits until every slice entry of a Pod is in a state.
func (w *world) endpoint(pod, what string, holds func(ready, serving, terminating bool) bool) {
	w.Helper()
	wait.Until(w.TB, "endpoint "+pod+" "+what, func() error {
		slices, err := w.Client.DiscoveryV1().EndpointSlices(namespace).List(w.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		seen := 0
		for _, s := range slices.Items {
			for _, e := range s.Endpoints {
				if e.TargetRef == nil || e.TargetRef.Name != pod {
					continue
				}
				seen++
				if ready, serving, terminating := conditions(e); !holds(ready, serving, terminating) {
					return fmt.Errorf("in slice %s it is ready=%t serving=%t terminating=%t", s.Name, ready, serving, terminating)
				}
			}
		}
		return wait.Check(seen != 0, "no slice has it")
	})
}

func conditions(e discoveryv1.Endpoint) (ready, serving, terminating bool) {
	c := e.Conditions
	ready = c.Ready == nil || *c.Ready
	serving = c.Serving == nil && ready || c.Serving != nil && *c.Serving
	return ready, serving, c.Terminating != nil && *c.Terminating
}
