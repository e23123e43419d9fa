package grids

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const killsEach = 5

// kills: while ten changes are made, four processes are killed at random moments and started again,
// twenty times in all. The end is what it is without, no child was made twice, and nothing is left
// of what is gone. GRIDPROXY_FEDERATION_SEED decides the order of the changes, the processes and
// the moments.
func (d *distribution) kills() {
	seed := rand.Uint64()
	if text := os.Getenv("GRIDPROXY_FEDERATION_SEED"); text != "" {
		var err error
		seed, err = strconv.ParseUint(text, 10, 64)
		must(d.t, err)
	}
	d.t.Logf("seed %d (repeat with GRIDPROXY_FEDERATION_SEED=%d)", seed, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	d.populate()
	services := d.services()
	histories := map[*site]*history{}
	for _, s := range d.sites() {
		histories[s] = newHistory(d.t, s.Client.AppsV1().RESTClient())
	}
	d.disturb(random)
	for _, s := range d.sites() {
		took := d.took("the end in "+s.name, func() error { return d.ended(s) })
		d.t.Logf("as without kills in %s: %s", s.name, took.Round(10*time.Millisecond))
	}
	wait.Until(d.t, "the hub has everything", func() error { return d.areReady("6/6") })
	wait.Until(d.t, "nothing is left of what is gone", d.leftovers)
	for s, h := range histories {
		for child, objects := range h.made() {
			if objects != 1 {
				d.t.Errorf("%s of %s was made %d times", child, s.name, objects)
			}
		}
	}
	if now := d.services(); !maps.Equal(services, now) {
		d.t.Errorf("the UIDs of Services were %v and are %v", services, now)
	}
}

// populate makes what is changed later. Who is killed does not wait until its own Lease has ended,
// so that most of the changes are made while it works.
func (d *distribution) populate() {
	for _, s := range []*site{d.hub, d.west} {
		s.options.Flags = append(s.options.Flags, "--leader-elect=false")
		s.controller.Stop()
		d.startController(s)
	}
	d.west.SetLabels(d.t, "west-1", map[string]string{"zone": "zone5"}) // as after cutOff
	for name, region := range map[string]string{west: "eu", east: "us"} {
		d.hub.MustKubectl(d.t, "label", "fleetcluster", name, "region="+region)
	}
	for _, s := range d.sites() {
		s.MustKubectl(d.t, "create", "namespace", "other")
	}
	d.hub.Apply(d.t, strings.ReplaceAll(gridOfKey("removed", "zone", 1), `"namespace":"default"`, `"namespace":"other"`))
	d.hub.MustKubectl(d.t, "label", "deploymentgrid", "removed", "--namespace=other", v1alpha1.LabelFederated+"=yes")
	for _, name := range []string{"edited", "removed", "unlabelled", "narrowed", "late"} {
		d.hub.Apply(d.t, gridOfKey(name, "zone", 1))
		if name == "unlabelled" || name == "narrowed" { // no grace: they leave at once
			d.hub.MustKubectl(d.t, "annotate", "deploymentgrid", name, v1.AnnotationRemovalGrace+"=0s", v1.AnnotationRemovalBudget+"=100%")
		}
		if name != "late" {
			d.label(name, v1alpha1.LabelFederated+"=yes")
		}
	}
	for _, s := range []*site{d.west, d.east} {
		unit := map[*site]string{d.west: "zone5", d.east: "zone2"}[s]
		for _, name := range []string{demo, "edited", "removed", "unlabelled", "narrowed"} {
			wait.Until(d.t, name+" in "+s.name, func() error {
				return s.client.Get(d.t.Context(), client.ObjectKey{Namespace: "default", Name: name + "-" + unit}, &appsv1.Deployment{})
			})
		}
		wait.Until(d.t, "the Grid of another namespace in "+s.name, func() error {
			return s.client.Get(d.t.Context(), client.ObjectKey{Namespace: "other", Name: "removed-" + unit}, &appsv1.Deployment{})
		})
	}
}

func (d *distribution) label(grid, label string) {
	d.t.Helper()
	d.hub.MustKubectl(d.t, "label", "deploymentgrid", grid, label)
}

// changes can be made in any order: the end is the same.
func (d *distribution) changes() map[string]func() {
	return map[string]func(){
		"create": func() {
			d.hub.Apply(d.t, gridOfKey("created", "zone", 1))
			d.label("created", v1alpha1.LabelFederated+"=yes")
		},
		"edit":      func() { d.hub.Apply(d.t, gridOfKey("edited", "zone", 2)) },
		"edit demo": func() { d.setReplicas(3) },
		"delete":    func() { d.hub.MustKubectl(d.t, "delete", "deploymentgrid", "removed", "--wait=false") },
		"delete the last of a namespace": func() {
			d.hub.MustKubectl(d.t, "delete", "deploymentgrid", "removed", "--namespace=other", "--wait=false")
		},
		"label":   func() { d.label("late", v1alpha1.LabelFederated+"=yes") },
		"unlabel": func() { d.label("unlabelled", v1alpha1.LabelFederated+"-") },
		"deselect": func() {
			d.hub.MustKubectl(d.t, "annotate", "deploymentgrid", "narrowed", v1alpha1.AnnotationClusters+"=region=us")
		},
		"a new unit":   func() { d.west.SetLabels(d.t, "west-2", map[string]string{"zone": "zone6"}) },
		"a known unit": func() { d.east.SetLabels(d.t, "east-1", map[string]string{"zone": "zone1"}) },
	}
}

func (d *distribution) disturb(random *rand.Rand) {
	victims := map[string]func(){}
	for _, s := range []*site{d.hub, d.west} {
		victims["engine of "+s.name] = func() { s.engine.Stop(syscall.SIGKILL, 0); d.startEngine(s) }
		victims["controller of "+s.name] = func() { s.controller.Kill(); d.startController(s) }
	}
	var order []string
	for range killsEach {
		order = append(order, slices.Sorted(maps.Keys(victims))...)
	}
	random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	changes := d.changes()
	names := slices.Sorted(maps.Keys(changes))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var log []string
	for i, name := range names {
		changes[name]()
		log = append(log, name)
		for _, victim := range order[len(order)*i/len(names) : len(order)*(i+1)/len(names)] {
			pause := time.Duration(random.Int64N(int64(3 * time.Second)))
			pauseFor(d.t, pause)
			victims[victim]()
			log = append(log, fmt.Sprintf("kill -9 of the %s after %s", victim, pause.Round(time.Millisecond)))
		}
	}
	d.t.Logf("%d changes and %d kills: %s", len(names), len(order), strings.Join(log, ", "))
}

// ended is whether a cluster has what it has without kills: children with their ready Pods, and
// Grids.
func (d *distribution) ended(s *site) error {
	units := map[*site][]string{d.hub: {"zone0"}, d.west: {"zone1", "zone5", "zone6"}, d.east: {"zone1", "zone2"}}[s]
	grids := map[string]int32{demo: 3, "created": 1, "edited": 2, "late": 1}
	if s != d.west {
		grids["narrowed"] = 1
	}
	if s == d.hub {
		grids["unlabelled"] = 1
	}
	want := map[string]int32{}
	for grid, replicas := range grids {
		for _, unit := range units {
			want[grid+"-"+unit] = replicas
		}
	}
	var list appsv1.DeploymentList
	if err := s.client.List(d.t.Context(), &list); err != nil {
		return err
	}
	got := map[string]int32{}
	for _, c := range list.Items {
		got[c.Name] = c.Status.ReadyReplicas
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("ready Pods by Deployments are %v, want %v", got, want)
	}
	return s.lists("deploymentgrids,servicegrids", append(slices.Collect(maps.Keys(grids)), "servicegrid-demo")...)
}

// lists is whether the objects of some kinds in all namespaces have these names.
func (s *site) lists(kinds string, want ...string) error {
	text, err := s.Kubectl("get", kinds, "--all-namespaces", "-o", "name")
	var got []string
	for _, line := range strings.Fields(text) {
		_, name, _ := strings.Cut(line, "/")
		got = append(got, name)
	}
	slices.Sort(got)
	slices.Sort(want)
	return errors.Join(err, wait.Check(slices.Equal(got, want), "%s of %s are %v, want %v", kinds, s.name, got, want))
}

// leftovers is whether there are bundles, copies, objects of Flux and reports of what is
// distributed alone.
func (d *distribution) leftovers() error {
	for _, l := range []struct {
		s     *site
		kinds string
		want  []string
	}{
		{d.hub, "gridbundles", []string{"default", "default", "default.applied"}}, // two for members, the copy for east
		{d.hub, "kustomizations,externalartifacts", []string{"grids-default", "grids-default"}},
		{d.west, "gridbundles", []string{"default.applied"}},
		{d.west, "kustomizations,externalartifacts", []string{"grids-default", "grids-default"}},
	} {
		if err := l.s.lists(l.kinds, l.want...); err != nil {
			return err
		}
	}
	var list v1alpha1.GridReportList
	if err := d.hub.client.List(d.t.Context(), &list); err != nil {
		return err
	}
	var got, want []string
	for _, r := range list.Items {
		got = append(got, r.Namespace+" "+r.Spec.Namespace+"/"+r.Spec.Name)
	}
	for _, name := range []string{"created", demo, "edited", "late", "servicegrid-demo"} {
		want = append(want, "fleet-west default/"+name, "fleet-east default/"+name)
	}
	want = append(want, "fleet-east default/narrowed")
	slices.Sort(got)
	slices.Sort(want)
	return wait.Check(slices.Equal(got, want), "the hub has reports %v, want %v", got, want)
}

// services are the UIDs of the ServiceGrid's Service, by cluster.
func (d *distribution) services() map[string]string {
	d.t.Helper()
	uids := map[string]string{}
	for _, s := range d.sites() {
		uids[s.name] = s.MustKubectl(d.t, "get", "service", "servicegrid-demo-svc", "-o", "jsonpath={.metadata.uid}")
	}
	return uids
}
