package node

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gridproxy/integration/env/apiserver"
	"gridproxy/integration/env/netns"
	"gridproxy/integration/env/wait"
	"gridproxy/topology"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// The trial that docs/decisions/0025 is about: a gridproxy of this name beside kube-proxy.
const (
	trialName    = "grid"
	trialHealthz = 10356
	trialMetrics = 10349
)

// onTrial are the Services that are handed to it.
func onTrial() []string {
	return []string{"closed-live", "closed-nodeport", "closed-balanced", "closed-affine", "closed-empty"}
}

// TestTrialBesideKubeProxy runs both on one node. Services that are handed to gridproxy by their label are
// closed to their unit, the others stay kube-proxy's; each keeps its own chains over syncs and repairs and
// leaves the other's alone; cleaning up leaves kube-proxy's byte for byte.
func TestTrialBesideKubeProxy(t *testing.T) {
	eachVariant(t, func(t *testing.T, w *takenNode, binary string) {
		open := subject{name: "live", pods: []string{"beijing-v9zdr", "guangzhou-hhmt2"}}
		w.addService(open, len(subjects())+1)
		kubeProxy := w.startKubeProxy()
		w.closeInAPI()
		for _, name := range onTrial() {
			w.label(name, trialName)
		}
		wait.Until(w.t, "kube-proxy to leave what is handed over", func() error { return w.look("KUBE-", false, onTrial()...) })
		theirs := w.chainsNamed("KUBE-")
		trial := w.startTrial(binary)
		ours := w.chainsNamed("GRID-")

		w.expectClosed()
		w.expectOpen("live")
		w.expectOpen("live", w.node.Namespace)
		w.expectClosed(w.node.Namespace) // whose source must be masqueraded
		w.tamper()
		wait.Until(w.t, "the trial to mend its chains", func() error {
			diff := cmp.Diff(sorted(ours), sorted(w.chainsNamed("GRID-")))
			return wait.Check(diff == "", "%s", diff)
		})
		w.expectClosed()
		if diff := cmp.Diff(sorted(theirs), sorted(w.chainsNamed("KUBE-"))); diff != "" {
			t.Errorf("kube-proxy's chains changed (-before +after):\n%s", diff)
		}

		// The trial goes on: one Service more, another one back.
		w.label("live", trialName)
		w.label("closed-affine", "")
		wait.Until(w.t, "both to follow", func() error {
			return errors.Join(w.look("GRID-", true, "live"), w.look("GRID-", false, "closed-affine"), w.look("KUBE-", true, "closed-affine"), w.look("KUBE-", false, "live"))
		})
		w.expectOpen("live")
		// Each full sync of kube-proxy writes the rules in another order; it leaves them when it ends.
		kubeProxy.Stop(syscall.SIGTERM, waitTimeout)
		theirs = w.chainsNamed("KUBE-")
		trial.Stop(syscall.SIGTERM, waitTimeout)
		wait.Until(w.t, "the trial's rules to go", func() error {
			_, err := w.node.Run(w.ctx, nil, binary, "cleanup", "--service-proxy-name="+trialName, "--iptables-variant="+string(w.variant))
			return err
		})
		if diff := cmp.Diff(theirs, w.chainsNamed("KUBE-")); diff != "" {
			t.Errorf("the cleanup changed kube-proxy's chains (-before +after):\n%s", diff)
		}
		for family, lines := range w.chainsNamed("GRID-") {
			if len(lines) > 0 {
				t.Errorf("%s after the cleanup:\n%s", family, strings.Join(lines, "\n"))
			}
		}
	})
}

// startKubeProxy is letKubeProxyWrite, but kube-proxy stays.
func (w *takenNode) startKubeProxy() *apiserver.Child {
	w.t.Helper()
	proxy := w.kubeProxy()
	w.t.Cleanup(func() { proxy.Stop(syscall.SIGTERM, 5*time.Second) })
	wait.Until(w.t, "kube-proxy's rules", func() error { return w.look("KUBE-", true, "live", "closed-live", "plain") })
	return proxy
}

// startTrial starts the second proxy, at ports of its own, and returns when it is ready.
func (w *takenNode) startTrial(binary string) *apiserver.Child {
	w.t.Helper()
	child := w.startDaemon("trial", binary, nil, "--service-proxy-name="+trialName, "--verify-period=1s",
		fmt.Sprintf("--healthz-bind-address=127.0.0.1:%d", trialHealthz), fmt.Sprintf("--metrics-bind-address=127.0.0.1:%d", trialMetrics))
	w.ready(child, trialHealthz)
	return child
}

// label hands a Service to a proxy by name, "" to the one without.
func (w *takenNode) label(service, proxy string) {
	w.t.Helper()
	value := "null"
	if proxy != "" {
		value = `"` + proxy + `"`
	}
	patch := fmt.Appendf(nil, `{"metadata":{"labels":{%q:%s}}}`, topology.LabelServiceProxyName, value)
	_, err := w.api.CoreV1().Services(corev1.NamespaceDefault).Patch(w.ctx, service, types.MergePatchType, patch, metav1.PatchOptions{})
	must(w.t, err)
}

// chainsNamed returns the lines of both families that are about chains with names of one proxy,
// the jumps to them included, and those with KUBE- of neither proxy.
func (w *takenNode) chainsNamed(prefix string) map[string][]string {
	w.t.Helper()
	all := map[string][]string{}
	for family, text := range w.saves() {
		all[family] = slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
			return strings.Contains(line, "GRID-") != (prefix == "GRID-")
		})
	}
	return all
}

// sorted is all with the lines in no order: in most chains it decides nothing.
func sorted(all map[string][]string) map[string][]string {
	out := map[string][]string{}
	for family, lines := range all {
		out[family] = slices.Sorted(slices.Values(lines))
	}
	return out
}

// look returns an error unless each of the Services has rules of that proxy, or none has.
func (w *takenNode) look(prefix string, want bool, services ...string) error {
	var wrong []error
	for family, lines := range w.chainsNamed(prefix) {
		for _, s := range services {
			found := slices.ContainsFunc(lines, func(line string) bool {
				return strings.Contains(line, `"default/`+s+" ") || strings.Contains(line, `"default/`+s+`"`) || strings.Contains(line, " default/"+s+" ")
			})
			if found != want {
				wrong = append(wrong, fmt.Errorf("%s: rules of %s chains for Service %s: %v", family, prefix, s, found))
			}
		}
	}
	return errors.Join(wrong...)
}

// tamper takes away much of what the trial has written.
func (w *takenNode) tamper() {
	w.t.Helper()
	for _, args := range []string{"-t nat -F GRID-SERVICES", "-t nat -F GRID-MARK-MASQ", "-D FORWARD -m comment --comment \"kubernetes forwarding rules\" -j GRID-FORWARD"} {
		for _, family := range families {
			_, err := w.node.Run(w.ctx, nil, "sh", "-c", fmt.Sprintf("%s-%s -w 5 %s", family, w.variant, args))
			must(w.t, err)
		}
	}
}

// expectOpen asks until both units have answered; from the Pod of the node unless said otherwise.
func (w *takenNode) expectOpen(service string, from ...*netns.Namespace) {
	w.t.Helper()
	from = append(from, w.Client(here).Namespace)
	to := w.vip(service)
	seen := map[string]bool{}
	wait.Until(w.t, "answers of both units from "+service, func() error {
		answer, err := from[0].Fetch(w.ctx, to)
		if err == nil {
			seen[answer.Node] = true
		}
		return wait.Check(seen["bj-3"] && seen["gz-2"], "answered so far: %v, %w", seen, err)
	})
}
