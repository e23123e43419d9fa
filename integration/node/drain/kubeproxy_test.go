package drain

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/need"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	"k8s.io/client-go/rest"
)

// kubeProxyVariable names the real kube-proxy. In a virtual machine it cannot be built.
const kubeProxyVariable = "GRIDPROXY_KUBE_PROXY"

// kubeProxy is a real kube-proxy in IPVS mode on the node, and the fake API server that it listens to.
type kubeProxy struct {
	*apiserver.Child
	api *need.FakeAPI
}

// startKubeProxy starts kube-proxy and waits until its servers hold the endpoints of every Service.
func (w *world) startKubeProxy() *kubeProxy {
	w.t.Helper()
	k := w.newKubeProxy(w.newAPI())
	w.Must(k.WaitFor(wait.Usual.Context(w.t), w.kubeProxyServes))
	return k
}

// newKubeProxy starts kube-proxy with an API server, and does not wait.
func (w *world) newKubeProxy(api *need.FakeAPI) *kubeProxy {
	w.t.Helper()
	binary := os.Getenv(kubeProxyVariable)
	need.That(w.t, binary != "", kubeProxyVariable+" names no kube-proxy: run `make test SUITES='ipvs-*'`, which builds one")
	k := &kubeProxy{api: api}
	var err error
	k.Child, err = apiserver.KubeProxy{
		Tools: apiserver.Tools{Dir: filepath.Dir(binary)}, Mode: "ipvs", Dir: w.t.TempDir(), Namespace: w.node, API: &rest.Config{Host: k.api.URL()},
		Node: here, Variant: apiserver.Variant(w.Variant), ClusterCIDRs: netns.ClusterCIDRs(), Env: w.node.Env,
	}.Start()
	w.Must(err)
	w.t.Cleanup(func() {
		k.Stop(syscall.SIGKILL, time.Second)
		if log, err := os.ReadFile(k.Log()); err == nil && w.t.Failed() {
			w.t.Logf("log of kube-proxy:\n%s", netns.Tail(string(log)))
		}
	})
	return k
}

// newAPI is a fake API server outside of the nodes that knows what the manifests say.
func (w *world) newAPI() *need.FakeAPI {
	w.t.Helper()
	var listener net.Listener
	w.Must(w.Outside.Do(func() (err error) {
		listener, err = net.Listen("tcp", netip.AddrPortFrom(w.Outside.Addr(netns.IPv4), 0).String())
		return err
	}))
	api := need.ServeFakeAPI(listener)
	w.t.Cleanup(func() {
		if err := api.Close(); err != nil {
			w.t.Error(err)
		}
	})
	for _, n := range w.Manifests.Nodes {
		w.Must(api.Put(n))
	}
	for _, s := range w.Services {
		w.Must(api.Put(s))
	}
	for _, s := range w.Slices {
		w.Must(api.Put(s))
	}
	return api
}

// kubeProxyServes says whether kube-proxy is done: all servers have endpoints, and every change that
// it heard of is in the kernel. It writes servers, sets and rules one after the other.
func (w *world) kubeProxyServes(ctx context.Context) error {
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
	page, err := w.node.Get(ctx, kubeProxyMetrics, "/metrics")
	if err != nil {
		return err
	}
	for _, f := range netns.Families() {
		queued, done := gauge(page.Text, "last_queued_timestamp_seconds", f), gauge(page.Text, "last_timestamp_seconds", f)
		if queued == 0 || done < queued {
			return fmt.Errorf("%s: changes came at %f, the last sync ended at %f", f, queued, done)
		}
	}
	return nil
}

var kubeProxyMetrics = netip.MustParseAddrPort("127.0.0.1:10249")

// gauge reads one of kube-proxy's metrics; 0 if it is not there.
func gauge(metrics []byte, name string, f netns.Family) float64 {
	prefix := fmt.Sprintf("kubeproxy_sync_proxy_rules_%s{ip_family=%q} ", name, f)
	for line := range strings.Lines(string(metrics)) {
		if text, found := strings.CutPrefix(line, prefix); found {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err == nil {
				return value
			}
		}
	}
	return 0
}
