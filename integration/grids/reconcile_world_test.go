package grids

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/grid"
	"gridproxy/controller/removal"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"
)

// account is the ServiceAccount of deploy/grid-controller.yaml.
const account = "system:serviceaccount:gridproxy:grid-controller"

// world is an API server with the CRDs, and the controllers of Grids on it. There is no controller manager: nothing
// changes but what a test and the controllers change.
type world struct {
	*apiserver.Cluster
	t       *testing.T
	client  client.Client // as admin, without any cache
	count   *nodes.Count
	ahead   *atomic.Int64              // of the clock, before real time
	frozen  *atomic.Pointer[time.Time] // what the clock says instead; nil: it runs
	key     string                     // of Nodes' labels
	log     slog.Handler
	pokes   *atomic.Int64
	running *func() // ends the controllers
	// before is called with each request of the controllers, before it is sent.
	before *atomic.Pointer[func(*http.Request)]
}

// hooked calls before.
type hooked struct {
	world *world
	next  http.RoundTripper
}

// RoundTrip passes a request on.
func (h hooked) RoundTrip(r *http.Request) (*http.Response, error) {
	if before := h.world.before.Load(); before != nil {
		(*before)(r)
	}
	return h.next.RoundTrip(r)
}

// run runs a part of a test. Each part relies on those before.
func (w *world) run(name string, part func(*world)) {
	w.t.Helper()
	w.t.Run(name, func(t *testing.T) {
		own := *w
		own.t = t
		part(&own)
	})
}

// newWorld starts everything, and Nodes by their units.
func newWorld(t *testing.T, units map[string]string) *world {
	t.Helper()
	w := &world{Cluster: apiserver.ForTest(t, apiserver.Options{}), t: t, count: &nodes.Count{}, key: "location", log: slog.NewTextHandler(t.Output(), nil),
		ahead: &atomic.Int64{}, frozen: &atomic.Pointer[time.Time]{}, pokes: &atomic.Int64{}, running: new(func()),
		before: &atomic.Pointer[func(*http.Request)]{}}
	w.client = newUserClient(t, w.Admin())
	w.kubectl("", "apply", "--server-side", "-f", "../../deploy/crds")
	w.WaitForDefinitions(t)
	w.kubectl("", "apply", "-f", "../../deploy/namespace.yaml")
	w.kubectl(w.rights(), "apply", "-f", "-")
	for name, unit := range units {
		must(w.t, w.client.Create(t.Context(), nodeOf(name, w.key, unit)))
	}
	w.start()
	t.Cleanup(func() { w.stop() })
	return w
}

// rights is the manifest of the controller without its Deployment.
func (w *world) rights() string {
	w.t.Helper()
	text, err := os.ReadFile("../../deploy/grid-controller.yaml")
	must(w.t, err)
	var kept []string
	for document := range strings.SplitSeq(string(text), "\n---\n") {
		if !strings.Contains(document, "\nkind: Deployment\n") {
			kept = append(kept, document)
		}
	}
	return strings.Join(kept, "\n---\n")
}

// start runs the controllers until stop, or until the test ends.
func (w *world) start() {
	w.t.Helper()
	config := w.UserForTest(w.t, account, "system:serviceaccounts", "system:serviceaccounts:gridproxy")
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return hooked{w, next} })
	must(w.t, w.count.Wrap(config)) // the outer one: what before holds up is being written
	scheme, err := grid.Scheme()
	must(w.t, err)
	ctrllog.SetLogger(logr.Discard()) // what has no logger of its own; global to the process
	m, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: grid.CacheOptions(nil), Logger: logr.FromSlogHandler(w.log),
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	must(w.t, grid.Add(ctx, m, grid.Config{Grace: 5 * time.Minute, Budget: removal.Default(), Now: w.now, Metrics: grid.NewMetrics()}))
	ended := make(chan error, 1)
	go func() { ended <- m.Start(ctx) }()
	*w.running = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the controllers ended: %v", err)
		}
	})
}

func (w *world) stop() { (*w.running)() }

func (w *world) now() time.Time {
	if at := w.frozen.Load(); at != nil {
		return *at
	}
	return time.Now().Add(time.Duration(w.ahead.Load()))
}

// freeze stops the controllers' clock, or sets it forward while it is stopped.
func (w *world) freeze(forward time.Duration) {
	at := w.now().Add(forward)
	w.frozen.Store(&at)
}

func (w *world) kubectl(stdin string, args ...string) string {
	w.t.Helper()
	out, err := w.KubectlIn(w.t.Context(), strings.NewReader(stdin), args...)
	must(w.t, err)
	return out
}

// apply does as kubectl apply --server-side: YAML documents, made or changed.
func (w *world) apply(text string) {
	w.t.Helper()
	w.kubectl(text, "apply", "--server-side", "--force-conflicts", "-f", "-")
}

