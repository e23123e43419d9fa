package machines

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"gridproxy/integration/cluster"
	"gridproxy/integration/controlplane"
	"gridproxy/integration/lab"
	"gridproxy/integration/need"
)

// ClusterCIDRs are where the addresses of Pods come from; those of Services: controlplane.ServiceCIDRs.
const ClusterCIDRs = controlplane.ClusterCIDRs

// Spec says what a machine is like.
type Spec struct {
	Name   string
	Labels map[string]string // of the Node
	// Variant is what the machine's own iptables is, which its kubelet leaves a hint of; "" is nft.
	Variant controlplane.Variant
}

// Manual are the machines of the manual: two units, two machines each.
func Manual() []Spec {
	beijing, guangzhou := map[string]string{"location": "beijing"}, map[string]string{"location": "guangzhou"}
	return []Spec{
		{Name: "bj-1", Labels: beijing}, {Name: "bj-2", Labels: beijing},
		{Name: "gz-1", Labels: guangzhou}, {Name: "gz-2", Labels: guangzhou},
	}
}

// Options say what is special about a Cluster.
type Options struct {
	// Dir is for disks, data, keys and logs; the caller removes it. ForTest fills it in.
	Dir string
	// Machines are those that join; none: those of Manual.
	Machines []Spec
	// NodeGrace is after how long a silent Node is NotReady; 0: the 50 s of Kubernetes.
	NodeGrace time.Duration
	// Manifests are files and folders that are applied before the controllers start: CRDs.
	Manifests []string
	// Images are imported on every machine before its kubelet starts, beside those of Pause and Echo.
	Images []Image
	// ControllerManager are further flags of kube-controller-manager.
	ControllerManager []string
}

// Cluster is a running Kubernetes cluster with machines.
type Cluster struct {
	*cluster.Cluster
}

var errNotYet = errors.New("there are no machines yet")

// ForTest builds what is missing, with progress on standard error, starts a Cluster that ends with the test,
// and shows the end of its logs if the test fails.
func ForTest(t testing.TB, o Options) *Cluster {
	t.Helper()
	need.Cluster(t)
	t.Fatal(errNotYet)
	return nil
}

// Start starts a control plane and machines, and returns when these are Ready. Close ends it.
func Start(ctx context.Context, o Options) (*Cluster, error) { return nil, errNotYet }

// Close ends everything.
func (c *Cluster) Close() error { return errNotYet }

// Machine is a machine by name; nil if there is none.
func (c *Cluster) Machine(name string) *Machine { return nil }

// Machines are all of them, in the order of Options.
func (c *Cluster) Machines() []*Machine { return nil }

// APIServers are the addresses of the API servers, as machines and Pods in their network reach them.
func (c *Cluster) APIServers() []netip.AddrPort { return nil }

// KubeProxy is a manifest of the real kube-proxy, as a DaemonSet kube-system/kube-proxy; its image is on every
// machine. mode is kube-proxy's; variant "" is what each machine's own iptables is.
func (c *Cluster) KubeProxy(mode string, variant controlplane.Variant) (string, error) {
	return "", errNotYet
}

// Pod is the network namespace of a running Pod.
func (c *Cluster) Pod(ctx context.Context, namespace, name string) (*lab.Namespace, error) {
	return nil, errNotYet
}

// Exec runs a command in a Pod's first container, as kubectl exec does, and returns what it printed.
func (c *Cluster) Exec(ctx context.Context, namespace, pod string, command ...string) (string, error) {
	return "", errNotYet
}

// Outside is a client beside the machines, on their bridge; it is no Node.
func (c *Cluster) Outside() *lab.Namespace { return nil }
