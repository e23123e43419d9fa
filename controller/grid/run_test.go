package grid

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid/expand"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// writing is an API server whose answers a test decides. It counts the applies that have ended.
type writing struct {
	cached
	mu    sync.Mutex
	ended []string // the children
	apply func(ctx context.Context, name string) error
	gone  bool // the cache shows that the Grid is being deleted
}

// Apply asks the test.
func (w *writing) Apply(ctx context.Context, o kruntime.ApplyConfiguration, _ ...client.ApplyOption) error {
	name := o.(interface{ GetName() string }).GetName()
	err := w.apply(ctx, name)
	if err == nil {
		err = accept(o)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, name)
	return err
}

// Patch refuses every patch.
func (*writing) Patch(context.Context, client.Object, client.Patch, ...client.PatchOption) error {
	return errRefused
}

// Delete notes itself.
func (w *writing) Delete(context.Context, client.Object, ...client.DeleteOption) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = append(w.ended, "delete")
	return nil
}

// Get answers with the Grid.
func (w *writing) Get(_ context.Context, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.grid.DeepCopyInto(o.(*v1.DeploymentGrid))
	if w.gone {
		now := metav1.Now()
		o.SetDeletionTimestamp(&now)
	}
	return nil
}

func (w *writing) done() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ended)
}

// rollout is an execution on such a server, and steps that apply so many children.
func rollout(children int) (*execution, *writing, []expand.Step) {
	e := executionOn(&server{grid: foo("1")})
	w := &writing{cached: e.client.(cached), apply: func(context.Context, string) error { return nil }}
	e.client = w
	var steps []expand.Step
	for i := range children {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprintf("foo-%02d", i)}}}
		o.SetGroupVersionKind(expand.DeploymentGrid.Child())
		steps = append(steps, expand.Apply{Child: expand.Child{Name: o.GetName(), Object: o}, Repair: i%2 == 0})
	}
	return e, w, steps
}

// TestSlowChildHoldsUpNoOther: one apply that ends only when all others have ended.
func TestSlowChildHoldsUpNoOther(t *testing.T) {
	e, w, steps := rollout(40)
	others := make(chan struct{})
	var count sync.WaitGroup
	count.Add(len(steps) - 1)
	go func() {
		count.Wait()
		close(others)
	}()
	w.apply = func(ctx context.Context, name string) error {
		if name != "foo-03" {
			defer count.Done()
			return nil
		}
		select {
		case <-others:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := e.run(ctx, steps); err != nil || w.done() != len(steps) {
		t.Errorf("%d of %d applies, %v", w.done(), len(steps), err)
	}
	if n := len(e.known.applied); n != len(steps) || len(e.observed.Children) != n || len(e.known.repairs) != n/2 {
		t.Errorf("%d applies are remembered, %d children and %d repairs", n, len(e.observed.Children), len(e.known.repairs))
	}
}

// TestAtMostSoManyWriters write at the same time, and no two of them one child.
func TestAtMostSoManyWriters(t *testing.T) {
	e, w, steps := rollout(40)
	steps = append(steps, steps...)
	var mu sync.Mutex
	now, all := map[string]int{}, make(chan struct{})
	full := sync.OnceFunc(func() { close(all) })
	w.apply = func(_ context.Context, name string) error {
		mu.Lock()
		now[name]++
		if len(now) == writers {
			full()
		}
		if len(now) > writers || now[name] > 1 {
			t.Errorf("at the same time: %v", now)
		}
		mu.Unlock()
		<-all
		for range 1000 {
			runtime.Gosched() // for one more to come, if one does
		}
		mu.Lock()
		defer mu.Unlock()
		delete(now, name)
		return nil
	}
	if err := e.run(t.Context(), steps); err != nil || w.done() != len(steps) {
		t.Errorf("%d of %d applies, %v", w.done(), len(steps), err)
	}
}

// TestExecutionEnds: after its time no other step begins, and the Grid is reconciled again at once.
func TestExecutionEnds(t *testing.T) {
	e, w, steps := rollout(100)
	var mu sync.Mutex
	now := time.Unix(0, 0)
	e.now = func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}
	w.apply = func(context.Context, string) error {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(executionTimeout / 4)
		return nil
	}
	steps = append(steps, expand.Delete{Name: "foo-99", Value: "99", UID: "9", ResourceVersion: "5", Released: true})
	if err := e.run(t.Context(), steps); err != nil {
		t.Fatal(err)
	}
	if n := w.done(); n < 4 || n > 4+writers || e.again != noDelay || slices.Contains(w.ended, "delete") {
		t.Errorf("%d steps, again after %s: %v", n, e.again, w.ended)
	}
}

// TestRemovalsComeLast: not before all applies have ended, some with an error. All errors are
// reported.
func TestRemovalsComeLast(t *testing.T) {
	e, w, steps := rollout(40)
	w.apply = func(_ context.Context, name string) error {
		if name == "foo-00" || name == "foo-39" {
			return errors.New("no answer")
		}
		return nil
	}
	steps = append(steps, expand.Delete{Name: "foo-99", Value: "99", UID: "9", ResourceVersion: "5", Released: true})
	err := e.run(t.Context(), steps)
	if err == nil || !strings.Contains(err.Error(), "foo-00") || !strings.Contains(err.Error(), "foo-39") || strings.Count(err.Error(), "no answer") != 2 {
		t.Errorf("the error is %v", err)
	}
	if i := slices.Index(w.ended, "delete"); i != 40 || len(w.ended) != 41 {
		t.Errorf("the deletion is step %d of %d", i, len(w.ended))
	}
}

// TestApplyingEndsWithTheGrid: once the cache shows that the Grid is being deleted, only what has
// begun ends.
func TestApplyingEndsWithTheGrid(t *testing.T) {
	e, w, steps := rollout(100)
	w.apply = func(_ context.Context, name string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gone = w.gone || name == "foo-10"
		return nil
	}
	steps = append(steps, expand.Delete{Name: "foo-99", Value: "99", UID: "9", ResourceVersion: "5", Released: true})
	if err := e.run(t.Context(), steps); err != nil || w.done() > 11+writers || slices.Contains(w.ended, "delete") {
		t.Errorf("%d steps, %v", w.done(), err)
	}
}

// TestGridIsReadLiveOnce: also if several orphans are adopted at the same time.
func TestGridIsReadLiveOnce(t *testing.T) {
	e, _, steps := rollout(40)
	s := e.live.(*server)
	s.grid = e.object.(*v1.DeploymentGrid)
	for i := range steps {
		step := steps[i].(expand.Apply)
		step.UID, step.Adopt = "9", true
		steps[i] = step
	}
	if err := e.run(t.Context(), steps); err != nil || s.gets != 1 {
		t.Errorf("%d reads, %v", s.gets, err)
	}
}

// TestUnservedNeedsNoPlace: the child of a unit that never served is deleted without a Spend
// before.
func TestUnservedNeedsNoPlace(t *testing.T) {
	e, w, steps := rollout(1)
	steps = append(steps, expand.Delete{Name: "foo-99", Value: "99", UID: "9", ResourceVersion: "5", Unserved: true})
	if err := e.run(t.Context(), steps); err != nil || !slices.Contains(w.ended, "delete") || e.removed != 0 {
		t.Errorf("%d places are taken by %v: %v", e.removed, w.ended, err)
	}
}
