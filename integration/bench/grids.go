package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid"
	"gridproxy/controller/grid/expand"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/program"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// manyGrids is a cluster in which grid-controller makes a child in each unit for each Grid.
type manyGrids struct {
	grids, units int
	rate         int // requests a second
}

// gridWriters is how many children grid-controller applies at the same time: one for each of the
// Grids that it reconciles at once.
const gridWriters = 8

const gridKey = "location"

// runGrids is make bench-grids.
func runGrids(args []string) int {
	var m manyGrids
	return subcommand{
		name: "-grids", limit: time.Hour,
		flags: func(fs *flag.FlagSet) {
			fs.IntVar(&m.grids, "count", 100, "DeploymentGrids")
			fs.IntVar(&m.units, "units", 100, "units, of one Node each, at least 2")
			fs.IntVar(&m.rate, "rate", 2000, "requests a second to the API server, for both writers")
		},
		check: func() error {
			if m.grids < 1 || m.units < 2 || m.rate < 1 {
				return errors.New("want at least 1 Grid, 2 units and 1 request a second")
			}
			return nil
		},
		run: func(ctx context.Context) error { return m.measure(ctx) },
	}.start(args)
}

func (m manyGrids) measure(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "gridproxy-bench-")
	if err != nil {
		return fmt.Errorf("making a folder for the benchmark: %w", err)
	}
	defer os.RemoveAll(dir)
	tools, err := apiserver.Ensure(ctx, os.Stderr)
	if err != nil {
		return err
	}
	// Deployments have no Pods, and only the controller that is measured works.
	cluster, err := nodes.Start(ctx, nodes.Options{
		Tools: tools, Dir: dir, Manifests: []string{"deploy/crds"},
		ControllerManager: []string{"--controllers=serviceaccount-controller,serviceaccount-token-controller"},
	})
	if err != nil {
		return err
	}
	defer cluster.Close()
	f := &gridFleet{manyGrids: m, Cluster: cluster, dir: dir}
	if err := f.populate(ctx); err != nil {
		return err
	}
	phases, err := f.run(ctx)
	if err != nil {
		return err
	}
	fmt.Print(m.report(phases, machine(context.WithoutCancel(ctx))))
	return nil
}

type gridFleet struct {
	manyGrids
	*nodes.Cluster
	dir    string
	admin  client.Client
	binary string
	count  nodes.Count
}

func (f *gridFleet) populate(ctx context.Context) error {
	scheme, err := userScheme()
	if err != nil {
		return err
	}
	if f.admin, err = client.New(unlimited(f.Admin()), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	if f.binary, err = program.Path(ctx, program.GridController); err != nil {
		return err
	}
	say("making %d Nodes and %d DeploymentGrids", f.units, f.grids)
	return errors.Join(
		inParallel(ctx, f.units, func(i int) error { return f.addNode(ctx, f.value(i), f.value(i)) }),
		inParallel(ctx, f.grids, func(i int) error { return f.admin.Create(ctx, f.grid(i)) }))
}

func unlimited(c *rest.Config) *rest.Config {
	c = rest.CopyConfig(c)
	c.QPS = -1
	return c
}

func (f *gridFleet) value(unit int) string { return fmt.Sprintf("unit-%04d", unit) }

func (f *gridFleet) addNode(ctx context.Context, name, value string) error {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{gridKey: value}}}
	if err := f.admin.Create(ctx, n); err != nil {
		return err
	}
	n.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Benchmark", LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(),
	}}
	return f.admin.Status().Update(ctx, n)
}

func (f *gridFleet) grid(i int) *v1.DeploymentGrid {
	name := fmt.Sprintf("web-%03d", i)
	return &v1.DeploymentGrid{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name},
		Spec:       v1.WorkloadGridSpec{GridUniqKey: gridKey, Template: &v1.Template{JSON: gridTemplate(name, "echo:1")}},
	}
}

func gridTemplate(name, image string) []byte {
	return fmt.Appendf(nil, `{"replicas": 0, "selector": {"matchLabels": {"app": %[1]q}}, "template": {"metadata": {"labels": {"app": %[1]q}},
		"spec": {"containers": [{"name": "echo", "image": %[2]q, "ports": [{"containerPort": 8080}], "env": [{"name": "A", "value": "B"}]}]}}}`, name, image)
}

