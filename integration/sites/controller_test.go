package sites

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/controller/api/site/v1alpha2"
	v1 "gridproxy/controller/api/v1"
	"gridproxy/controller/removal"
	"gridproxy/controller/site"
	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/nodes"
	"gridproxy/integration/env/wait"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// running is a world with a controller in it.
type running struct {
	*world
	api    kubernetes.Interface
	sites  client.Client // reads from the API server
	count  *nodes.Count  // of the controller's requests
	scheme *runtime.Scheme

	mu  sync.Mutex
	now time.Time
}

// newRunning starts the controller; config may change what it starts with.
func newRunning(t *testing.T, config func(*site.Config)) *running {
	t.Helper()
	r := newStopped(t)
	r.start(config)
	return r
}

// newStopped is a world in which the controller does not run yet.
func newStopped(t *testing.T) *running {
	t.Helper()
	r := &running{world: newWorld(t), count: &nodes.Count{}, scheme: runtime.NewScheme(), now: time.Now()}
	r.api = apiserver.ClientForTest(t, r.Admin())
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha2.AddToScheme, v1.AddToScheme} {
		if err := add(r.scheme); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	if r.sites, err = client.New(r.Admin(), client.Options{Scheme: r.scheme}); err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs the controller, with the rights that it needs and no others, until stop is called or the test ends.
func (r *running) start(config func(*site.Config)) (stop func()) {
	r.t.Helper()
	r.kubectl(rights, "apply", "-f", "-")
	rest := r.UserForTest(r.t, "sites")
	rest.QPS, rest.Burst = 1000, 1000
	if err := r.count.Wrap(rest); err != nil {
		r.t.Fatal(err)
	}
	m, err := manager.New(rest, manager.Options{
		Scheme: r.scheme, Metrics: server.Options{BindAddress: "0"}, Cache: cache.Options{ByObject: site.ByObject(nil)}, Logger: logr.Discard(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	c := site.Config{Grace: time.Minute, Budget: removal.Default(), Now: r.clock, Metrics: site.NewMetrics()}
	if config != nil {
		config(&c)
	}
	if err := site.Add(m, c); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := m.Start(ctx); err != nil {
			r.t.Errorf("the controller ended: %v", err)
		}
	})
	stop = func() { cancel(); done.Wait() }
	r.t.Cleanup(stop)
	return stop
}

// rights are all that the controller needs of the API server. Nodes cannot be created with them.
const rights = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: sites}
rules:
- {apiGroups: [""], resources: [nodes], verbs: [list, watch, patch]}
- {apiGroups: [""], resources: [services], verbs: [list, watch]}
- {apiGroups: [superedge.io], resources: [deploymentgrids, statefulsetgrids, servicegrids], verbs: [list, watch]}
- {apiGroups: [site.superedge.io], resources: [nodeunits], verbs: [list, watch, create, patch, delete]}
- {apiGroups: [site.superedge.io], resources: [nodegroups], verbs: [list, watch, patch]}
- {apiGroups: [site.superedge.io], resources: [nodeunits/status, nodegroups/status], verbs: [patch]}
- {apiGroups: ["", events.k8s.io], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: sites}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: sites}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: sites}]
`

func (r *running) clock() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.now
}

func (r *running) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// taken waits until no write is under way, and returns the writes to Nodes since it was called
// last.
func (r *running) taken() []nodes.Request {
	r.t.Helper()
	wait.Until(r.t, "every write is answered", func() error {
		n := r.count.Writing()
		return wait.Check(n == 0, "%d are under way", n)
	})
	defer r.count.Reset()
	return r.count.Requests(func(q nodes.Request) bool { return q.Write() && q.Resource == "nodes" })
}

// node makes a Node that is ready, with labels "k=v".
func (r *running) node(name string, labels ...string) {
	r.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/os": "linux"}}}
	for _, l := range labels {
		key, value, _ := strings.Cut(l, "=")
		n.Labels[key] = value
	}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := r.api.CoreV1().Nodes().Create(r.ctx, n, metav1.CreateOptions{FieldManager: "kubelet"}); err != nil {
		r.t.Fatal(err)
	}
}

func (r *running) get(name string) *corev1.Node {
	r.t.Helper()
	n, err := r.api.CoreV1().Nodes().Get(r.ctx, name, metav1.GetOptions{})
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

// patchNode changes a Node as another client, by a merge patch.
func (r *running) patchNode(name, manager, patch string, subresources ...string) {
	r.t.Helper()
	_, err := r.api.CoreV1().Nodes().Patch(r.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: manager}, subresources...)
	if err != nil {
		r.t.Fatal(err)
	}
}

// labels waits until a Node has exactly these labels besides kubernetes.io/os and records.
func (r *running) labels(node, want string) {
	r.t.Helper()
	wait.Until(r.t, "labels of Node "+node, func() error {
		labels := r.get(node).Labels
		delete(labels, "kubernetes.io/os")
		maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, v1alpha2.RecordPrefix) })
		var all []string
		for _, key := range slices.Sorted(maps.Keys(labels)) {
			all = append(all, key+"="+labels[key])
		}
		return unlike(strings.Join(all, " "), want)
	})
}

// taints waits until a Node has exactly these taints.
func (r *running) taints(node, want string) {
	r.t.Helper()
	wait.Until(r.t, "taints of Node "+node, func() error {
		var all []string
		for _, t := range r.get(node).Spec.Taints {
			all = append(all, t.ToString())
		}
		return unlike(strings.Join(all, " "), want)
	})
}

// noAnnotations waits until a Node has none: that of our taints goes after the last of these.
func (r *running) noAnnotations(node string) {
	r.t.Helper()
	wait.Until(r.t, "annotations of Node "+node, func() error {
		got := r.get(node).Annotations
		return wait.Check(len(got) == 0, "%v are left", got)
	})
}

func unlike(got, want string) error {
	return wait.Check(got == want, "got %q, want %q", got, want)
}

func (r *running) unit(name string) *v1alpha2.NodeUnit {
	r.t.Helper()
	u := &v1alpha2.NodeUnit{}
	if err := r.sites.Get(r.ctx, client.ObjectKey{Name: name}, u); err != nil {
		r.t.Fatal(err)
	}
	return u
}

// readyRate waits until a unit's status says so.
func (r *running) readyRate(unit, want string) {
	r.t.Helper()
	wait.Until(r.t, "readyRate of "+unit, func() error { return unlike(r.unit(unit).Status.ReadyRate, want) })
}

// gone waits until an object does not exist.
func (r *running) gone(o client.Object, name string) {
	r.t.Helper()
	wait.Until(r.t, name+" has gone", func() error {
		if err := r.sites.Get(r.ctx, client.ObjectKey{Name: name}, o); !apierrors.IsNotFound(err) {
			text, _ := json.Marshal(o)
			return errors.New("it is there: " + string(text))
		}
		return nil
	})
}

// sync waits until the controller has decided about a unit that is made now, and by then about what its caches showed
// before.
func (r *running) sync(name string) {
	r.t.Helper()
	r.kubectl(nodeUnit("v1alpha2", name, `{}`), "create", "-f", "-")
	r.readyRate(name, "0/0")
}

// answer is what kubectl prints, whether it succeeds or not.
func (r *running) answer(args ...string) string {
	r.t.Helper()
	out, _ := r.try("", args...)
	return out
}
