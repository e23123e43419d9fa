package grids

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/controller/grid/expand"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	selectfields "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// crds are what the controller waits for.
const crds = "../../deploy/crds"

// fleet is a whole cluster with many units of Nodes and many Grids, for grid-controllers that are real processes.
type fleet struct {
	*nodes.Cluster
	t       *testing.T
	client  client.Client // as admin, without any cache
	units   []string
	grids   []string // the names of DeploymentGrids, and of ServiceGrids
	history *history
	timeout wait.Timeout
}

// newFleet starts a cluster with units of so many Nodes each.
func newFleet(t *testing.T, units, size int) *fleet {
	t.Helper()
	f := &fleet{Cluster: nodes.ForTest(t, nodes.Options{Manifests: []string{crds}}), t: t, timeout: wait.Usual}
	f.client = newUserClient(t, f.Admin())
	var all []nodes.Node
	for i := range units {
		f.units = append(f.units, fmt.Sprintf("unit-%02d", i))
		for j := range size {
			all = append(all, nodes.Node{Name: nodeName(f.units[i], j), Labels: map[string]string{"location": f.units[i]}})
		}
	}
	f.AddNodes(t, all...)
	f.history = newHistory(t, f.Client.AppsV1().RESTClient())
	return f
}

func nodeName(unit string, i int) string { return fmt.Sprintf("%s-node-%d", unit, i) }

// run runs a part of a test. Each part relies on those before.
func (f *fleet) run(name string, part func(*fleet)) { runPart(&f.t, name, func() { part(f) }) }

// part is a part of a test of a world.
type part[W any] struct {
	name string
	do   func(W)
}