type phase struct {
	name           string
	took           time.Duration
	requests       int
	writes         int
	sent, received int64
	resident       int // bytes; 0: not known
}

// run measures each phase. A phase of the controller ends with the last request after which it is
// at rest.
func (f *gridFleet) run(ctx context.Context) ([]phase, error) {
	var all []phase
	note := func(p phase, err error) error {
		if err == nil {
			say("  %s: %s, %d requests (%d writes), %d KiB sent, %d KiB received", p.name, p.took.Round(time.Millisecond), p.requests, p.writes, p.sent>>10, p.received>>10)
			all = append(all, p)
		}
		return err
	}
	say("a plain writer")
	if err := note(f.plain(ctx)); err != nil {
		return nil, err
	}
	say("grid-controller")
	var c *nodes.GridController
	start := func() (err error) {
		c, err = f.start(ctx, "--leader-elect=false")
		return err
	}
	defer func() {
		if c != nil {
			c.Close()
		}
	}()
	if err := note(f.phase(ctx, "converge", func() *nodes.GridController { return c }, start)); err != nil {
		return nil, err
	}
	restart := func() error { c.Close(); return start() }
	if err := note(f.phase(ctx, "restart", func() *nodes.GridController { return c }, restart)); err != nil {
		return nil, err
	}
	running := func() *nodes.GridController { return c }
	image := func() error { return f.patchImage(ctx) }
	if err := note(f.phase(ctx, "one template changes", running, image)); err != nil {
		return nil, err
	}
	label := func() error { f.units++; return f.addNode(ctx, f.value(f.units-1), f.value(f.units-1)) }
	if err := note(f.phase(ctx, "a Node with a new value", running, label)); err != nil {
		return nil, err
	}
	c.Close()
	c = nil
	return all, note(f.failover(ctx))
}

func (f *gridFleet) start(ctx context.Context, flags ...string) (*nodes.GridController, error) {
	return f.StartGridController(ctx, nodes.ControllerOptions{
		Binary: f.binary, Count: &f.count,
		Flags: append([]string{fmt.Sprintf("--kube-api-qps=%d", f.rate), fmt.Sprintf("--kube-api-burst=%d", 2*f.rate)}, flags...),
	})
}

// failover has one controller killed while another stands by.
func (f *gridFleet) failover(ctx context.Context) (phase, error) {
	flags := []string{"--leader-elect-lease-duration=6s", "--leader-elect-renew-deadline=5s", "--leader-elect-retry-period=1s"}
	leader, err := f.start(ctx, flags...)
	if err != nil {
		return phase{}, err
	}
	defer leader.Close()
	if _, err := f.phase(ctx, "a leader starts", func() *nodes.GridController { return leader }, func() error { return nil }); err != nil {
		return phase{}, err
	}
	other, err := f.start(ctx, flags...)
	if err != nil {
		return phase{}, err
	}
	defer other.Close()
	if _, err := f.lastRequest(ctx); err != nil {
		return phase{}, err
	}
	return f.phase(ctx, "failover, a lease of 6 s included", func() *nodes.GridController { return other }, func() error { leader.Kill(); return nil })
}

