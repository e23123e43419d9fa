package node

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/wait"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestKubeProxyGoesOn: what a kube-proxy that has ended left behind, its canary too, makes no
// second proxy of it. One that goes on beside gridproxy opens closed Services at each change; it
// is reported by one line, an Event on the Node and a gauge, and the Services are closed again.
func TestKubeProxyGoesOn(t *testing.T) {
	eachVariant(t, func(t *testing.T, w *takenNode, binary string) {
		const suspected, runs = "gridproxy_other_proxy_suspected", "gridproxy_sync_full_proxy_rules_duration_seconds_count"
		w.letKubeProxyWrite()
		w.closeInAPI()
		daemon := w.startAlert(binary)
		for _, family := range families {
			if !strings.Contains(w.save(family), ":KUBE-PROXY-CANARY ") {
				t.Errorf("%s: kube-proxy has left no canary", family)
			}
		}
		wait.Until(w.t, "many verifies", func() error { return w.wantMetric(runs, "0", "1", "2", "3", "4") })
		if err := w.wantMetric(suspected, "1"); err != nil {
			t.Errorf("what is left behind: %v", err)
		}
		if all := w.otherProxyEvents(); len(all) > 0 {
			t.Errorf("Events about what is left behind: %q", all)
		}

		proxy := w.kubeProxy()
		t.Cleanup(func() { proxy.Stop(syscall.SIGTERM, 5*time.Second) })
		ready := false
		wait.Until(w.t, "the daemon to suspect kube-proxy", func() error {
			w.setReady("closed-plain", "gz-2", ready) // no business of this node's unit, but kube-proxy's
			ready = !ready
			return w.wantMetric(suspected, "0")
		})
		wait.Until(w.t, "an Event", func() error {
			all := w.otherProxyEvents()
			return wait.Check(len(all) == 1 && strings.Contains(all[0], "nat/KUBE-S"), "Events: %q, want one that names a chain", all)
		})
		text, err := os.ReadFile(daemon.Log())
		must(w.t, err)
		if n := bytes.Count(text, []byte("another service proxy")); n != 1 {
			t.Errorf("%d lines of the log are about it, want one", n)
		}
		proxy.Stop(syscall.SIGKILL, 5*time.Second)
		wait.Until(w.t, "kube-proxy's last rules to be repaired", func() error {
			code, text := w.diff(binary)
			return wait.Check(code == 0, "%s", text)
		})
		w.expectClosed()
	})
}

var alertMetrics = netip.MustParseAddrPort("127.0.0.1:10349")

// startAlert starts a daemon that verifies often, at ports that kube-proxy does not have.
func (w *takenNode) startAlert(binary string) *apiserver.Child {
	w.t.Helper()
	child := w.startDaemon("alert", binary, nil, "--verify-period=1s", "--other-proxy-after=4s",
		fmt.Sprintf("--healthz-bind-address=127.0.0.1:%d", trialHealthz), "--metrics-bind-address="+alertMetrics.String())
	w.ready(child, trialHealthz)
	return child
}

// wantMetric is an error unless a metric without labels is another than these.
func (w *takenNode) wantMetric(name string, not ...string) error {
	page, err := w.node.Get(w.ctx, alertMetrics, "/metrics")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(page.Text)) {
		value, found := strings.CutPrefix(strings.TrimSpace(line), name+" ")
		if !found {
			continue
		}
		for _, n := range not {
			if value == n {
				return fmt.Errorf("%s is %s", name, value)
			}
		}
		return nil
	}
	return fmt.Errorf("there is no metric %s", name)
}

func (w *takenNode) otherProxyEvents() []string {
	w.t.Helper()
	list, err := w.api.CoreV1().Events(metav1.NamespaceAll).List(w.ctx, metav1.ListOptions{FieldSelector: "reason=OtherServiceProxy"})
	must(w.t, err)
	var all []string
	for _, e := range list.Items {
		if e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != here || e.Count > 1 {
			w.t.Errorf("Event about %s %s, %d times", e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Count)
		}
		all = append(all, e.Message)
	}
	return all
}

func (w *takenNode) setReady(service, node string, ready bool) {
	w.t.Helper()
	slices := w.api.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault)
	list, err := slices.List(w.ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	must(w.t, err)
	for i := range list.Items {
		slice := &list.Items[i]
		for j := range slice.Endpoints {
			if e := &slice.Endpoints[j]; e.NodeName != nil && *e.NodeName == node {
				e.Conditions.Ready = &ready
			}
		}
		_, err := slices.Update(w.ctx, slice, metav1.UpdateOptions{})
		must(w.t, err)
	}
}
