package nodes

import (
	"context"
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Options say what is special about a Cluster. The zero Options are a cluster on loopback.
type Options struct {
	// Tools are the programs. ForTest fills them in.
	Tools apiserver.Tools
	// Dir is for data, keys and logs; the caller removes it. ForTest fills it in.
	Dir string
	// Namespace is where the control plane runs; nil is the caller's, and then only loopback is used.
	Namespace apiserver.Namespace
	// Addrs are the addresses of the Namespace that clients in other namespaces use.
	Addrs []netip.Addr

	// Machines says that real kubelets join, from other namespaces.
	Machines bool

	// Manifests are files and folders that are applied before the controllers start. CRDs belong here:
	// the garbage collector looks for new kinds every 30 s only, and until then deletes nothing because
	// an owner of such a kind is gone.
	Manifests []string
	// NodeGrace is after how long a silent Node is NotReady; 0: the 50 s of Kubernetes. Leases are
	// renewed often enough for it.
	NodeGrace time.Duration
	// ControllerManager are further flags of kube-controller-manager.
	ControllerManager []string
	// APIServer are further flags of kube-apiserver.
	APIServer []string
	// PodAddrs chooses the addresses of a Pod; nil, or none returned: free ones of its Node's ranges.
	PodAddrs func(*corev1.Pod) []netip.Addr
}

// Cluster is a running Kubernetes cluster without machines. Its methods that take a test fail that
// test when they do not succeed.
type Cluster struct {
	*apiserver.Cluster
	Kubelets *Kubelets
	Client   kubernetes.Interface // as admin

	ctx    context.Context // ends with Close
	cancel context.CancelFunc

	mu          sync.Mutex
	controllers int // started so far, for their names
}

// nodeGrace is the controller manager's own.
const nodeGrace = 50 * time.Second

// Start starts a cluster without Nodes and returns when Pods can be made in it. Close ends it.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	plane, err := apiserver.Start(ctx, apiserver.Options{
		Tools: o.Tools, Dir: o.Dir, Namespace: o.Namespace, Addrs: o.Addrs, Machines: o.Machines, APIServer: o.APIServer,
	})
	if err != nil {
		return nil, err
	}
	c := &Cluster{Cluster: plane}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	if err := c.populate(ctx, o); err != nil {
		c.Close()
		return nil, fmt.Errorf("starting a cluster: %w", err)
	}
	return c, nil
}

func (c *Cluster) populate(ctx context.Context, o Options) error {
	var err error
	if c.Client, err = kubernetes.NewForConfig(c.Admin()); err != nil {
		return fmt.Errorf("making a client: %w", err)
	}
	for _, m := range o.Manifests {
		if _, err := c.Kubectl("apply", "--server-side", "-f", m); err != nil {
			return fmt.Errorf("applying %s before the controllers start: %w", m, err)
		}
	}
	if o.NodeGrace == 0 {
		o.NodeGrace = nodeGrace
	}
	flags := append([]string{"--node-monitor-grace-period=" + o.NodeGrace.String()}, o.ControllerManager...)
	starts := []func() error{
		func() error { return c.StartControllerManager(ctx, flags...) },
		func() error { return c.StartScheduler(ctx) },
	}
	if err := wait.Each(starts, func(start func() error) error { return start() }); err != nil {
		return err
	}
	if c.Kubelets, err = newKubelets(c.ctx, c.Admin(), o); err != nil {
		return err
	}
	return wait.For(ctx, func(ctx context.Context) error {
		// Pods are refused in a namespace that does not have its default account yet.
		_, err := c.Client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// Close kills everything.
func (c *Cluster) Close() {
	c.cancel()
	if c.Kubelets != nil {
		c.Kubelets.wait()
	}
	c.Cluster.Close()
}

// Counted is a configuration for a user of that name whose requests are counted. RBAC allows the user
// what is bound to it; "" is admin.
func (c *Cluster) Counted(user string, count *Count) (*rest.Config, error) {
	config := c.Admin()
	if user != "" {
		var err error
		if config, err = c.User(c.API.Addr, user); err != nil {
			return nil, err
		}
	}
	if count != nil {
		return config, count.Wrap(config)
	}
	return config, nil
}

// StopAPIServer kills the API server, as a crash does. Everybody else lives on without it.
func (c *Cluster) StopAPIServer() { c.API.Stop() }

// StartAPIServer starts it again at the same address, and returns when it is ready. Controllers of
// Kubernetes come back when their own pauses between attempts end, which may be 30 s later.
func (c *Cluster) StartAPIServer(t testing.TB) {
	t.Helper()
	if err := c.API.Start(wait.Usual.Context(t)); err != nil {
		t.Fatal(err)
	}
}