// phase does something, and waits until all children are what their Grids ask for, all Grids say
// so, and the controller has come to rest.
func (f *gridFleet) phase(ctx context.Context, name string, of func() *nodes.GridController, do func() error) (phase, error) {
	f.count.Reset()
	begin := time.Now()
	if err := do(); err != nil {
		return phase{}, fmt.Errorf("%s: %w", name, err)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func(c *nodes.GridController) {
		select {
		case <-c.Done():
			stop(fmt.Errorf("the controller has ended:\n%s", c.Log()))
		case <-ctx.Done():
		}
	}(of())
	if err := poll(ctx, func() error { return f.converged(ctx) }); err != nil {
		return phase{}, fmt.Errorf("%s: %w", name, err)
	}
	last, err := f.lastRequest(ctx)
	if err != nil {
		return phase{}, fmt.Errorf("%s: %w", name, err)
	}
	p := phase{name: name, took: last.Sub(begin)}
	p.requests, p.writes = len(f.count.Requests(nil)), len(f.count.Writes())
	p.sent, p.received = f.count.Bytes()
	m, err := memoryOf(of().PID())
	p.resident = m.resident
	return p, err
}

// converged looks at numbers and generations only: reading every child each time would be more work
// than what is measured.
func (f *gridFleet) converged(ctx context.Context) error {
	grids := &v1.DeploymentGridList{}
	if err := f.admin.List(ctx, grids); err != nil {
		return err
	}
	for _, g := range grids.Items {
		if g.Status.ObservedGeneration != g.Generation || int(g.Status.UnitNumber) != f.units {
			return fmt.Errorf("%s has observed generation %d of %d, and %d of %d units", g.Name, g.Status.ObservedGeneration, g.Generation, g.Status.UnitNumber, f.units)
		}
	}
	if len(f.count.Requests(func(r nodes.Request) bool { return r.Verb == "list" || r.Write() })) == 0 {
		return errors.New("nothing is asked for yet")
	}
	return nil
}

// calm is how long a controller that is at rest asks for nothing.
const calm = 4 * time.Second

// lastRequest waits until the controller has asked for nothing for a while, and returns when it
// asked last. Leases do not count.
func (f *gridFleet) lastRequest(ctx context.Context) (last time.Time, err error) {
	err = poll(ctx, func() error {
		for _, r := range f.count.Requests(func(r nodes.Request) bool { return r.Resource != "leases.coordination.k8s.io" }) {
			if r.At.After(last) {
				last = r.At
			}
		}
		if ago := time.Since(last); ago < calm {
			return fmt.Errorf("the last request was %s ago", ago)
		}
		return nil
	})
	return last, err
}

func (f *gridFleet) patchImage(ctx context.Context) error {
	g := f.grid(0)
	template := gridTemplate(g.Name, "echo:2")
	return f.admin.Patch(ctx, g, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"template":%s}}`, template)))
}

// plain applies the same children with the same field manager, parallelism, rate and way to the API
// server, in a namespace of its own, and nothing else: what the API server and the rate cost alone.
func (f *gridFleet) plain(ctx context.Context) (phase, error) {
	const namespace = "plain"
	if err := f.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return phase{}, err
	}
	config, err := f.Counted("", &f.count)
	if err != nil {
		return phase{}, err
	}
	relay, err := f.NewRelay(config)
	if err != nil {
		return phase{}, err
	}
	defer relay.Close()
	limited := relay.Config()
	limited.QPS, limited.Burst = float32(f.rate), 2*f.rate
	writer, err := client.New(limited, client.Options{Scheme: f.admin.Scheme()})
	if err != nil {
		return phase{}, err
	}
	var values []string
	for i := range f.units {
		values = append(values, f.value(i))
	}
	f.count.Reset()
	begin := time.Now()
	var next atomic.Int64
	err = inParallel(ctx, gridWriters, func(int) error {
		for i := int(next.Add(1)) - 1; i < f.grids; i = int(next.Add(1)) - 1 {
			g := f.grid(i)
			g.Namespace, g.UID = namespace, types.UID(g.Name)
			for _, c := range expand.Children(expand.FromDeploymentGrid(g), values, nil) {
				c.Object.SetOwnerReferences(nil) // the garbage collector is off, but there is no such owner
				if err := writer.Apply(ctx, client.ApplyConfigurationFromUnstructured(c.Object), client.FieldOwner(grid.Manager), client.ForceOwnership); err != nil {
					return err
				}
			}
		}
		return nil
	})
	p := phase{name: "plain writer", took: time.Since(begin), requests: len(f.count.Requests(nil)), writes: len(f.count.Writes())}
	p.sent, p.received = f.count.Bytes()
	return p, err
}

func poll(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(time.Second):
		}
	}
}

// userScheme is the scheme of a user's client: Kubernetes and the Grids.
func userScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	return s, errors.Join(scheme.AddToScheme(s), v1.AddToScheme(s))
}
