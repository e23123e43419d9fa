package grids

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/api/v1alpha1"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// A large fleet: each of its clusters has each Grid in so many units.
const (
	largeClusters = 100
	largeGrids    = 20
	largeUnits    = 50
	// sameRows is how many rows the status of a Grid has on the hub, which is the most that one can
	// have, and in the one cluster that the hub is compared with.
	sameRows = 1000
	// fewClusters report exactly so many rows of each Grid.
	fewClusters = sameRows / largeUnits
	// largeRatio is how much more memory the hub may take than the controller of one cluster.
	largeRatio = 1.5
)

// TestDistributionScale counts what the hub of a large fleet writes at rest, and compares its
// memory with that of the controller of one cluster. What the members report and renew comes from a
// generator. Times are printed, not judged.
func TestDistributionScale(t *testing.T) {
	if testing.Short() {
		t.Skip("SKIPPED: 2,000 reports and 20,000 children take a while; run without -short")
	}
	l := newLarge(t)
	for _, p := range []part[*large]{
		{"20 clusters are current", func(l *large) { l.grow(fewClusters) }},
		{"100 clusters are current", func(l *large) { l.grow(largeClusters) }},
		{"rest", (*large).rest},
		{"one of 2,000 reports changes", (*large).react},
		{"one cluster with as many rows", (*large).compare},
	} {
		l.run(p.name, func(*fleet) { p.do(l) })
	}
}

// large is a hub, its members, which do not exist, and the controller that is measured.
type large struct {
	*fleet
	*counted
	members   *generator
	resident  map[string]float64 // MiB that each controller takes, by what it is
	artifacts string             // where the controller of the hub serves artifacts
}

func newLarge(t *testing.T) *large {
	t.Helper()
	// Nothing but the controllers that are measured reacts to Grids, their children and Nodes.
	f := &fleet{t: t, timeout: 4 * wait.Usual, Cluster: nodes.ForTest(t, nodes.Options{
		Manifests:         []string{crds},
		ControllerManager: []string{"--controllers=serviceaccount-controller,serviceaccount-token-controller"},
	})}
	f.client = newUserClient(t, f.Admin())
	l := &large{fleet: f, resident: map[string]float64{}}
	l.members = newGenerator(f)
	ports, err := apiserver.FreePorts(nil, 1)
	must(f.t, err)
	l.makeGrids(metav1.NamespaceDefault, map[string]string{v1alpha1.LabelFederated: v1alpha1.Federated})
	l.artifacts = ports[0].String()
	l.counted = l.start("hub", "--federation=hub", "--artifact-bind-address="+l.artifacts)
	return l
}

// start starts a grid-controller as it is shipped, with a limit of requests that does not matter.
// It is alone, and does not end because a busy API server lets its Lease expire.
func (l *large) start(part string, flags ...string) *counted {
	l.t.Helper()
	o := nodes.AsShipped()
	if part != "" {
		o.Manifests = append(o.Manifests, "../../deploy/federation/"+part+".yaml")
	}
	o.Count = &nodes.Count{}
	o.Flags = append(append(o.Flags, "--leader-elect=false", "--kube-api-qps=2000", "--kube-api-burst=4000"), flags...)
	c := &counted{GridController: l.Cluster.GridController(l.t, o), count: o.Count}
	c.WaitReady(l.t)
	return c
}

// eventually waits as long as timeout, unless the controller has ended.
func (l *large) eventually(what string, ask func() error) {
	l.t.Helper()
	l.timeout.Until(l.t, what, func() error {
		select {
		case <-l.Done():
			l.t.Fatalf("the controller ended:\n%s", l.Log())
		default:
		}
		return ask()
	})
}

// grow has further clusters join. Each reports that it has what was sent to it.
func (l *large) grow(clusters int) {
	begin, known := time.Now(), len(l.members.clusters())
	l.members.join(known, clusters)
	l.t.Logf("%d clusters after %s", clusters, since(begin))
	sent := map[string][]v1alpha1.ClusterGrid{}
	for _, cluster := range l.members.clusters()[known:] {
		l.eventually(cluster+" is to have all Grids", func() (err error) {
			sent[cluster], err = l.sent(cluster)
			return err
		})
	}
	l.t.Logf("all Grids are sent after %s", since(begin))
	l.members.report(sent)
	l.t.Logf("%d reports after %s", clusters*largeGrids, since(begin))
	l.eventually("all is current", l.current)
	l.t.Logf("all is current after %s", since(begin))
	l.calm()
	l.t.Logf("until the hub is at rest:\n%s", nodes.Tally(l.count.Requests(nil)))
	l.remember(fmt.Sprintf("the hub of %d clusters", clusters))
}

