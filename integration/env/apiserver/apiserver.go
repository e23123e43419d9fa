package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"syscall"

	"k8s.io/client-go/rest"
)

const signalKill = syscall.SIGKILL

// advertised is the address that default/kubernetes points at (TEST-NET-1): loopback is refused
// there, and no client connects to it.
const advertised = "192.0.2.1"

// APIServer is one kube-apiserver of a Cluster. It keeps its address over a Stop and Start. Its
// methods are not for concurrent use.
type APIServer struct {
	Addr netip.AddrPort // as clients reach it

	cluster *Cluster
	name    string
	child   *Child // nil while stopped
}

// Start starts the API server and returns when it is ready.
func (a *APIServer) Start(ctx context.Context) error {
	if a.child != nil {
		return fmt.Errorf("%s runs already", a.name)
	}
	client, err := rest.HTTPClientFor(a.cluster.configFor(a.Addr, a.cluster.admin))
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", a.name, err)
	}
	defer client.CloseIdleConnections()
	o := a.cluster.options
	child, err := StartChild(Spec{
		Name: a.name, Path: o.Tools.Path("kube-apiserver"), Args: a.args(), Env: []string{"GOGC=50"},
		Dir: o.Dir, Namespace: o.Namespace,
	})
	if err != nil {
		return err
	}
	if err := child.WaitFor(ctx, func(ctx context.Context) error { return a.ready(ctx, client) }); err != nil {
		child.Stop(signalKill, 0)
		return err
	}
	a.child = child
	return nil
}

// Stop kills the API server: clients see their connections reset, as when its process crashes.
func (a *APIServer) Stop() {
	a.child.Stop(signalKill, 0)
	a.child = nil
}

// args are the smallest set of flags that gives a full API server.
func (a *APIServer) args() []string {
	c, listen := a.cluster, "127.0.0.1"
	if c.options.Namespace != nil {
		listen = "0.0.0.0"
	}
	args := []string{
		"--etcd-servers=http://" + c.etcd.client.String(),
		fmt.Sprintf("--secure-port=%d", a.Addr.Port()),
		"--bind-address=" + listen,
		"--cert-dir=" + c.options.Dir,
		"--tls-cert-file=" + c.files["server.crt"], "--tls-private-key-file=" + c.files["server.key"],
		"--client-ca-file=" + c.files["ca.crt"],
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + c.files["tokens.pub"],
		"--service-account-signing-key-file=" + c.files["tokens.key"],
		"--service-cluster-ip-range=" + ServiceCIDRs,
		"--enable-priority-and-fairness=false", // a load generator is meant to be served at once
		"--max-requests-inflight=0", "--max-mutating-requests-inflight=0",
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", // as kubeadm has it
	}
	args = append(args, c.options.APIServer...)
	if c.options.Machines {
		return append(args, a.machineArgs()...)
	}
	return append(args, "--advertise-address="+advertised)
}

func (a *APIServer) ready(ctx context.Context, client *http.Client) error {
	return healthy(ctx, client, "https://"+a.Addr.String()+"/readyz")
}
