package expand

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// large is what is pasted into many templates: a Pod with several containers, probes and variables.
func large() []byte {
	var containers []string
	for i := range 4 {
		var env []string
		for j := range 20 {
			env = append(env, fmt.Sprintf(`{"name": "NAME_%d", "value": "value %d of a variable"}`, j, j))
		}
		containers = append(containers, fmt.Sprintf(`{"name": "c%d", "image": "registry.example.com/app:%d", "env": [%s], "ports": [{"containerPort": %d}],
			"resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}},
			"readinessProbe": {"httpGet": {"path": "/ready", "port": 80}, "periodSeconds": 5}}`, i, i, strings.Join(env, ","), 8000+i))
	}
	return []byte(`{"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}},
		"spec": {"containers": [` + strings.Join(containers, ",") + `]}}}`)
}

// crowdAtRest is a Grid with many units in which there is nothing to do.
func crowdAtRest(b *testing.B, units int) *cluster {
	c := newCluster(b)
	c.grid.Template = large()
	for i := range units {
		c.appear(fmt.Sprintf("unit-%04d", i))
	}
	c.reconcile()
	if left := c.reconcile(); len(left) > 0 {
		b.Fatalf("%d steps are left", len(left))
	}
	for _, l := range c.objects {
		l.State = fmt.Appendf(nil, `{"replicas":2,"readyReplicas":2,"conditions":[{"type":"Available","status":"True","lastUpdateTime":%q,"reason":"MinimumReplicasAvailable"}]}`,
			start().Format(time.RFC3339))
	}
	return c
}

// BenchmarkGridAtRest is what one reconcile of a Grid with 1,000 units at rest costs: the decision,
// the status and the states.
func BenchmarkGridAtRest(b *testing.B) {
	c := crowdAtRest(b, 1000)
	observed := c.observe(nil)
	observed.Memo, observed.Decided = &Memo{}, true
	b.ReportAllocs()
	for b.Loop() {
		if plan := Decide(observed); len(plan.Steps) > 0 {
			b.Fatal("there is something to do")
		}
		s, states := Report(observed)
		if len(s.Units) != 1000 || len(states) == 0 {
			b.Fatal("the status is not whole")
		}
	}
}

// BenchmarkDistributedGridAtRest is what the status of a Grid costs that is in 100 clusters with 50
// units each.
func BenchmarkDistributedGridAtRest(b *testing.B) {
	var values []string
	for i := range 50 {
		values = append(values, fmt.Sprintf("unit-%02d", i))
	}
	observed := crowdAtRest(b, 50).observe(nil)
	for i := range 100 {
		observed.Fleet = append(observed.Fleet, reporting(fmt.Sprintf("edge-%02d", i), ready(values...)))
	}
	observed.Memo = &Memo{}
	b.ReportAllocs()
	for b.Loop() {
		if s, _ := Report(observed); s.ReadyRate != "5050/5050" {
			b.Fatal(s.ReadyRate)
		}
	}
}
