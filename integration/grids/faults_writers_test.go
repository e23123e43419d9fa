package grids

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// patchGrids patches a DeploymentGrid, and the ServiceGrid of the name.
func (f *fleet) patchGrids(name, deployment, service string) {
	f.t.Helper()
	for patch, o := range map[string]client.Object{deployment: &v1.DeploymentGrid{}, service: &v1.ServiceGrid{}} {
		o.SetNamespace("default")
		o.SetName(name)
		must(f.t, f.client.Patch(f.t.Context(), o, client.RawPatch(types.JSONPatchType, []byte(patch)), client.FieldOwner("user")))
	}
}

const (
	stormers = 4
	edits    = 150 // of each
)

// stormer edits children and Grids as fast as it can. What it writes to an annotation of its own must stay.
type stormer struct {
	client client.Client
	name   string
	random *rand.Rand
	wrote  map[string]string // by child
}

// storm: others write the same objects all the time.
func (f *faults) storm() {
	t := f.t
	c := f.controller(append(slow, "--leader-elect=false")...)
	c.WaitReady(t)
	before := f.stand()
	names := make([]string, 0, len(before))
	for name := range before {
		names = append(names, name)
	}
	slices.Sort(names)
	f.rollout()
	var running sync.WaitGroup
	var all []*stormer
	errs := make([]error, stormers)
	for i := range stormers {
		s := &stormer{client: f.client, name: fmt.Sprintf("storm-%d", i), random: rand.New(rand.NewPCG(1, uint64(i))), wrote: map[string]string{}}
		all = append(all, s)
		running.Go(func() {
			for n := range edits {
				if err := s.edit(t.Context(), n, names[s.random.IntN(len(names))]); err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	running.Wait()
	must(f.t, errors.Join(errs...))
	f.converge(before, c)
	deployments, err := f.deployments()
	must(f.t, err)
	for _, s := range all {
		for child, want := range s.wrote {
			if got := deployments[child].Annotations["example.com/"+s.name]; got != want {
				t.Errorf("the annotation of %s on %s is %q, want %q", s.name, child, got, want)
			}
		}
	}
}

// edit makes one of the changes that others make. The selector label stays: without it and without an owner, which
// another edit takes away, an object is not the Grid's any more.
func (s *stormer) edit(ctx context.Context, n int, child string) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: child}}
	merge := func(o client.Object, format string, args ...any) error {
		patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, format, args...))
		return s.client.Patch(ctx, o, patch, client.FieldOwner(s.name))
	}
	switch s.random.IntN(7) {
	case 0:
		return merge(d, `{"spec":{"replicas":0,"progressDeadlineSeconds":%d}}`, 500+n)
	case 1:
		return merge(d, `{"metadata":{"labels":{%q:null}}}`, v1.LabelKey)
	case 2:
		return merge(d, `{"metadata":{"ownerReferences":null}}`)
	case 3:
		return merge(d, `{"spec":{"template":{"spec":{"nodeSelector":{"location":"nowhere"}}}}}`)
	case 4:
		return s.put(ctx, d)
	case 5:
		s.wrote[child] = fmt.Sprint(n)
		return merge(d, `{"metadata":{"annotations":{"example.com/%s":"%d"}}}`, s.name, n)
	default:
		grid := child[:strings.Index(child, "-unit-")]
		g := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: grid}}
		return merge(g, `{"metadata":{"labels":{"storm":"%d"},"annotations":{"example.com/storm":"%d"}}}`, n, n)
	}
}

// put writes a whole object, as many a controller does, and does not mind if another writer was
// faster.
func (s *stormer) put(ctx context.Context, d *appsv1.Deployment) error {
	err := s.client.Get(ctx, client.ObjectKeyFromObject(d), d)
	if err == nil {
		d.Spec.Template.Spec.Containers[0].Image = "storm:1"
		err = s.client.Update(ctx, d, client.FieldOwner(s.name))
	}
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// deletions: children, and whole Grids, are deleted while they are changed. A Grid comes back at once, when its name
// is free, and finds children that the garbage collector has not deleted yet. Nothing that is gone comes to life again in
// a cache (B-16): the children have the new Grid's UID.
func (f *faults) deletions() {
	t := f.t
	c := f.controller(append(slow, "--leader-elect=false")...)
	c.WaitReady(t)
	f.rollout()
	random := rand.New(rand.NewPCG(2, 2))
	for range 40 {
		child := f.grids[random.IntN(len(f.grids))] + "-" + f.units[random.IntN(len(f.units))]
		f.deleteChild(child)
	}
	for i, propagation := range []metav1.DeletionPropagation{
		metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
	} {
		f.recreate(f.grids[i], propagation)
		f.deleteChild(f.grids[i] + "-" + f.units[i])
	}
	f.converge(nil, c)
}

func (f *faults) deleteChild(name string) {
	f.t.Helper()
	err := f.client.Delete(f.t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil {
		f.deleted[name]++
	}
	must(f.t, client.IgnoreNotFound(err))
}

// recreate deletes a Grid, and makes it again with another UID.
func (f *faults) recreate(name string, propagation metav1.DeletionPropagation) {
	f.t.Helper()
	old, err := f.grid(name)
	must(f.t, err)
	standing := f.stand()
	must(f.t, f.client.Delete(f.t.Context(), old, client.PropagationPolicy(propagation)))
	for _, unit := range f.units {
		child := name + "-" + unit
		// An orphan stays, unless it is being made just now: that one's owner is gone, and it is collected.
		if _, stands := standing[child]; !stands || propagation != metav1.DeletePropagationOrphan {
			f.deleted[child]++
		}
	}
	wait.Until(f.t, name+" is made again", func() error {
		g := &v1.DeploymentGrid{ObjectMeta: metav1.ObjectMeta{Namespace: old.Namespace, Name: name, Labels: old.Labels}, Spec: old.Spec}
		return f.client.Create(f.t.Context(), g)
	})
}
