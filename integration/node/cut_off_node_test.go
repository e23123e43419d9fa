package node

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// cutOffNode is a node that can be cut off from its API server, and rebooted.
type cutOffNode struct {
	*operatedNode
	stateDir string
	web      netip.AddrPort
	client   *netns.Pod
}

// TestRebootWhileCutOff reboots a node that is cut off from its API server: with a saved state its
// clients are answered again, without one they are not. When the link returns, the cloud says that
// the site's endpoints are not ready: with --reconnect-grace no request fails, without it some do.
func TestRebootWhileCutOff(t *testing.T) {
	w := &cutOffNode{
		operatedNode: newOperatedNode(t), stateDir: filepath.Join(t.TempDir(), "state"),
		web: netip.MustParseAddrPort("10.96.0.20:80"),
	}
	w.client = w.Client(here)
	w.addServiceOf("web", "10.96.0.20", "beijing-v9zdr", "guangzhou-hhmt2")
	w.addServiceOf("gone", "10.96.0.21", "beijing-v9zdr")
	w.start(w.flags()...)
	wait.Until(w.t, "the state is saved", func() error {
		_, err := os.Stat(filepath.Join(w.stateDir, "state"))
		return err
	})

	w.cut(true)
	if err := w.wantAnswer(w.client, w.web, "bj-3"); err != nil {
		t.Errorf("cut off: %v", err)
	}
	w.reboot()
	w.withoutState()
	begin := time.Now()
	w.start(w.flags()...)
	if err := w.wantAnswer(w.client, w.web, "bj-3"); err != nil {
		t.Errorf("after a reboot: %v", err)
	}
	t.Logf("after a reboot without API server, clients are answered after %s", time.Since(begin).Round(time.Millisecond))

	must(w.t, w.api.CoreV1().Services("default").Delete(w.ctx, "gone", metav1.DeleteOptions{}))
	failed := w.comeBack(func() error { return w.wantRule("default/gone", false) })
	if len(failed) > 0 {
		t.Errorf("when the link returned, %d requests failed: %v", len(failed), failed[0])
	}

	w.setReady(true)
	wait.Until(w.t, "the endpoint is ready", func() error { return w.wantAnswer(w.client, w.web, "bj-3") })
	w.cut(true)
	w.reboot()
	w.start(w.flags("--reconnect-grace=0")...)
	if err := w.wantAnswer(w.client, w.web, "bj-3"); err != nil {
		t.Errorf("after another reboot: %v", err)
	}
	failed = w.comeBack(func() error { return w.wantRule("web", false) })
	if len(failed) == 0 {
		t.Error("without grace no request failed: the test does not see waves")
	}
}

func (w *cutOffNode) flags(more ...string) []string {
	return append([]string{"--cluster-cidr", netns.ClusterCIDRs(), "--state-dir", w.stateDir}, more...)
}

// cut has the uplink refuse every packet of the node to the API server, or pass them again.
func (w *cutOffNode) cut(off bool) {
	w.t.Helper()
	do := map[bool]string{true: "-I", false: "-D"}[off]
	for _, addr := range w.node.Addrs {
		tool := map[bool]string{true: "iptables-nft", false: "ip6tables-nft"}[addr.Is4()]
		_, err := w.Outside.Run(w.ctx, nil, tool, do, "INPUT", "-s", addr.String(), "-p", "tcp", "-j", "REJECT", "--reject-with", "tcp-reset")
		must(w.t, err)
	}
}

// reboot kills the daemon and empties the kernel's tables.
func (w *cutOffNode) reboot() {
	w.t.Helper()
	w.daemon.Kill()
	<-w.daemon.Done()
	for _, tool := range []string{"iptables-nft-restore", "ip6tables-nft-restore"} {
		_, err := w.node.Run(w.ctx, strings.NewReader("*mangle\nCOMMIT\n*nat\nCOMMIT\n*filter\nCOMMIT\n"), tool)
		must(w.t, err)
	}
}

// notAnswered is how long the test asks a node without state: ten times as long as one with state
// needs to start.
const notAnswered = 4 * time.Second

// withoutState: a daemon without saved state serves nothing while it is cut off.
func (w *cutOffNode) withoutState() {
	w.t.Helper()
	var err error
	w.daemon, err = w.node.Start(w.program, append([]string{
		"run", "--node-name", here, "--kubeconfig", w.Kubeconfig(), "--conntrack-max-per-core", "0", "--iptables-variant", "nft", "--status-socket=",
	}, w.flags("--state-dir", w.t.TempDir())...)...)
	must(w.t, err)
	wait.Until(w.t, "the API server is missed", func() error {
		return wait.Check(w.daemon.Log().Contains("the API server does not answer"), "the daemon said %s", w.daemon.Log())
	})
	for end := time.Now().Add(notAnswered); time.Now().Before(end); {
		if answer, err := w.fetch(); err == nil {
			w.t.Errorf("without a saved state %v answers", answer)
			break
		}
	}
	w.daemon.Kill()
	<-w.daemon.Done()
}

func (w *cutOffNode) fetch() (netns.Answer, error) {
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	return w.client.Fetch(ctx, w.web)
}

// setReady says of the endpoints of web whether they are ready.
func (w *cutOffNode) setReady(ready bool) {
	w.t.Helper()
	var endpoints []discoveryv1.Endpoint
	for _, name := range []string{"beijing-v9zdr", "guangzhou-hhmt2"} {
		pod := w.Pod(name)
		endpoints = append(endpoints, discoveryv1.Endpoint{
			Addresses: []string{pod.Addrs[0].String()}, NodeName: &pod.Node.Name, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	w.patch("slice", "web", map[string]any{"endpoints": endpoints})
}

// comeBack gives the link back while a client asks, after the cloud has said that no endpoint is
// ready, and returns what failed until the daemon has followed the API server and for 3 s after it.
func (w *cutOffNode) comeBack(followed func() error) []error {
	w.t.Helper()
	w.setReady(false)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var failed []error
	var asking sync.WaitGroup
	asking.Go(func() {
		for ctx.Err() == nil {
			if _, err := w.fetch(); err != nil {
				failed = append(failed, err)
			}
		}
	})
	w.cut(false)
	wait.Until(w.t, "the daemon follows the API server", followed)
	// real time: nothing may fail for some time after the return
	<-time.After(3 * time.Second)
	cancel()
	asking.Wait()
	return failed
}