// remember prints what memory the controller takes.
func (l *large) remember(what string) {
	l.t.Helper()
	resident := memory(l.PID(), "VmRSS")
	l.resident[what] = mebibytes(resident)
	l.t.Logf("%s: %s, %s, heap in use %.0f MiB", what, resident, memory(l.PID(), "VmHWM"), l.figures()[heap]/(1<<20))
}

// makeGrids makes Grids of units by the label location.
func (l *large) makeGrids(namespace string, labels map[string]string) {
	l.t.Helper()
	for i := range largeGrids {
		g := &v1.DeploymentGrid{}
		must(l.t, yaml.Unmarshal([]byte(deploymentGrid(fmt.Sprintf("grid-%02d", i), "replicas: 2")), g))
		g.Namespace, g.Labels = namespace, labels
		must(l.t, l.client.Create(l.t.Context(), g))
		if labels != nil {
			l.grids = append(l.grids, g.Name)
		}
	}
}

// sent are the Grids that a cluster is to have, once that are all.
func (l *large) sent(cluster string) ([]v1alpha1.ClusterGrid, error) {
	c := &v1alpha1.FleetCluster{}
	if err := l.client.Get(l.t.Context(), client.ObjectKey{Name: cluster}, c); err != nil {
		return nil, err
	}
	bundle := &v1alpha1.GridBundle{}
	key := client.ObjectKey{Namespace: v1alpha1.NamespacePrefix + cluster, Name: metav1.NamespaceDefault}
	if err := l.client.Get(l.t.Context(), key, bundle); err != nil {
		return nil, err
	}
	if n := len(c.Status.Grids); n < largeGrids || bundle.Spec.Grids < largeGrids {
		return nil, fmt.Errorf("its status has %d Grids, and its bundle %d", n, bundle.Spec.Grids)
	}
	return c.Status.Grids, nil
}

// current is whether every cluster and every Grid says that all is as it is to be.
func (l *large) current() error {
	var list v1alpha1.FleetClusterList
	if err := l.client.List(l.t.Context(), &list); err != nil {
		return err
	}
	for _, c := range list.Items {
		if c.Status.State != "Current" || c.Status.Units != largeUnits {
			return fmt.Errorf("FleetCluster %s is %s and has %d units: %s", c.Name, c.Status.State, c.Status.Units, c.Status.GridSummary)
		}
	}
	for _, name := range l.grids {
		g, err := l.grid(name)
		if err != nil {
			return err
		}
		want, units := fmt.Sprintf("%[1]d/%[1]d", len(list.Items)), len(list.Items)*largeUnits
		if s := &g.Status; s.ClusterRate != want || int(s.UnitNumber) != units || len(s.Units) != sameRows {
			return fmt.Errorf("%s: clusterRate is %q, unitNumber %d, and there are %d rows", name, s.ClusterRate, s.UnitNumber, len(s.Units))
		}
	}
	return nil
}

// calm waits until the controller has written nothing for a while.
func (l *large) calm() {
	l.t.Helper()
	(&scale{fleet: l.fleet, counted: l.counted}).rest()
}

// rest: meanwhile every member renews its Lease, and the hub writes nothing. It is the window that
// is measured.
func (l *large) rest() {
	l.count.Reset()
	l.members.reset()
	before := l.figures()
	// real time: writes at rest are counted over a window
	window := time.After(restWindow)
	select {
	case <-window:
	case <-l.Done():
		l.t.Fatalf("the controller ended:\n%s", l.Log())
	}
	if writes := l.count.Writes(); len(writes) > 0 {
		l.t.Errorf("%d writes in %s of rest, the first is %s:\n%s", len(writes), restWindow, writes[0], nodes.Tally(writes))
	}
	if renewed := l.members.renewed(); renewed < largeClusters {
		l.t.Errorf("%d Leases of members were renewed meanwhile, want at least %d", renewed, largeClusters)
	}
	after := l.figures()
	decisions := after[fleetRounds] - before[fleetRounds]
	l.t.Logf("%s of rest:\n%s\n%.0f decisions about the fleet in %.0f ms each, %.1f s of processor time", restWindow,
		nodes.Tally(l.count.Requests(nil)), decisions, 1000*(after[fleetTime]-before[fleetTime])/max(decisions, 1), after[processor]-before[processor])
	l.remember(fmt.Sprintf("the hub of %d clusters", largeClusters))
}