// get reads an object; nil if it does not exist.
func get[O client.Object](w *world, o O, name string) (O, bool) {
	w.t.Helper()
	err := w.client.Get(w.t.Context(), types.NamespacedName{Namespace: "default", Name: name}, o)
	if apierrors.IsNotFound(err) {
		return o, false
	}
	must(w.t, err)
	return o, true
}

func (w *world) raw(o client.Object, name string) string {
	w.t.Helper()
	found, ok := get(w, o, name)
	if !ok {
		w.t.Fatalf("%T %s is not there", o, name)
	}
	text, err := json.Marshal(found)
	must(w.t, err)
	return string(text)
}

// patch merges into an object, as another client than the controller.
func (w *world) patch(o client.Object, name, patch string) {
	w.t.Helper()
	o.SetNamespace("default")
	o.SetName(name)
	must(w.t, w.client.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner("somebody")))
}

func (w *world) label(node, unit string) {
	w.t.Helper()
	value, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{w.key: unit}}})
	if unit == "" {
		value, err = json.Marshal(map[string]any{"metadata": map[string]any{"labels": map[string]any{w.key: nil}}})
	}
	must(w.t, err)
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	must(w.t, w.client.Patch(w.t.Context(), o, client.RawPatch(types.MergePatchType, value)))
}

// reconciled has a Grid reconciled once more, and waits until that is over: a change of the
// observed generation is written at the end of it. The change is one that no child notices.
func (w *world) reconciled(o client.Object, name string) {
	w.t.Helper()
	w.patch(o, name, fmt.Sprintf(`{"spec":{"templates":{"no-such-unit":"%d"}}}`, w.pokes.Add(1)))
	w.settled(o, name)
}

// settled waits until the status is about the spec as it is stored, and nothing is being written.
func (w *world) settled(o client.Object, name string) {
	w.t.Helper()
	wait.Written(w.t, stored{w.count, w, o, name})
}

// stored is a Grid of a world, whose writes are counted.
type stored struct {
	*nodes.Count
	world  *world
	object client.Object
	name   string
}

func (s stored) String() string { return s.name }

// Generations returns the generation of the spec, and the one that the status is about.
func (s stored) Generations() (spec, observed int64, err error) {
	o, ok := get(s.world, s.object, s.name)
	if !ok {
		return 0, 0, errors.New("it is not there")
	}
	return o.GetGeneration(), commonStatus(o).ObservedGeneration, nil
}

func commonStatus(o client.Object) v1.GridStatus {
	switch o := o.(type) {
	case *v1.DeploymentGrid:
		return o.Status.GridStatus
	case *v1.StatefulSetGrid:
		return o.Status.GridStatus
	case *v1.ServiceGrid:
		return o.Status.GridStatus
	default:
		return v1.GridStatus{}
	}
}

// unequal returns an error that shows how got differs from want.
func unequal(want, got any) error {
	diff := cmp.Diff(want, got)
	return wait.Check(diff == "", "%s", diff)
}

// checkCondition returns an error unless a condition has a status, a reason, and a text in its
// message, from the beginning of a word: "2 units" is not in "12 units". An empty reason is any.
func checkCondition(all []metav1.Condition, of string, status metav1.ConditionStatus, reason, text string) error {
	for _, c := range all {
		if c.Type == of && c.Status == status && (reason == "" || c.Reason == reason) && strings.Contains(" "+c.Message, " "+text) {
			return nil
		}
	}
	return fmt.Errorf("the conditions are %+v", all)
}

func (w *world) row(name, value string) v1.UnitStatus {
	w.t.Helper()
	g, _ := get(w, &v1.DeploymentGrid{}, name)
	for _, u := range g.Status.Units {
		if u.Value == value {
			return u
		}
	}
	return v1.UnitStatus{}
}

// expectRow waits for a phase, and for a reason unless that is "".
func (w *world) expectRow(name, value string, phase v1.UnitPhase, reason string) v1.UnitStatus {
	w.t.Helper()
	var row v1.UnitStatus
	wait.Until(w.t, strings.TrimSpace(fmt.Sprintf("unit %s of %s is %s %s", value, name, phase, reason)), func() error {
		row = w.row(name, value)
		return wait.Check(row.Phase == phase && (reason == "" || row.Reason == reason), "%+v", row)
	})
	return row
}

// deploymentGrid is one with a template that more can be merged into.
func deploymentGrid(name string, template string) string {
	var extra map[string]any
	if err := yaml.Unmarshal([]byte(template), &extra); err != nil {
		return err.Error()
	}
	spec := map[string]any{
		"selector": map[string]any{"matchLabels": map[string]any{"app": name}},
		"template": map[string]any{
			"metadata": map[string]any{"creationTimestamp": nil, "labels": map[string]any{"app": name}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "echo", "image": "echo:1"}}},
		},
	}
	for field, value := range extra {
		spec[field] = value
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "superedge.io/v1", "kind": "DeploymentGrid",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"gridUniqKey": "location", "template": spec},
	})
	if err != nil {
		return err.Error()
	}
	return string(text)
}
