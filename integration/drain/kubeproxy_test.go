package drain

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/controlplane"
	"gridproxy/integration/fakeapi"
	"gridproxy/integration/lab"
	"gridproxy/integration/need"
)

// kubeProxyVariable names the real kube-proxy. In a virtual machine it cannot be built.
const kubeProxyVariable = "GRIDPROXY_KUBE_PROXY"

// kubeProxy is a real kube-proxy in IPVS mode on the node, and the fake API server that it listens to.
type kubeProxy struct {
	*controlplane.Child
	api *fakeapi.Server
}

// startKubeProxy starts kube-proxy and waits until its servers hold the endpoints of every Service.
func (w *world) startKubeProxy() *kubeProxy {
	w.t.Helper()
	binary := os.Getenv(kubeProxyVariable)
	need.That(w.t, binary != "", kubeProxyVariable+" names no kube-proxy: run `make test-ipvs`, which builds one")
	k := &kubeProxy{api: w.newAPI()}
	var err error
	k.Child, err = controlplane.KubeProxy{
		Tools: controlplane.Tools{Dir: filepath.Dir(binary)}, Mode: "ipvs", Dir: w.t.TempDir(), Namespace: w.node, API: k.api.Config(),
		Node: here, Variant: controlplane.Variant(w.variant), ClusterCIDRs: lab.ClusterCIDRs(), Env: w.node.Env,
	}.Start()
	w.must(err)
	w.t.Cleanup(func() {
		k.Stop(syscall.SIGKILL, time.Second)
		if log, err := os.ReadFile(k.Log()); err == nil && w.t.Failed() {
			w.t.Logf("log of kube-proxy:\n%s", tail(string(log)))
		}
	})
	ctx, cancel := w.within()
	defer cancel()
	w.must(k.WaitFor(ctx, func(context.Context) error { return w.kubeProxyServes() }))
	return k
}

// newAPI is a fake API server outside of the nodes that knows what the manifests say.
func (w *world) newAPI() *fakeapi.Server {
	w.t.Helper()
	var listener net.Listener
	w.must(w.Outside.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(w.Outside.Addr(lab.IPv4), 0).String())
		return err
	}))
	api := fakeapi.Serve(listener)
	w.t.Cleanup(func() {
		if err := api.Close(); err != nil {
			w.t.Error(err)
		}
	})
	for _, n := range w.Manifests.Nodes {
		w.must(api.Put(n))
	}
	for _, s := range w.Services {
		w.must(api.Put(s))
	}
	for _, s := range w.Slices {
		w.must(api.Put(s))
	}
	return api
}

// kubeProxyServes says whether kube-proxy's first sync is over: all servers have all endpoints, and
// its last rules are written.
func (w *world) kubeProxyServes() error {
	for _, s := range w.Services {
		for _, text := range slices.Concat(s.Spec.ClusterIPs, s.Spec.ExternalIPs) {
			server := netip.AddrPortFrom(netip.MustParseAddr(text), 80)
			all, err := w.weights(server)
			if err != nil {
				return err
			}
			if len(all) == 0 {
				return fmt.Errorf("server %s has no real server yet", server)
			}
		}
	}
	for _, tool := range []string{"iptables", "ip6tables"} {
		save, err := w.command(tool+"-"+w.variant+"-save", "-t", "nat")
		if err != nil {
			return err
		}
		if !strings.Contains(save, "-A KUBE-POSTROUTING") || !strings.Contains(save, "-A KUBE-SERVICES") {
			return fmt.Errorf("%s has no rules of kube-proxy's yet", tool)
		}
	}
	return nil
}