// restWindow is more than the minute in which every member renews its Lease once.
const restWindow = 75 * time.Second

// The metrics that are printed.
const (
	fleetRounds = `controller_runtime_reconcile_time_seconds_count{controller="Fleet"}`
	fleetTime   = `controller_runtime_reconcile_time_seconds_sum{controller="Fleet"}`
	processor   = "process_cpu_seconds_total"
	heap        = "go_memstats_heap_inuse_bytes"
)

// figures are the metrics of the controller.
func (l *large) figures() map[string]float64 {
	l.t.Helper()
	text, err := l.Get(l.t.Context(), l.Metrics, "/metrics")
	must(l.t, err)
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), " "); found {
			if number, err := strconv.ParseFloat(value, 64); err == nil {
				all[name] = number
			}
		}
	}
	return all
}

func mebibytes(text string) float64 {
	kilo := 0.0
	_, _ = fmt.Sscanf(text, "VmRSS %f kB", &kilo)
	return kilo / 1024
}

// react prints how long after a change of one report the Grid's status is written.
func (l *large) react() {
	var took []time.Duration
	for i := range 10 {
		grid := l.grids[i]
		l.calm()
		l.count.Reset()
		begin := l.members.change(l.members.clusters()[7*i], grid)
		var written time.Time
		l.eventually("the status of "+grid+" shows the change, and its write is counted", func() (err error) {
			if err = l.progressing(grid); err == nil {
				written, err = l.statusWritten(grid) // later than it is seen: once the answer has come
			}
			return err
		})
		took = append(took, written.Sub(begin))
	}
	slices.Sort(took)
	l.t.Logf("one report to the status of its Grid: p50 %s, longest %s", took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
}

// progressing is whether the first row of the Grid, the worst, says so.
func (l *large) progressing(name string) error {
	g, err := l.grid(name)
	if err != nil {
		return err
	}
	return wait.Check(len(g.Status.Units) != 0 && g.Status.Units[0].Phase == v1.UnitProgressing, "its rows are %+v", g.Status.Units[:min(1, len(g.Status.Units))])
}

// statusWritten is when the hub first wrote the status of the Grid.
func (l *large) statusWritten(name string) (time.Time, error) {
	writes := l.count.Writes()
	at := slices.IndexFunc(writes, func(r nodes.Request) bool { return r.Name == name && r.Subresource == "status" })
	if at < 0 {
		return time.Time{}, fmt.Errorf("the hub has written:\n%s", nodes.Tally(writes))
	}
	return writes[at].At, nil
}

// compare measures the controller of a single cluster, in which the Grids have as many rows as on
// the hub.
func (l *large) compare() {
	l.Kill()
	const namespace = "plain"
	must(l.t, l.client.Create(l.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	must(l.t, abreast(sameRows, func(i int) error {
		name := fmt.Sprintf("unit-%04d", i)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"location": name}}}
		if err := l.client.Create(l.t.Context(), n); err != nil {
			return err
		}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return l.client.Status().Update(l.t.Context(), n)
	}))
	l.makeGrids(namespace, nil)
	begin := time.Now()
	l.counted = l.start("", "--namespaces="+namespace, "--node-units=false")
	l.eventually("every Grid has its rows", func() error {
		var list v1.DeploymentGridList
		if err := l.client.List(l.t.Context(), &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for _, g := range list.Items {
			if rows := len(g.Status.Units); rows < sameRows*9/10 {
				return fmt.Errorf("%s has %d rows", g.Name, rows)
			}
		}
		return nil
	})
	l.calm()
	l.t.Logf("%d children after %s", largeGrids*sameRows, since(begin))
	l.remember("one cluster")
	for _, clusters := range []int{fewClusters, largeClusters} {
		ratio := l.resident[fmt.Sprintf("the hub of %d clusters", clusters)] / l.resident["one cluster"]
		l.t.Logf("memory of the hub of %d clusters, with %d rows in reports, to that of one cluster with %d children: %.2f",
			clusters, clusters*largeGrids*largeUnits, largeGrids*sameRows, ratio)
		if !(ratio <= largeRatio) { // not a number if one is unknown
			l.t.Errorf("the hub of %d clusters takes %.2f times as much memory as one cluster, want at most %.1f", clusters, ratio, largeRatio)
		}
	}
}
