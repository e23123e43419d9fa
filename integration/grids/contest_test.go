package grids

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// rival keeps writing the replicas of a child, as fast as the API server takes it.
type rival struct {
	wrote   atomic.Int64
	end     chan struct{}
	running sync.WaitGroup
}

func (w *world) rival(child string) *rival {
	r := &rival{end: make(chan struct{})}
	r.running.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-r.end:
				return
			default:
			}
			o := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: child}}
			patch := fmt.Sprintf(`{"spec":{"replicas":%d}}`, 10+i%2)
			if err := w.client.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("rival")); err != nil {
				w.t.Errorf("the rival: %v", err)
				return
			}
			r.wrote.Add(1)
		}
	})
	return r
}

func (r *rival) stop() {
	close(r.end)
	r.running.Wait()
}

// more waits until the rival has written n times more.
func (w *world) more(r *rival, n int64) {
	w.t.Helper()
	want := r.wrote.Load() + n
	wait.Until(w.t, fmt.Sprintf("the rival has written %d times more", n), func() error {
		now := r.wrote.Load()
		return wait.Check(now >= want, "%d more to come", want-now)
	})
}

// TestContestedChild: a rival that writes a child without end. The clock of the controllers does
// not move, so that the numbers of writes do not depend on how fast this machine is.
func TestContestedChild(t *testing.T) {
	nodes.Undelayed(t, "the rival never pauses, and would always be quicker")
	w := newWorld(t, map[string]string{"bj-1": "beijing", "gz-1": "guangzhou"})
	w.apply(deploymentGrid("web", "replicas: 2"))
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
	w.reconciled(&v1.DeploymentGrid{}, "web")
	before, _ := get(w, &appsv1.Deployment{}, "web-beijing")
	w.freeze(0)
	w.count.Reset()
	r := w.rival("web-beijing")
	stop := sync.OnceFunc(r.stop)
	t.Cleanup(stop)
	row := w.expectRow("web", "beijing", v1.UnitFailed, "Contested")
	t.Logf("the row says: %s", row.Message)
	if !strings.Contains(row.Message, "web-beijing") {
		t.Errorf("it does not name the child")
	}
	w.more(r, 300)
	w.expectRepairs("web-beijing", 6)
	for step, pause := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
		w.freeze(pause)
		w.reconciled(&v1.DeploymentGrid{}, "web")
		w.more(r, 100)
		w.expectRepairs("web-beijing", 7+step)
	}
	if n := w.applies("web-guangzhou"); n != 0 {
		t.Errorf("the other child was applied %d times", n)
	}
	w.patch(&v1.DeploymentGrid{}, "web", `{"metadata":{"labels":{"team":"blue"}}}`)
	wait.Until(w.t, "what the Grid newly asks for is applied meanwhile", func() error {
		d, _ := get(w, &appsv1.Deployment{}, "web-beijing")
		return wait.Check(d.Labels["team"] == "blue", "it is not")
	})
	w.more(r, 10)
	stop()
	w.freeze(30 * time.Second)
	w.reconciled(&v1.DeploymentGrid{}, "web")
	wait.Until(w.t, "the drift is repaired", func() error {
		d, _ := get(w, &appsv1.Deployment{}, "web-beijing")
		return wait.Check(*d.Spec.Replicas == 2 && d.UID == before.UID, "%d replicas, UID %s", *d.Spec.Replicas, d.UID)
	})
	row = w.expectRow("web", "beijing", v1.UnitFailed, "Contested")
	if !strings.Contains(row.Message, "rival took .spec.replicas") {
		t.Errorf("it does not name the rival: %s", row.Message)
	}
	w.freeze(time.Minute)
	w.reconciled(&v1.DeploymentGrid{}, "web")
	w.expectRow("web", "beijing", v1.UnitProgressing, "")
	events := w.kubectl("", "get", "events.events.k8s.io", "-o", `jsonpath={range .items[?(@.reason=="Contested")]}{.reason} {.series.count}{"\n"}{end}`)
	if n := strings.Count(events, "Contested"); n != 1 {
		t.Errorf("%d Events, want 1: %s", n, events)
	}
}

// expectRepairs: a child was repaired a number of times. Each is one apply, or several if all
// except the last met another write.
func (w *world) expectRepairs(child string, want int) {
	w.t.Helper()
	const attempts = 5 // of one repair
	accepted := w.count.Requests(func(r nodes.Request) bool { return r.Verb == "apply" && r.Name == child && r.Code == 200 })
	if n := w.applies(child); n < want || n > want*attempts || len(accepted) > want {
		w.t.Errorf("%d applies of %s, of which %d were accepted, for %d repairs", n, child, len(accepted), want)
	}
}