// runPart runs a part of a test as a subtest, to which *t is set meanwhile. If the part fails,
// the test ends, too.
func runPart(t **testing.T, name string, part func()) {
	outer := *t
	ok := outer.Run(name, func(inner *testing.T) {
		*t = inner
		part()
	})
	if *t = outer; !ok {
		outer.FailNow()
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// controller starts a grid-controller as it is shipped, which is counted and ends with the part of the test.
func (f *fleet) controller(flags ...string) *counted {
	f.t.Helper()
	o := nodes.AsShipped()
	o.Count = &nodes.Count{}
	o.Flags = append(o.Flags, flags...)
	return &counted{GridController: f.GridController(f.t, o), count: o.Count}
}

// counted is a grid-controller with the requests that it made.
type counted struct {
	*nodes.GridController
	count *nodes.Count
}

// writes are those of the controllers of Grids, without Events. Those of NodeUnits, in the same process, write Nodes and
// their own objects.
func (c *counted) writes() []nodes.Request {
	return c.count.Requests(func(r nodes.Request) bool {
		return r.Write() && !strings.HasPrefix(r.Resource, "events") && r.Resource != "nodes" && !strings.HasSuffix(r.Resource, ".site.superedge.io")
	})
}

// addGrids applies pairs of a DeploymentGrid and a ServiceGrid of the same names.
func (f *fleet) addGrids(count int, template string) {
	f.t.Helper()
	var all []string
	for i := range count {
		name := fmt.Sprintf("grid-%02d", i)
		f.grids = append(f.grids, name)
		all = append(all, deploymentGrid(name, template), strings.ReplaceAll(serviceGrid, "{name: web,", "{name: "+name+","))
	}
	f.Apply(f.t, strings.Join(all, "\n---\n"))
}

func (f *fleet) grid(name string) (*v1.DeploymentGrid, error) {
	g := &v1.DeploymentGrid{}
	return g, f.client.Get(f.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, g)
}

// deployments are all of the namespace, by name.
func (f *fleet) deployments() (map[string]*appsv1.Deployment, error) {
	list, err := f.Client.AppsV1().Deployments("default").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]*appsv1.Deployment{}
	for i := range list.Items {
		all[list.Items[i].Name] = &list.Items[i]
	}
	return all, nil
}

// services are all of the namespace but the API server's, by name.
func (f *fleet) services() (map[string]*corev1.Service, error) {
	list, err := f.Client.CoreV1().Services("default").List(f.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := map[string]*corev1.Service{}
	for i := range list.Items {
		if s := &list.Items[i]; s.Name != "kubernetes" {
			all[s.Name] = s
		}
	}
	return all, nil
}

// settled waits until the status of every Grid is about its spec and says that all is ready, and every child is
// exactly what expand says.
func (f *fleet) settled() {
	f.t.Helper()
	for _, name := range f.grids {
		f.timeout.Until(f.t, name+" is ready", func() error {
			g, err := f.grid(name)
			if err != nil {
				return err
			}
			return f.ready(g.Status.GridStatus, g.Generation, g.Status.Units)
		})
	}
	f.timeout.Until(f.t, "the children are what the Grids say", f.compare)
}

func (f *fleet) ready(s v1.GridStatus, generation int64, rows []v1.UnitStatus) error {
	if s.ObservedGeneration != generation {
		return fmt.Errorf("generation %d, observed %d", generation, s.ObservedGeneration)
	}
	for _, c := range s.Conditions {
		if c.Type == v1.ConditionReady && c.Status != metav1.ConditionTrue {
			return fmt.Errorf("it is not Ready: %s: %s", c.Reason, c.Message)
		}
	}
	var values []string
	for _, r := range rows {
		values = append(values, r.Value)
	}
	slices.Sort(values)
	return wait.Check(slices.Equal(values, f.units), "its rows are %v, want %v", values, f.units)
}

// compare says what differs between the children that stand and those that expand names: a name, the owner, any field
// that is wished.
func (f *fleet) compare() error {
	deployments, err := f.deployments()
	if err != nil {
		return err
	}
	services, err := f.services()
	if err != nil {
		return err
	}
	for _, name := range f.grids {
		g, err := f.grid(name)
		if err != nil {
			return err
		}
		s := &v1.ServiceGrid{}
		if err := f.client.Get(f.t.Context(), client.ObjectKeyFromObject(g), s); err != nil {
			return err
		}
		for _, c := range expand.Children(expand.FromDeploymentGrid(g), f.units, nil) {
			if err := same(c, deployments[c.Name], deployments[c.Name] != nil); err != nil {
				return err
			}
			delete(deployments, c.Name)
		}
		for _, c := range expand.Children(expand.FromServiceGrid(s), nil, nil) {
			if err := same(c, services[c.Name], services[c.Name] != nil); err != nil {
				return err
			}
			delete(services, c.Name)
		}
	}
	return wait.Check(len(deployments)+len(services) == 0, "there are others: %d Deployments, %d Services", len(deployments), len(services))
}

// memory is a line of a process's status in /proc, such as VmRSS.
func memory(pid int, what string) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return err.Error()
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, what+":"); found {
			return what + " " + strings.Join(strings.Fields(rest), " ")
		}
	}
	return what + " unknown"
}

// history watches the Deployments: which objects a name has had. What comes and goes between two
// lists while the watch is broken is missed.
type history struct {
	mu   sync.Mutex
	uids map[string][]types.UID
}

func newHistory(t *testing.T, rest cache.Getter) *history {
	h := &history{uids: map[string][]types.UID{}}
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: cache.NewListWatchFromClient(rest, "deployments", "default", selectfields.Everything()),
		ObjectType:    &appsv1.Deployment{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    h.note,
			UpdateFunc: func(_, o any) { h.note(o) },
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
		t.Fatal("the watch of Deployments does not begin")
	}
	return h
}

func (h *history) note(o any) {
	d, ok := o.(*appsv1.Deployment)
	if !ok {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.Contains(h.uids[d.Name], d.UID) {
		h.uids[d.Name] = append(h.uids[d.Name], d.UID)
	}
}

func (h *history) made() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	made := map[string]int{}
	for name, uids := range h.uids {
		made[name] = len(uids)
	}
	return made
}

// nap is how long a cluster must see no write to be at rest.
const nap = 3 * time.Second

// newUserClient returns a client without a cache, which knows Kubernetes, the Grids and the
// kinds of a fleet.
func newUserClient(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	s := runtime.NewScheme()
	must(t, errors.Join(scheme.AddToScheme(s), v1.AddToScheme(s), v1alpha1.AddToScheme(s)))
	c, err := client.New(config, client.Options{Scheme: s})
	must(t, err)
	return c
}
